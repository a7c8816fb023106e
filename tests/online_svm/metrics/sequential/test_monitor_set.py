"""MonitorSet: what it finds, whatever the cuts, and from a state."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from online_svm.config.groups import MonitorConfig
from online_svm.metrics.sequential.calibration_monitor import CalibrationMonitor, NoticeChange
from online_svm.metrics.sequential.monitor_set import MonitorSet
from online_svm.metrics.sequential.wealth import Finding
from online_svm.stream.prediction import ScoredRows


def rows_of(rng, m, announced, true, first=0, slices=None):
    """Rows of two classes: the second is announced with one probability, and true with another."""
    p = np.broadcast_to(announced, m).astype(float)
    point = np.column_stack([1 - p, p])
    columns = (rng.random(m) < true).astype(np.int64)
    X = rng.normal(size=(m, 2)) + columns[:, None]
    scores = (p - 0.5)[:, None]
    parts = (point, point, point, point, scores, (p > 0.5).astype(np.int64))
    n = first + np.arange(m)
    return ScoredRows(n, ("a", "b"), columns, *parts, model=1, slices=slices, X=X)


def alarms(found):
    return [one for one in found if isinstance(one, Finding)]


def found_in(rows, cuts=()):
    config = MonitorConfig()
    n_slices = 0 if rows.slices is None else rows.slices.shape[1]
    monitors, found = MonitorSet(config, seed=5, n_slices=n_slices), []
    for begin, stop in pairwise([0, *cuts, len(rows)]):
        new = monitors.update(rows.part(begin, stop))
        found += [replace(finding, row=begin + finding.row) for finding in new]
        monitors = MonitorSet(config, seed=5, n_slices=n_slices).restore(monitors.state())
    return found, monitors.report()


def test_labels_that_are_inverted_are_found_within_eighty_examples():
    rng = np.random.default_rng(0)
    monitors = MonitorSet(MonitorConfig())
    assert monitors.update(rows_of(rng, 5000, 0.75, 0.75)) == []
    found = monitors.update(rows_of(rng, 250, 0.75, 0.25, first=5000))
    first = next(one for one in alarms(found) if one.kind == "calibration")
    assert first.row < 80
    assert first.log_wealth >= first.threshold
    assert first.lower <= first.estimate <= first.upper
    assert first.estimate < -0.3
    assert 4900 < first.since < 5020


def test_a_category_whose_rates_were_swapped_is_named():
    rng = np.random.default_rng(2)
    said = np.where(rng.random(6000) < 0.5, 0.2, 0.8)
    true = np.concatenate([said[:5000], 1 - said[5000:]])
    found = alarms(MonitorSet(MonitorConfig()).update(rows_of(rng, 6000, said, true)))
    named = {finding.name: finding.estimate for finding in found if finding.scope == "category"}
    assert named["0"] > 0.3
    assert named["1"] < -0.3
    assert min(finding.row for finding in found) > 5000


def sloped(rng, m):
    """Probabilities of a logistic rule, up to .78."""
    return np.clip(1 / (1 + np.exp(-1.5 * rng.normal(size=m))), 0.02, 0.78)


@pytest.mark.parametrize(
    ("share", "off", "median"), [(0.05, 0.2, 5000), (0.1, 0.2, 2200), (0.02, 0.3, 5600)]
)
def test_a_slice_that_is_off_alarms_and_has_a_notice(share, off, median):
    alarmed, noticed = [], []
    for seed in range(6):
        rng = np.random.default_rng([21, seed])
        slices = (rng.random((10_000, 1)) < share).astype(np.int64)
        p = sloped(rng, 10_000)
        rows = rows_of(rng, 10_000, p, np.where(slices[:, 0], p + off, p), slices=slices)
        found = MonitorSet(MonitorConfig(), in_order=False, n_slices=1).update(rows)
        first = alarms(found)[0]
        assert (first.scope, first.name) == ("slice", "0=1")
        (notice,) = next(one for one in found if isinstance(one, NoticeChange)).notices
        assert notice.code == "slice:0=1:low"
        assert notice.lower < notice.happened < notice.upper
        assert notice.happened - notice.announced == pytest.approx(off, abs=0.1)
        alarmed.append(first.row)
        noticed.append(notice.n)
    assert np.median(alarmed) < median
    assert np.median(noticed) < np.median(alarmed)


def test_slices_within_the_tolerance_seldom_have_a_notice():
    rng, runs, noticed = np.random.default_rng(10), 40, 0
    for _ in range(runs):
        slices, p = rng.integers(0, 60, (1500, 2)), sloped(rng, 1500)
        monitors = MonitorSet(MonitorConfig(notice_every=10_000), n_slices=2)
        monitors.update(rows_of(rng, 1500, p, p, slices=slices))
        noticed += bool(monitors.notices())
    assert noticed <= 14  # beyond it less than one in a thousand of a binomial(40, .15)


def test_values_beyond_the_bound_share_a_part():
    rng = np.random.default_rng(12)
    slices = rng.integers(0, 90, (4000, 1))
    rows = rows_of(rng, 4000, 0.3, np.where(slices[:, 0] >= 63, 0.6, 0.3), slices=slices)
    found = alarms(MonitorSet(MonitorConfig(), in_order=False, n_slices=1).update(rows))
    assert {one.name for one in found if one.scope == "slice"} == {"0=63"}


@pytest.mark.parametrize("cuts", [(1,), (100, 101, 500), tuple(range(300, 500))])
def test_findings_do_not_depend_on_how_rows_are_cut(cuts):
    rng = np.random.default_rng(4)
    said = np.where(rng.random(900) < 0.5, 0.2, 0.8)
    rows = rows_of(rng, 900, said, 1 - said, slices=rng.integers(0, 3, (900, 2)))
    whole = found_in(rows)
    assert len(alarms(whole[0])) > 3
    assert len(whole[0]) > len(alarms(whole[0])) + 3
    assert found_in(rows, cuts) == whole


def test_probabilities_from_few_examples_have_more_tolerance():
    rows = rows_of(np.random.default_rng(8), 500, 0.5, 0.64)
    of_few, of_many = (
        alarms(CalibrationMonitor(0.02, 0.01).update(replace(rows, category_size=np.full(500, n))))
        for n in (20, 9000)
    )
    assert of_few == []
    assert of_many
    far_off = rows_of(np.random.default_rng(8), 500, 0.5, 0.9)
    assert CalibrationMonitor(0.02, 0.01).update(replace(far_off, category_size=np.full(500, 20)))


def test_a_test_that_has_seen_no_example_since_it_began_has_no_since():
    rows = rows_of(np.random.default_rng(7), 400, 0.2, 0.8)
    monitors = MonitorSet(MonitorConfig())
    assert {test["since"] for test in monitors.report()} == {None}
    (first, *_) = alarms(MonitorSet(MonitorConfig()).update(rows))
    monitors.update(rows.part(0, first.row + 1))
    tests = [test for test in monitors.report() if test["since"] is not None or test["alarms"]]
    assert {test["since"] for test in tests if test["alarms"]} == {None}
    assert {test["since"] for test in tests if not test["alarms"]} == {0}
