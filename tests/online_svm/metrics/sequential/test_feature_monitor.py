"""Ranks of features: a plain re-derivation, what is found, run lengths, cuts and restarts."""

from itertools import pairwise

import numpy as np
import pytest

from online_svm.metrics.sequential.feature_monitor import FIRST_ROWS, N_CELLS, FeatureMonitor

TIGHT = 1e6


def bets(u):
    z = 2 * u - 1
    spread = 0.6 * (2 * abs(z) - 1)
    return np.array([1 + 0.35 * z, 1 - 0.35 * z, 1 + 0.9 * z, 1 - 0.9 * z,
                     4 * u**3, 4 * (1 - u) ** 3, 1 + spread, 1 - spread])  # fmt: skip


def test_a_rank_is_among_all_rows_so_far_and_the_sums_are_those_of_its_bets():
    """Rows of one value only: the rank is U, whatever it is; of a new largest one at the top."""
    X = np.zeros((FIRST_ROWS + 1, 1))
    X[-1] = 1.0
    monitor = FeatureMonitor(TIGHT)
    monitor.update(X, np.arange(len(X)))
    sums = monitor.state()["sums"][1]
    rank = (16 * sums[4] / 4) ** (1 / 3)
    np.testing.assert_allclose(16 * sums, bets(rank))
    # Of the first rows none is counted: they fix the cells.
    assert 0.0 < rank < 1.0
    more = np.full((3, 1), 2.0)
    monitor.update(more, np.arange(3))
    assert monitor.state()["trees"][1, 1] == 4
    edges = monitor.state()["edges"]
    assert edges.shape == (1, N_CELLS - 1)


def rows_of(seed, m=4000, d=4):
    return np.random.default_rng([1, seed]).normal(size=(m, d))


def _shifted(X, rng):
    X[:, 2] += 2.0


def _fallen(X, rng):
    X[:, 2] -= 2.0


def _wider(X, rng):
    X[:, 2] *= 2.0


def _missing(X, rng):
    X[rng.random(len(X)) < 0.95, 2] = np.nan


@pytest.mark.parametrize(("change", "direction", "median"), [
    (_shifted, "risen", 20), (_fallen, "fallen", 20), (_wider, "wider", 200),
    (_missing, "missing", 20),
])  # fmt: skip
@pytest.mark.parametrize("d", [4, 30])
def test_a_change_of_one_feature_is_found_and_named_without_a_label(change, direction, median, d):
    delays = []
    for seed in range(10):
        X = rows_of(seed, d=d)
        change(X[3000:], np.random.default_rng(seed))
        found = FeatureMonitor(TIGHT, seed).update(X, np.arange(len(X)))
        row, notices = found[0]
        assert [(one.feature, one.direction) for one in notices] == [(2, direction)]
        assert 2800 < notices[0].since <= row
        delays.append(row - 3000)
    assert min(delays) >= 0
    assert np.median(delays) <= median


def test_a_column_that_goes_missing_is_named_first():
    X = rows_of(3)
    X[3000:, 0] += 2.0
    _missing(X[3020:], np.random.default_rng(0))
    monitor = FeatureMonitor(TIGHT)
    monitor.update(X[:3500], np.arange(3500))
    first, second = monitor.notices()
    assert (first.feature, first.direction) == (2, "missing")
    assert (second.feature, second.direction) == (0, "risen")
    assert second.rank > 0.8


def test_rows_to_a_false_notice_are_as_many_as_stated():
    length, rows, runs, false = 2000, 1000, 60, 0
    for seed in range(runs):
        rng = np.random.default_rng([8, seed])
        X = np.column_stack([
            rng.standard_cauchy(rows), rng.poisson(0.3, rows), rng.lognormal(0, 3, rows),
            np.where(rng.random(rows) < 0.3, np.nan, rng.normal(size=rows)),
        ]).astype(float)  # fmt: skip
        false += bool(FeatureMonitor(length, seed).update(X, np.arange(rows)))
    # A detector of this run length has noticed by row 1,000 in at most half of the streams.
    assert false < 30


def test_a_notice_ends_when_the_feature_is_as_it_was_or_what_is_new_has_become_usual():
    back, stays = rows_of(6, m=8000), rows_of(6, m=8000)
    _shifted(back[3000:3100], None)
    _shifted(stays[3000:], None)
    for X, least, most in ((back, 3100, 4500), (stays, 4900, 5100)):
        found = FeatureMonitor(TIGHT).update(X, np.arange(8000))
        closed = [row for row, notices in found if not notices]
        assert least < closed[0] < most
        assert not found[-1][1]


@pytest.mark.parametrize("cuts", [(1, 200, 240, 260), (3010, 3011), tuple(range(2990, 3060))])
def test_cuts_and_restarts_change_nothing(cuts):
    """A feature that comes later begins with its first value."""
    X = rows_of(7)
    _shifted(X[3000:], None)
    X[:250, 3] = np.nan
    whole, part, found = FeatureMonitor(TIGHT, 5), FeatureMonitor(TIGHT, 5), []
    expected = whole.update(X, np.arange(4000))
    for begin, stop in pairwise([0, *cuts, 4000]):
        known = X[begin:stop, : 4 if stop > 240 else 3]
        changes = part.update(known, np.arange(begin, stop))
        found += [(begin + row, notices) for row, notices in changes]
        part = FeatureMonitor(TIGHT, 5).restore(part.state())
    assert found == expected
    for name, array in whole.state().items():
        np.testing.assert_array_equal(array, part.state()[name])
