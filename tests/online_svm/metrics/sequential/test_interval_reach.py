"""Reaches of intervals: those in the file, the grid they stand on, and what is beyond it."""

import math

import numpy as np
import pytest

from online_svm.metrics.sequential.interval_reach import (
    GROUPS,
    POINTS,
    TABLE_SHAPE,
    USUAL_LEVEL,
    IntervalReach,
    group_of,
    make_table,
    point_of,
    table,
    variance_at,
)
from online_svm.metrics.sequential.mixture_boundary import log_mixture


def test_the_file_holds_what_is_computed_anew():
    np.testing.assert_array_equal(np.array(table()), make_table())
    groups, points = TABLE_SHAPE  # what a feed of eight million examples needs
    assert group_of(8_000_000 // 64) < groups
    assert POINTS * math.log2(4_000_000) < points


@pytest.mark.parametrize("number", [0, 1, 127, 128, 5000, 10**7])
@pytest.mark.parametrize("squares", [0.0, 0.7, 55.0, 1e5, 1e8])
def test_at_the_reach_the_mixture_has_the_share_of_the_level(number, squares):
    """Within the file and beyond it, and by a level that has no file."""
    for level in (USUAL_LEVEL, 0.2):
        reach = IntervalReach(level)
        variance = variance_at(point_of(squares))
        wealth = log_mixture(reach.of(squares, number), variance)
        assert wealth == pytest.approx(reach.logs[group_of(number)], abs=1e-6)


@pytest.mark.parametrize("squares", [0.0, 0.7, 1.0, 1.0001, 55.0, 2.0**20, 1e8])
def test_a_point_of_the_grid_is_the_first_of_a_variance_that_is_as_large(squares):
    point = point_of(squares)
    assert variance_at(point) >= squares
    assert point == 0 or variance_at(point - 1) < squares
    assert variance_at(point) == pytest.approx(2.0 ** (point / POINTS), rel=1e-14)


def test_the_shares_of_all_starts_sum_to_the_level():
    shares = 2.0 / USUAL_LEVEL * np.exp(-IntervalReach(USUAL_LEVEL).logs)
    starts = [1, 127, *(128 << k for k in range(GROUPS - 2))]
    assert 0.97 < shares @ starts < 1.0
