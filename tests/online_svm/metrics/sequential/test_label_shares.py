"""The tests of label shares: what they bet on, what they find, and what they must not."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from rows_by_hand import rows_of, uniform

from online_svm.config.groups import MonitorConfig
from online_svm.metrics.sequential.calibration_monitor import NoticeChange
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
    heights = np.full((len(labels), 3), first)
    counts = np.zeros((MAX_CLASSES, 2), dtype=np.int64)
    edges = np.zeros((MAX_CLASSES, 2))
    edges[:2] = zones
    rank_labels(labels, seed, before, True, LabelState(np.array([1, 2]), counts, edges), heights)
    return heights, counts


def test_heights_follow_the_smoothed_ranks_of_the_class_indicators():
    labels, zones = np.random.default_rng(1).integers(-1, 3, 400), ((0.1, 0.5), (0.7, 0.8))
    heights, counts = ranked(labels, zones)
    for c, (low, high) in enumerate(zones):
        own = labels == c
        for i in range(400):
            if i < 100:  # the first rows are ranked, and not bet on
                assert heights[i, 1 + c] == 0.0
                continue
            u = uniform(3, 8 + i, N_RANKED + c)
            above = 0 if own[i] else own[: i + 1].sum()
            p = (above + u * (own[: i + 1] == own[i]).sum()) / (i + 1)
            assert heights[i, 1 + c] == pytest.approx(np.interp(p, [low, high], [1.0, 0.0]))
        assert counts[c].tolist() == [own.sum(), 400]


def test_heights_of_uniform_p_values_have_the_known_mean_and_lie_in_bounds():
    p = (np.arange(100_000) + 0.5) / 100_000
    tail = np.array([ranked(np.array([0]), ((0.1, 0.2),) * 2, first=1 - x)[0][0, 0] for x in p])
    assert tail.mean() == pytest.approx(0.5, abs=1e-6)
    assert tail.max() == 1.0
    assert tail.min() > 0.375
    assert np.isnan(ranked(np.array([0]), ((0.1, 0.2),) * 2, first=np.nan)[0][0, 0])
    rng = np.random.default_rng(2)
    for share in (0.01, 0.5, 0.97):
        labels = (rng.random(60_000) >= share).astype(np.int64)
        (zone,) = zones_of(np.array([[int(500 * share), 500]]))
        heights = ranked(labels, zone)[0][100:, 1]
        assert heights.min() >= 0.0
        assert heights.max() <= 1.0
        assert abs(heights.mean() - zone.mean()) < 4.5 * heights.std() / np.sqrt(60_000)


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


def alarms_of(found):
    return [one for one in found if not isinstance(one, NoticeChange)]


def delays(kind, scopes):
    """Return the examples from the change to the first alarm of a scope; infinite without one."""
    found = []
    for seed in range(RUNS):
        monitor = ExchangeabilityMonitor(0.005, 10_000, seed)
        alarms = alarms_of(monitor.update(rows_of(*stream(kind, seed))))
        rows = [one.row for one in alarms if one.scope in scopes]
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
        count += bool(alarms_of(MonitorSet(MonitorConfig(), seed).update(rows.taken(is_labelled))))
    return count


def test_streams_without_a_change_raise_no_alarm():
    assert false_alarms(60) <= 4  # beyond it less than one in a thousand of a binomial(60, .01)


def test_a_share_that_changes_is_named_with_its_class():
    rng, classes = np.random.default_rng(6), ("a", "b", "c")
    columns = np.concatenate(
        [rng.choice(3, 3000, p=[0.6, 0.39, 0.01]), rng.choice(3, 2000, p=[0.55, 0.35, 0.1])]
    )
    monitor = ExchangeabilityMonitor(0.005, 10_000)
    first = alarms_of(monitor.update(rows_of(rng.normal(size=(5000, 2)), columns, classes)))[0]
    assert (first.scope, first.name) == ("labels", "c")
    assert 3000 <= first.row < 3500


def labels_of(rng, *parts):
    """Labels of two classes: so many rows, each with such a share of the second."""
    return np.concatenate([(rng.random(m) < share).astype(np.int64) for m, share in parts])


def noticing(labels, notice_every, seed=0, cuts=(), every=10_000):
    """Return the changes of the notices, with no alarm, and the monitor."""
    monitor, found = ExchangeabilityMonitor(1e-300, every, seed, notice_every), []
    rows = rows_of(np.zeros((len(labels), 1)), labels)
    for begin, stop in pairwise([0, *cuts, len(labels)]):
        new = monitor.update(rows.part(begin, stop))
        found += [replace(change, row=begin + change.row) for change in new]
        restored = ExchangeabilityMonitor(1e-300, every, seed, notice_every)
        monitor = restored.restore(monitor.state())
    return found, monitor


@pytest.mark.parametrize(("before", "after", "median"), [(0.2, 0.3, 450), (0.02, 0.06, 700)])
def test_a_share_that_changes_has_a_notice_soon(before, after, median):
    delays = []
    for seed in range(9):
        labels = labels_of(np.random.default_rng([31, seed]), (3000, before), (3000, after))
        found, _ = noticing(labels, 500_000, seed)
        (notice,) = found[0].notices
        assert found[0].of_labels
        assert notice.code == "labels:b:risen"
        assert notice.lower < notice.happened < notice.upper
        assert notice.announced < notice.happened
        delays.append(found[0].row - 3000)
    assert min(delays) > 0
    assert np.median(delays) < median


def test_false_notices_of_labels_are_as_rare_as_stated():
    rows, every, opened = 6000, 3000, 0
    for seed in range(90):
        rng, share = np.random.default_rng([32, seed]), (0.5, 0.2, 0.02)[seed % 3]
        found, _ = noticing(labels_of(rng, (rows, share)), every, seed)
        opened += len({notice.n for change in found for notice in change.notices})
    # Beyond it less than one in a thousand of a Poisson distribution.
    assert opened <= 224
    assert opened > 0


def test_a_notice_of_labels_ends_when_the_class_comes_as_before():
    labels = labels_of(np.random.default_rng(33), (3000, 0.2), (600, 0.5), (6000, 0.2))
    found, _ = noticing(labels, 100_000)
    assert [len(change.notices) for change in found[:2]] == [1, 0]
    assert found[1].row > 3600
    (later,) = found[2].notices  # the usual share is that of all rows before
    assert later.direction == "fallen"
    assert later.happened < later.announced
    assert later.since > found[1].row


def test_a_notice_of_labels_ends_with_the_ranks_it_is_from():
    labels = labels_of(np.random.default_rng(34), (2000, 0.2), (1500, 0.6))
    found, monitor = noticing(labels, 100_000, every=2500)
    assert [len(change.notices) for change in found] == [1, 0]
    assert found[1].row == 2999  # 500 rows for the first scorer, 2,500 ranked by it
    monitor.restart()
    assert monitor.notices() == ()


@pytest.mark.parametrize("cuts", [(1,), (499, 501, 2100), tuple(range(2000, 2200))])
def test_notices_of_labels_do_not_depend_on_how_rows_are_cut(cuts):
    labels = labels_of(np.random.default_rng(35), (2000, 0.2), (900, 0.6), (900, 0.2))
    whole, monitor = noticing(labels, 100_000)
    assert len(whole) == 3
    cut, other = noticing(labels, 100_000, cuts=cuts)
    assert cut == whole
    assert other.report() == monitor.report()
