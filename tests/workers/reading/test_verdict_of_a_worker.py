"""The sentence of the verdict is true of whole feeds that a worker answers.

The probabilities of each kind are sent as a watched score, whose true state is known.
"""

import json

import numpy as np
import pytest
from verdict_kinds import HELPS_NOT, KINDS, is_right
from world import Worker, seq_of, wait_until

from workers.broker.producer import Producer
from workers.broker.store import Store
from workers.reading.status import read_status
from workers.reading.verdict import verdict

LABELS, FEATURES = ("a", "b", "c"), ("u", "v", "w", "x")
DELAY = 100  # examples after which the label of a late one comes
CHUNK = 2_000  # entries that are sent together
LATE = (
    "right", "season", "3,000 labels", "overconfident inside", "last tenth noisy",
    "labels of one side", "labels of 30 %", "labels stop", "rare, right", "recovered",
)  # fmt: skip
"""Kinds that are played with late labels, too."""

SETTINGS = """
[feed."{name}"]
scores = "probability"
score_use = "watched"
committee = ["logistic"]
memory = 0
window = 500
"""


def entries_of(feed, rng, is_late):
    """Return the entries of a feed, with their labels or, if these are late, between them.

    With a budget all labels come: those that no answer wanted are in no figure.
    """
    n, k = feed.point.shape
    X = np.column_stack([feed.signal, rng.normal(size=n)]).tolist()
    scores = (feed.point[:, 1] if k == 2 else feed.point).tolist()
    labels = [LABELS[column] for column in feed.truth.tolist()]
    if feed.labelled is not None and feed.weights is None:
        labels = np.where(feed.labelled, labels, None).tolist()
    for i, (x, score, label) in enumerate(zip(X, scores, labels, strict=True)):
        named = json.dumps(dict(zip(FEATURES, x, strict=False)))
        fields = ["x", named, "score", json.dumps(score)]
        if not is_late:
            yield fields if label is None else [*fields, "y", label]
            continue
        yield [*fields, "id", str(i)]
        if i >= DELAY and labels[i - DELAY] is not None:
            yield ["for", str(i - DELAY), "y", labels[i - DELAY]]


def settings_of(name, feed, is_late):
    lines = [SETTINGS.format(name=name), f"classes = {list(LABELS[: feed.point.shape[1]])}"]
    lines += [f"horizon = {2 * DELAY}"] * is_late
    lines += ["label_budget = 0.25"] * (feed.weights is not None)
    for label, row in (feed.costs or {}).items():
        lines += [f"costs.{label}.{action} = {cost}" for action, cost in row.items()]
    return "\n".join(lines) + "\n"


def sentences_on(kinds, url, name, path):
    """Return the sentences on feeds that one worker answers: (kind, seed, has late labels) each."""
    waiting, settings = [], ""
    for number, (kind, seed, is_late) in enumerate(kinds):
        feed = KINDS[kind][0](np.random.default_rng([seed, 48, *map(ord, kind)]))
        if kind in HELPS_NOT:  # a score that is the same for all and jumps is a change of features
            feed = feed._replace(point=np.tile(np.median(feed.point, axis=0), (len(feed.point), 1)))
        one, is_late = f"{name}-{number}", is_late or feed.weights is not None
        entries = [*entries_of(feed, np.random.default_rng(seed), is_late)]
        settings += settings_of(one, feed, is_late)
        with Producer(url, one) as producer:
            for begin in range(0, len(entries), CHUNK):
                producer.append(entries[begin : begin + CHUNK])
            producer.register()
        waiting.append((one, len(entries)))
    path.write_text(settings)
    found = []
    with Worker("worker", f"{name}-*", "--redis", url, "--config", path) as worker:
        for one, count in waiting:
            with Store(url, one) as store:
                wait_until(lambda s=store, n=count: seq_of(s) >= n, 900.0, worker.said)
                sentence = verdict(read_status(store)).sentence
                found.append(sentence.replace("the watched score is ", ""))
                store.call("DEL", *store.types())
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.servers("embedded")
def test_the_sentence_is_right_of_a_whole_feed_of_each_kind(redis_url, feed, tmp_path):
    kinds = [(kind, 1, False) for kind in KINDS if not kind.startswith("budget")]
    found = sentences_on(kinds, redis_url, feed, tmp_path / "settings.toml")
    wrong = [
        (kind, one)
        for (kind, _, _), one in zip(kinds, found, strict=True)
        if not is_right(kind, one)
    ]
    assert len(wrong) <= 1, wrong


@pytest.mark.scale
@pytest.mark.timeout(1800)
@pytest.mark.servers("embedded")
@pytest.mark.parametrize(
    ("kind", "is_late"), [*((kind, False) for kind in KINDS), *((kind, True) for kind in LATE)]
)
def test_the_sentence_is_right_of_19_in_20_whole_feeds(
    kind, is_late, redis_url, feed, tmp_path, tell_line
):
    kinds = [(kind, seed, is_late) for seed in range(20)]
    found = sentences_on(kinds, redis_url, feed, tmp_path / "settings.toml")
    wrong = [one for one in found if not is_right(kind, one)]
    tell_line(f"{kind}{', late' * is_late}: {20 - len(wrong)} of 20 right")
    assert len(wrong) <= 1, wrong
