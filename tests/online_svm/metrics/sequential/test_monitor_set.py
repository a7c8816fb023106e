"""MonitorSet: what it finds, whatever the cuts, and from a state."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from online_svm.config.groups import MonitorConfig
from online_svm.metrics.sequential.calibration_monitor import CalibrationMonitor
from online_svm.metrics.sequential.monitor_set import MonitorSet
from online_svm.stream.scored_rows import ScoredRows


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


def found_in(rows, cuts=()):
    config = MonitorConfig()
    monitors, found = MonitorSet(config, seed=5), []
    for begin, stop in pairwise([0, *cuts, len(rows)]):
        new = monitors.update(rows.part(begin, stop))
        found += [replace(finding, row=begin + finding.row) for finding in new]
        monitors = MonitorSet(config, seed=5).restore(monitors.state())
    return found, monitors.report()


def test_labels_that_are_inverted_are_found_within_eighty_examples():
    rng = np.random.default_rng(0)
    monitors = MonitorSet(MonitorConfig())
    assert monitors.update(rows_of(rng, 5000, 0.75, 0.75)) == []
    found = monitors.update(rows_of(rng, 250, 0.75, 0.25, first=5000))
    first = next(one for one in found if one.kind == "calibration")
    assert first.row < 80
    assert first.log_wealth >= first.threshold
    assert first.lower <= first.estimate <= first.upper
    assert first.estimate < -0.3
    assert 4900 < first.since < 5020


def test_a_shift_of_the_features_alone_is_no_matter_of_calibration():
    rng = np.random.default_rng(1)
    monitors = MonitorSet(MonitorConfig())
    before, after = rows_of(rng, 3000, 0.3, 0.3), rows_of(rng, 3000, 0.3, 0.3, first=3000)
    found = monitors.update(before) + monitors.update(
        replace(after, X=after.X + np.array([0.0, 2.0]))
    )
    assert {finding.kind for finding in found} == {"exchangeability"}


def test_a_category_whose_rates_were_swapped_is_named():
    rng = np.random.default_rng(2)
    said = np.where(rng.random(6000) < 0.5, 0.2, 0.8)
    true = np.concatenate([said[:5000], 1 - said[5000:]])
    found = MonitorSet(MonitorConfig()).update(rows_of(rng, 6000, said, true))
    named = {finding.name: finding.estimate for finding in found if finding.scope == "category"}
    assert named["0"] > 0.3
    assert named["1"] < -0.3
    assert min(finding.row for finding in found) > 5000


def test_a_report_marks_slices_that_are_off_before_they_alarm():
    """By e-BH over them; of 12 slices six are off, more than the tests that a report has else."""
    rng = np.random.default_rng(9)
    slices = rng.integers(0, 12, (9000, 1))
    rows = rows_of(rng, 9000, 0.3, np.where(slices[:, 0] < 6, 0.9, 0.3), slices=slices)
    monitors, told, alarmed = MonitorSet(MonitorConfig(tolerance=0.005)), set(), set()
    most = 0
    for begin in range(0, 9000, 100):
        found = monitors.update(rows.part(begin, begin + 100))
        tests = [test for test in monitors.report()["tests"] if test["scope"] == "slice"]
        off = {test["name"] for test in tests if test["off"]}
        most, told = max(most, len(off - alarmed)), told | off
        alarmed |= {one.name for one in found if one.scope == "slice"}
    assert told == {f"0={code}" for code in range(6)}
    assert set() < alarmed <= told
    assert most > 3


def test_slices_within_the_tolerance_are_seldom_marked_off():
    rng, runs = np.random.default_rng(10), 40
    named = 0
    for _ in range(runs):
        slices = rng.integers(0, 8, (600, 1))
        monitors = MonitorSet(MonitorConfig())
        monitors.update(rows_of(rng, 600, 0.3, 0.3, slices=slices))
        named += any(test.get("off") for test in monitors.report()["tests"])
    assert named <= 7  # beyond it less than one in a thousand of a binomial(40, .05)


@pytest.mark.parametrize("cuts", [(1,), (100, 101, 500), tuple(range(300, 500))])
def test_findings_do_not_depend_on_how_rows_are_cut(cuts):
    rng = np.random.default_rng(4)
    said = np.where(rng.random(900) < 0.5, 0.2, 0.8)
    rows = rows_of(rng, 900, said, 1 - said, slices=rng.integers(0, 3, (900, 2)))
    whole = found_in(rows)
    assert len(whole[0]) > 3
    assert found_in(rows, cuts) == whole


def test_a_stream_within_the_tolerance_is_left_alone():
    rng, alarmed = np.random.default_rng(6), 0
    for _ in range(40):
        p = rng.uniform(0.1, 0.9, 3000)
        rows = rows_of(rng, 3000, p, np.clip(p + 0.02 * rng.choice([-1, 1]), 0, 1))
        alarmed += bool(MonitorSet(MonitorConfig(alarm_level=0.3)).update(rows))
    assert alarmed <= 21  # beyond it less than one in a thousand of a binomial(40, .3)


def test_probabilities_from_few_examples_have_more_tolerance():
    rows = rows_of(np.random.default_rng(8), 500, 0.5, 0.64)
    found = [CalibrationMonitor(0.02, 0.01).update(replace(rows, n=n + rows.n)) for n in (20, 9000)]
    assert found[0] == []
    assert found[1][0].scope == "overall"
    far_off = rows_of(np.random.default_rng(8), 500, 0.5, 0.8, first=20)
    assert CalibrationMonitor(0.02, 0.01).update(far_off)


def test_the_examples_of_a_model_are_counted_from_where_it_began():
    rows, reports = rows_of(np.random.default_rng(9), 500, 0.4, 0.5), []
    for first in (0, 7000):
        monitors = MonitorSet(MonitorConfig())
        monitors.restart()
        for part in (rows.part(0, 300), rows.part(300, 500)):
            monitors.update(replace(part, n=first + part.n))
            monitors = MonitorSet(MonitorConfig()).restore(monitors.state())
        reports.append([test["log_wealth"] for test in monitors.report()["tests"]])
    assert reports[0] == reports[1]
    old = MonitorSet(MonitorConfig())
    old.restart()
    old.update(replace(rows.part(0, 1), n=np.zeros(1, dtype=np.int64)))
    old.update(replace(rows.part(1, 500), n=7000 + rows.n[1:]))
    assert [test["log_wealth"] for test in old.report()["tests"]] != reports[0]


def test_a_test_that_has_seen_no_example_since_it_began_has_no_since():
    rows = rows_of(np.random.default_rng(7), 400, 0.2, 0.8)
    monitors = MonitorSet(MonitorConfig())
    assert {test["since"] for test in monitors.report()["tests"]} == {None}
    (first, *_) = MonitorSet(MonitorConfig()).update(rows)
    monitors.update(rows.part(0, first.row + 1))
    tests = monitors.report()["tests"]
    assert {test["since"] for test in tests if test["alarms"]} == {None}
    assert {test["since"] for test in tests if not test["alarms"]} == {0}
