"""The tests of label shares: what they bet on, what they find, and what they must not."""

import numpy as np
import pytest
from rows_by_hand import rows_of, uniform

from online_svm.config.groups import MonitorConfig
from online_svm.metrics.sequential.exchangeability import (
    MAX_CLASSES,
    N_RANKED,
    ExchangeabilityMonitor,
    LabelState,
    rank_labels,
    zones_of,
)
from online_svm.metrics.sequential.monitor_set import MonitorSet
from online_svm.stream.prediction import ScoredRows

BEFORE, AFTER = 2500, 5000
RUNS = 40


def ranked(labels, zones, seed=3, before=7, first=0.0):
    values = np.full((len(labels), 3), first)
    counts = np.zeros((MAX_CLASSES, 2), dtype=np.int64)
    edges = np.zeros((MAX_CLASSES, 2))
    edges[:2] = zones
    rank_labels(labels, seed, before, True, LabelState(np.array([1, 2]), counts, edges), values)
    return values, counts


def test_values_follow_the_smoothed_ranks_of_the_class_indicators():
    labels, zones = np.random.default_rng(1).integers(-1, 3, 400), ((0.1, 0.5), (0.7, 0.8))
    values, counts = ranked(labels, zones)
    for c, (low, high) in enumerate(zones):
        own, mean = labels == c, (low + high) / 2
        for i in range(400):
            if i < 100:  # the first rows are ranked, and not bet on
                assert values[i, 1 + c] == 0.0
                continue
            u = uniform(3, 8 + i, N_RANKED + c)
            above = 0 if own[i] else own[: i + 1].sum()
            p = (above + u * (own[: i + 1] == own[i]).sum()) / (i + 1)
            height = np.interp(p, [low, high], [1.0, 0.0])
            assert values[i, 1 + c] == pytest.approx((height - mean) / max(mean, 1 - mean))
        assert counts[c].tolist() == [own.sum(), 400]


def test_values_of_uniform_p_values_have_mean_zero_and_lie_in_bounds():
    p = (np.arange(100_000) + 0.5) / 100_000
    tail = np.array([ranked(np.array([0]), ((0.1, 0.2),) * 2, first=1 - 2 * x)[0][0, 0] for x in p])
    assert tail.mean() == pytest.approx(0.0, abs=1e-6)
    assert tail.max() == 1.0
    assert tail.min() > -0.2
    assert np.isnan(ranked(np.array([0]), ((0.1, 0.2),) * 2, first=np.nan)[0][0, 0])
    rng = np.random.default_rng(2)
    for share in (0.01, 0.5, 0.97):
        labels = (rng.random(60_000) >= share).astype(np.int64)
        values = ranked(labels, zones_of(np.array([[int(500 * share), 500]])))[0][:, 1]
        assert np.abs(values).max() <= 1.0
        assert abs(values.mean()) < 4.5 * values.std() / np.sqrt(60_000)


def test_zones_lie_around_the_shares_and_mirror_them():
    low, high = zones_of(np.array([[5, 500], [495, 500], [0, 0], [250, 500]])).T
    shares = np.array([5.5, 495.5, 0.5, 250.5]) / 501
    assert (low < shares).all()
    assert (shares < high).all()
    assert high[0] - shares[0] > shares[0] - low[0]
    assert high[1] - shares[1] < shares[1] - low[1]
    assert low.min() == 0.0
    assert zones_of(np.zeros((2, 2), dtype=np.int64)).tolist() == [[0.0, 1.0]] * 2


def stream(kind, seed):
    """Two classes, 1.5 standard deviations apart in one of two features; a change, or none."""
    rng, t = np.random.default_rng([4, seed]), np.arange(BEFORE + AFTER) - BEFORE
    rate = {
        "rare": np.where(t < 0, 0.01, 0.05),
        "slow": 0.5 + 0.3 * np.clip(t / 2000, 0, 1),
        "noise": np.full(len(t), 0.5),
        "none": np.full(len(t), (0.5, 0.2, 0.01)[seed % 3]),
    }[kind]
    columns = (rng.random(len(t)) < rate).astype(np.int64)
    X = rng.normal(size=(len(t), 2))
    X[:, 0] += 1.5 * columns
    if kind == "noise":
        columns = np.where((t >= 0) & (rng.random(len(t)) < 0.1), 1 - columns, columns)
    return X, columns


def delays(kind, scopes):
    """Return the examples from the change to the first alarm of a scope; infinite without one."""
    found = []
    for seed in range(RUNS):
        monitor = ExchangeabilityMonitor(0.005, 10_000, seed)
        rows = [
            one.row for one in monitor.update(rows_of(*stream(kind, seed))) if one.scope in scopes
        ]
        found.append(min((row - BEFORE for row in rows if row >= BEFORE), default=np.inf))
    return np.array(found)


@pytest.mark.parametrize(
    ("kind", "scope", "least", "median"),
    [("rare", "labels", 36, 1000), ("slow", "labels", 39, 1150), ("noise", "overall", 25, 3500)],
)
def test_changes_of_labels_are_found(kind, scope, least, median):
    found = delays(kind, {scope})
    assert np.isfinite(found).sum() >= least
    assert np.median(found) < median


def false_alarms(runs):
    """Count runs with an alarm of any monitor; a fifth of the labels is missing."""
    count = 0
    for seed in range(runs):
        X, columns = stream("none", seed)
        p = (0.5, 0.2, 0.01)[seed % 3] / np.exp(1.5 * (0.75 - X[:, 0]))
        p /= p + 1.0 - (0.5, 0.2, 0.01)[seed % 3]
        point, m = np.column_stack([1 - p, p]), len(X)
        parts = (*[point] * 4, (p - 0.5)[:, None], (p > 0.5).astype(np.int64))
        rows = ScoredRows(np.arange(m), ("a", "b"), columns, *parts, model=1, X=X)
        is_labelled = np.random.default_rng(seed).random(m) < 0.8
        count += bool(MonitorSet(MonitorConfig(), seed).update(rows.taken(is_labelled)))
    return count


def test_streams_without_a_change_raise_no_alarm():
    assert false_alarms(60) <= 4  # beyond it less than one in a thousand of a binomial(60, .01)


def test_a_share_that_changes_is_named_with_its_class():
    rng, classes = np.random.default_rng(6), ("a", "b", "c")
    columns = np.concatenate(
        [rng.choice(3, 3000, p=[0.6, 0.39, 0.01]), rng.choice(3, 2000, p=[0.55, 0.35, 0.1])]
    )
    monitor = ExchangeabilityMonitor(0.005, 10_000)
    first = monitor.update(rows_of(rng.normal(size=(5000, 2)), columns, classes))[0]
    assert (first.scope, first.name) == ("labels", "c")
    assert 3000 <= first.row < 3500
