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
    table,
)
from online_svm.metrics.sequential.mixture_boundary import log_mixture


def test_the_file_holds_what_is_computed_anew():
    # The root is sought to within 1e-9; versions of scipy may come to different last digits.
    np.testing.assert_allclose(np.array(table()), make_table(), rtol=0, atol=2e-9)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 5000, 10**7])
@pytest.mark.parametrize("squares", [0.0, 0.7, 55.0, 1e5, 1e8])
def test_at_the_reach_the_mixture_has_the_share_of_the_level(number, squares):
    """Within the file and beyond it, and by a level that has no file."""
    for level in (USUAL_LEVEL, 0.2):
        reach = IntervalReach(level)
        point = 2.0 ** (math.ceil(POINTS * math.log2(max(squares, 1.0))) / POINTS)
        wealth = log_mixture(reach.of(squares, number), point)
        assert wealth == pytest.approx(reach.logs[group_of(number)], abs=1e-6)


def test_the_shares_of_all_starts_sum_to_the_level():
    shares = 2.0 / USUAL_LEVEL * np.exp(-IntervalReach(USUAL_LEVEL).logs)
    starts = [1, 127, *(128 << k for k in range(GROUPS - 2))]
    assert 0.97 < shares @ starts < 1.0


def test_most_feeds_find_every_reach_in_the_file():
    groups, points = TABLE_SHAPE
    assert group_of(8_000_000 // 64) < groups
    assert POINTS * math.log2(4_000_000) < points
