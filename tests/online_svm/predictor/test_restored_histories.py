"""Every state that a predictor reaches can be read back, whatever classes its rows had."""

import json
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from predictor_answers import restored

from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from workers.config.settings import Limits
from workers.feed.position import START
from workers.session.answer import process

LABELS = ("a", "b", "c", "d")
ROWS = 200
"""Between two snapshots."""


class Part(NamedTuple):
    """Consecutive rows with the same classes."""

    rows: int
    classes: tuple[int, ...]  # indices of the classes that occur
    rare: float  # share of the rows that are not of the first of these classes
    place: str  # of the rows of a class


PLACES = ("overlapping", "apart", "equal")

ALONE = [Part(200, (0, 1), 0.5, "overlapping"), Part(400, (0,), 0.0, "overlapping")]
"""Two classes, then one of them for many windows of 80 rows."""


def parts(n_classes):
    """Draw the parts of a history of 600 rows of at most so many classes."""
    present = st.lists(st.integers(0, n_classes - 1), min_size=1, max_size=n_classes, unique=True)
    part = st.builds(
        Part, st.sampled_from((50, 150, 300)), present.map(tuple),
        st.sampled_from((0.01, 0.1, 0.5)), st.sampled_from(PLACES),
    )  # fmt: skip
    first = st.builds(
        Part, st.just(150), st.just(tuple(range(n_classes))), st.just(0.5), st.sampled_from(PLACES)
    )
    return st.tuples(first, st.lists(part, min_size=2, max_size=8)).map(lambda p: [p[0], *p[1]])


def rows_of(history, seed, most=600):
    """Return rows, shape (n, 2), and labels of the parts, repeated up to `most` rows."""
    rng, X, labels = np.random.default_rng(seed), [], []
    while sum(map(len, X)) < most:
        for part in history:
            others = rng.choice(part.classes, part.rows)
            codes = np.where(rng.random(part.rows) < part.rare, others, part.classes[0])
            spread = {"overlapping": 1.0, "apart": 0.01, "equal": 0.0}[part.place]
            X.append(codes[:, None] * [1.0, -1.0] + spread * rng.normal(size=(part.rows, 2)))
            labels += [LABELS[code] for code in codes]
    return np.concatenate(X)[:most], labels[:most]


SCHEDULE = {"window": 80, "refit_every": 20, "metrics_every": 50}
CONFIGS = {
    "committee": {},
    "discovered": {"classes": None},
    "single": {"committee": "single", "class_weight": "balanced"},
    "oldest": {"split": "oldest", "refit_lag": 0},
    "no window": {"window": None, "refit_every": 100},
    "distance that varies": {"refit_every": None},
    "drift": {"window": 200, "on_drift": "refit", "alarm_level": 0.5},
    "reset": {"window": None, "refit_every": 100, "on_drift": "reset", "alarm_level": 0.5},
    "maps": {"maps": ("isotonic", "venn-abers", "evidential-logistic", "implied", "mixed")},
    "late": {"horizon": 60},
    "late, by arrival": {"horizon": 60, "maturity": "arrival", "label_budget": 0.5},
    "promise": {"horizon": 60, "promise": {"error": 0.05}},
    "probabilities": {"scores": "probability"},
    "margins alone": {"scores": "margin", "score_use": "alone"},
}


def entries_of(config, X, labels):
    """Return entries; with a horizon a label comes forty rows late, and one in seven never."""
    found = []
    for i, (x, label) in enumerate(zip(X, labels, strict=True)):
        entry = {"x": json.dumps(x.tolist())}
        if config.scores is not None:
            shares = np.exp(x[0]) / (np.exp(x[0]) + np.arange(1.0, config.n_scores + 1))
            score = (shares / shares.sum()).tolist() if config.n_scores > 1 else shares[0]
            entry |= {"score": json.dumps(score), "score_version": f"v{i // 300}"}
        found.append(entry | ({"id": str(i)} if config.takes_delayed_labels else {"y": label}))
        if config.takes_delayed_labels and i >= 40 and i % 7:
            found.append({"for": str(i - 40), "y": labels[i - 40]})
    fields = [[part.encode() for pair in entry.items() for part in pair] for entry in found]
    return [(b"%d-0" % (i + 1), each) for i, each in enumerate(fields)]


def followed(config, entries, restarts):
    """Return the digest of what entries are answered, and the snapshot after each 200."""
    predictor, position, snapshots = OnlinePredictor(config), START, []
    for begin in range(0, len(entries), 100):
        part = entries[begin : begin + 100]
        outcome = process(predictor, Limits(), position, part)
        assert not outcome.dlq
        position = outcome.after
        if begin % ROWS:
            snapshots.append(predictor.snapshot())
            predictor = restored(predictor) if restarts else predictor
    return position.digest, snapshots


def assert_read_back(name, n_classes, history, seed):
    X, labels = rows_of(history, seed)
    given = {"classes": LABELS[:n_classes]} | SCHEDULE | CONFIGS[name]
    entries = entries_of(ProtocolConfig(**given), X, labels)
    moving, straight = (followed(ProtocolConfig(**given), entries, r) for r in (True, False))
    assert moving == straight


@pytest.mark.parametrize("name", CONFIGS)
def test_a_snapshot_at_each_200_rows_is_read_back(name):
    assert_read_back(name, 2, ALONE, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
@settings(max_examples=2)
@given(
    st.shared(st.integers(2, 3), key="n"), st.shared(st.integers(2, 3), key="n").flatmap(parts),
    st.integers(0, 99),
)  # fmt: skip
def test_any_history_is_read_back(name, n_classes, history, seed):
    assert_read_back(name, n_classes, history, seed)
