"""The sentence of the verdict is true: feeds are simulated whose true state is known."""

import numpy as np
import orjson
import pytest

from online_svm.config.groups import MonitorConfig, WindowConfig
from online_svm.metrics.cost_matrix import CostMatrix, RealisedCost
from online_svm.metrics.cumulative import CumulativeValidity, MethodAnswers
from online_svm.metrics.sequential.monitor_set import MonitorSet
from online_svm.metrics.windowed_validity import WindowedValidity
from online_svm.stream.scored_rows import ScoredRows
from workers.message.encode import dumps
from workers.reading.evidence import DEFAULT_TOLERANCE
from workers.reading.status import FeedStatus
from workers.reading.verdict import trust

CLASSES = ("fraud", "legit")
COSTS = {
    "fraud": {"fraud": 0.0, "legit": 100.0, "review": 5.0},
    "legit": {"fraud": 20.0, "legit": 0.0, "review": 5.0},
}
RIGHT_AT_LEAST = 0.99


def verdict_on(p, happens, rng, costs=None):
    """Return the verdict on answers that announce `p` for fraud; it happens with other chances."""
    fraud = rng.random(len(p)) < happens
    point = np.stack([p, 1.0 - p], axis=1)
    truth, n = np.where(fraud, 0, 1), np.arange(len(p))
    rows = ScoredRows(
        n, CLASSES, truth, point, point, point, point, 0.5 - p[:, None], np.zeros_like(n), 1
    )
    windows, monitors = WindowedValidity(WindowConfig()), MonitorSet(MonitorConfig())
    sums = CumulativeValidity(intervals=True)
    windows.update(rows)
    alarms = [found for found in monitors.update(rows) if found.kind == "calibration"]
    label = point.argmax(axis=1)
    sums.update(MethodAnswers(point, point, point, label, label), truth)
    report = {
        "n": len(p), "scored": len(p), "headline": {"predicted": sums.report(2).predicted},
        "windowed": windows.report(), "monitors": monitors.report(),
    }  # fmt: skip
    if costs is not None:
        realised = RealisedCost(CostMatrix(costs, CLASSES))
        realised.update(point, truth)
        report["costs"] = realised.report()
    settings = {"predictor": {"costs": costs}}
    answer = {"status": "ok", "guarantee": "exact"}
    read = orjson.loads(dumps(report))
    found = trust(FeedStatus(feed="f", answer=answer, report=read, settings=settings))
    return found.sentence, bool(alarms)


def helpful(rng):
    """Probabilities that hold; the label is right in 82 %, always legit in 65 %."""
    p = rng.beta(0.7, 1.3, 12_000)
    return verdict_on(p, p, rng)


def useless(rng):
    """Probabilities of 1 to 30 % that hold: the label is always legit."""
    p = rng.beta(0.5, 16.0, 12_000).clip(0.001, 0.3)
    return verdict_on(p, p, rng)


def useful_by_costs(rng):
    """The same answers, where a missed fraud costs 100: reviewing the right ones helps."""
    p = rng.beta(0.5, 16.0, 12_000).clip(0.001, 0.3)
    return verdict_on(p, p, rng, COSTS)


def no_better_than_review(rng):
    """The features tell nothing: each example has the same probability, and is reviewed."""
    p = np.full(12_000, 0.3)
    return verdict_on(p, p, rng, COSTS)


def changed(rng):
    """From example 8,000 on each probability of fraud is too low by .15."""
    p = rng.beta(0.7, 1.3, 12_000) * 0.8
    happens = p.copy()
    happens[8_000:] += 0.15
    return verdict_on(p, happens, rng)


def young(rng):
    """Two hundred answers."""
    p = rng.beta(2.0, 2.0, 200)
    return verdict_on(p, p, rng)


KINDS = {
    helpful: "Holds and helps: ",
    useless: "Holds, but helps no more than always legit: ",
    useful_by_costs: "Holds and helps: ",
    no_better_than_review: "Holds, but helps no more than always review: ",
    changed: "Off by ",
    young: "Too early to say (needs about ",
}


def test_the_default_tolerance_is_that_of_the_setting():
    assert MonitorConfig().tolerance == DEFAULT_TOLERANCE


def share_right(kind, feeds):
    """Return the share of feeds whose sentence begins as it should."""
    right = 0
    for seed in range(feeds):
        sentence, alarmed = kind(np.random.default_rng([seed, 37]))
        right += sentence.startswith(KINDS[kind]) or (kind is changed and alarmed)
    return right / feeds


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_sentence_is_right_of_some_feeds(kind):
    assert share_right(kind, 12) >= RIGHT_AT_LEAST


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_sentence_is_right_of_99_in_100_feeds(kind):
    assert share_right(kind, 300) >= RIGHT_AT_LEAST


def no_false_claim(off, scored, rng):
    """Whether the sentence on labels that are too confident by `off` claims nothing false."""
    p = rng.beta(0.7, 1.3, scored) * (1.0 - 2 * off) + off
    sentence, _ = verdict_on(p, p - off * np.sign(p - 0.5), rng)
    if abs(off) <= DEFAULT_TOLERANCE:
        return not sentence.startswith("Off by")
    return not sentence.startswith(("Holds", "Probabilities hold"))


@pytest.mark.slow
@pytest.mark.parametrize("off", [0.0, 0.01, 0.03])
@pytest.mark.parametrize("scored", [150, 1_000, 5_000])
def test_no_length_of_a_feed_makes_the_sentence_false(off, scored):
    right = [no_false_claim(off, scored, np.random.default_rng([i, scored])) for i in range(300)]
    assert np.mean(right) >= RIGHT_AT_LEAST
