"""Means since several starts: the starts that are kept, the intervals, cuts and states."""

import math

import numpy as np
import pytest

from online_svm.errors import InvalidSnapshot
from online_svm.metrics.sequential.deviation_sums import SPACING, DeviationSums
from online_svm.metrics.sequential.mixture_boundary import boundary


def test_a_deviation_that_began_late_is_told_with_where_it_began():
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.random(41_000) < 0.3, rng.random(3000) < 0.4])
    sums = DeviationSums(1)
    sums.update((y - 0.3)[:, None], np.arange(44_000))
    told = sums.strongest(0)
    assert abs(told.since - 41_000) < 500
    assert 0.03 < told.lower < 0.1 < told.upper < 0.17


def test_the_mean_since_a_start_is_that_of_its_rows():
    values = np.random.default_rng(1).uniform(-0.5, 0.5, (5000, 2)) + np.array([0.3, -0.2])
    values[::3, 1] = np.nan
    sums, n = DeviationSums(2), 10 + np.arange(5000)
    sums.update(values, n)
    for series in range(2):
        told = sums.strongest(series)
        rows = values[told.since - 10 :, series]
        assert (told.since - 10) % SPACING == 0
        assert told.rows == np.count_nonzero(~np.isnan(rows))
        assert told.estimate == pytest.approx(np.nanmean(rows))


def test_all_intervals_hold_at_all_times_with_the_confidence():
    rng, runs = np.random.default_rng(2), 150
    sums, left = DeviationSums(runs, level=0.1), np.zeros(runs, dtype=bool)
    for begin in range(0, 3200, SPACING):
        values = (rng.random((SPACING, runs)) < 0.4) - 0.4
        sums.update(values, np.arange(begin, begin + SPACING))
        for j in range(runs):
            told = sums.strongest(j)
            left[j] |= not told.lower <= 0 <= told.upper
    assert left.sum() <= 28  # beyond it less than one in a thousand of a binomial(150, .1)


def test_before_the_first_row_nothing_is_told():
    assert DeviationSums(1).strongest(0) is None


@pytest.mark.parametrize("name", ["rows", "expected", "sums", "starts", "before"])
def test_a_state_with_a_part_that_does_not_fit_is_refused(name):
    state = DeviationSums(2).state()
    with pytest.raises(InvalidSnapshot, match=name):
        DeviationSums.from_state(state | {name: np.zeros(7)}, 2)


def test_the_start_that_is_told_is_the_one_whose_interval_lies_farthest_of_all():
    rng = np.random.default_rng(5)
    values = (rng.random(2000) < np.where(np.arange(2000) < 900, 0.3, 0.55)) - 0.3
    sums = DeviationSums(1)
    sums.update(values[:, None], np.arange(2000))
    told = sums.strongest(0)
    found = []
    for number in range(2000 // SPACING + 1):
        rows = values[number * SPACING :]
        # The squares are about an expected value that only the sums know: theirs are taken.
        at = np.flatnonzero(sums.state()["starts"][:, 0] == number)
        if len(at):
            squares = sums.state()["sums"][0, 2] - sums.state()["before"][at[0], 0, 2]
            level = 0.025 * (0.25 if number == 0 else 0.25 / 127)
            reach = boundary(2 ** (math.ceil(16 * math.log2(squares)) / 16), level)
            found.append(((abs(rows.sum()) - reach) / len(rows), number * SPACING))
    assert told.since == max(found)[1]
    assert told.lower == pytest.approx(max(found)[0])


def test_sums_do_not_depend_on_how_rows_are_cut_and_continue_from_a_state():
    values = np.random.default_rng(3).uniform(-0.5, 0.5, (1000, 2))
    whole, parts, n = DeviationSums(2), DeviationSums(2), np.arange(1000)
    whole.update(values, n)
    for begin, stop in ((0, 1), (1, 63), (63, 64), (64, 65), (65, 700), (700, 1000)):
        parts.update(values[begin:stop], n[begin:stop])
        parts = DeviationSums.from_state(parts.state(), 2)
    for name, array in whole.state().items():
        assert np.array_equal(array, parts.state()[name])
    assert whole.strongest(1) == parts.strongest(1)
