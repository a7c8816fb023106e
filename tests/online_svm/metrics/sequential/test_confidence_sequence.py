"""Boundaries, starts and sums: quadrature, the authors' package, definitions, states."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammainc, gammaln

from online_svm.metrics.sequential.confidence_sequence import (
    N_START_GROUPS,
    POINTS_PER_OCTAVE,
    RHO,
    ROWS_BETWEEN_STARTS,
    TABLE_SHAPE,
    USUAL_LEVEL,
    DeviationSums,
    IntervalReach,
    boundary_of_mean,
    group_of,
    log_mean_mixture,
    log_mixture,
    make_table,
    point_of,
    table,
    variance_at,
)
from online_svm.metrics.sequential.wealth import NO_SIZES


def by_quadrature(s, v, rho):
    """The mixture over l of exp(l s - (-ln(1 - l) - l) v), with its density written out."""
    constant = rho * math.log(rho) - gammaln(rho) - math.log(gammainc(rho, rho))

    def integrand(u):
        size = 1.0 - u
        density = constant + (rho - 1) * math.log(u) - rho * u
        return math.exp(density + size * s + v * (math.log(u) + size))

    return math.log(quad(integrand, 0.0, 1.0, epsabs=0, epsrel=1e-10, limit=200)[0])


@pytest.mark.parametrize(("s", "v", "rho"), [(5, 3, 2), (-4, 10, 5), (30, 100, 50), (60, 20, 50)])
def test_the_closed_form_is_the_integral(s, v, rho):
    assert log_mixture(s, v, rho) == pytest.approx(by_quadrature(s, v, rho), abs=1e-8)


@pytest.mark.parametrize(("s", "v"), [(-4.0, 10.0), (5.0, 3.0), (30.0, 100.0), (80.0, 0.0)])
def test_a_mean_of_mixtures_has_its_logarithm_and_its_derivative(s, v):
    def log_mean(s):
        return math.log(np.mean([math.exp(by_quadrature(s, v, rho)) for rho in rhos]))

    rhos = np.array([2.0, 5.0, 50.0])
    log, slope = log_mean_mixture(s, v, rhos)
    assert log == pytest.approx(log_mean(s), abs=1e-8)
    assert slope == pytest.approx((log_mean(s + 1e-3) - log_mean(s - 1e-3)) / 2e-3, rel=1e-5)
    if log > 0.0:
        assert boundary_of_mean(v, log, rhos) == pytest.approx(s, rel=1e-8)


CONFSEQ = {
    (1.0, 0.01): (12.29814175003412, 16.09150288946796),
    (50.0, 0.01): (27.608182028257033, 5.381306357417458),
    (3000.0, 0.01): (207.735005195957, -2.444587212135957),
}
"""By their package, version 0.0.11: the boundary, and the mixture at a sum of 30."""


@pytest.mark.parametrize(("v", "level"), CONFSEQ)
def test_boundary_and_mixture_are_those_of_the_package_of_their_authors(v, level):
    bound, log = CONFSEQ[v, level]
    found = boundary_of_mean(v, -math.log(level), np.array([RHO]))
    assert found == pytest.approx(bound, rel=1e-8)
    assert log_mixture(30.0, v, RHO) == pytest.approx(log, rel=1e-9)


def test_the_file_holds_the_computed_table():
    np.testing.assert_array_equal(np.array(table()), make_table())
    groups, points = TABLE_SHAPE  # what a feed of eight million examples needs
    assert group_of(8_000_000 // 64) < groups
    assert POINTS_PER_OCTAVE * math.log2(4_000_000) < points


@pytest.mark.parametrize("number", [0, 1, 127, 128, 5000, 10**7])
@pytest.mark.parametrize("squares", [0.0, 0.7, 55.0, 1e5, 1e8])
def test_at_the_reach_the_mixture_has_the_share_of_the_level(number, squares):
    """Within the file and beyond it, and by a level that has no file."""
    for level in (USUAL_LEVEL, 0.2):
        reach = IntervalReach(level)
        variance = variance_at(point_of(squares))
        wealth = log_mixture(reach.of(squares, number), variance, RHO)
        assert wealth == pytest.approx(reach.logs[group_of(number)], abs=1e-6)


@pytest.mark.parametrize("squares", [0.0, 0.7, 1.0, 1.0001, 55.0, 2.0**20, 1e8])
def test_a_grid_point_is_the_first_with_enough_variance(squares):
    point = point_of(squares)
    assert variance_at(point) >= squares
    assert point == 0 or variance_at(point - 1) < squares
    assert variance_at(point) == pytest.approx(2.0 ** (point / POINTS_PER_OCTAVE), rel=1e-14)


def test_a_group_of_starts_ends_before_a_power_of_two():
    numbers = [0, 1, 2, 127, 128, 129, 255, 256, 10**7, 2**40 - 1, 2**40, 2**63 - 1]
    expected = [number and max(1, number.bit_length() - 6) for number in numbers]
    assert [group_of(number) for number in numbers] == expected


def test_the_shares_of_all_starts_sum_to_the_level():
    shares = 2.0 / USUAL_LEVEL * np.exp(-IntervalReach(USUAL_LEVEL).logs)
    starts = [1, 127, *(128 << k for k in range(N_START_GROUPS - 2))]
    assert 0.97 < shares @ starts < 1.0


def add(sums, values, n, sizes=NO_SIZES):
    """Add rows of y - p, shape (m, n_series); NaN for rows outside a series."""
    happened = (values > 0).astype(float)
    cells = np.where(np.isnan(values), -1, np.arange(values.shape[1]))
    sums.update(cells, happened, happened - values, n, sizes)


def test_a_late_deviation_is_reported_with_its_start():
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.random(41_000) < 0.3, rng.random(3000) < 0.4])
    sums = DeviationSums(1)
    add(sums, (y - 0.3)[:, None], np.arange(44_000))
    told = sums.strongest(0)
    assert abs(told.since - 41_000) < 500
    assert 0.03 < told.lower < 0.1 < told.upper < 0.17


def test_the_mean_since_a_start_is_that_of_its_rows():
    values = np.random.default_rng(1).uniform(-0.5, 0.5, (5000, 2)) + np.array([0.3, -0.2])
    values[::3, 1] = np.nan
    sums, n = DeviationSums(2), 10 + np.arange(5000)
    add(sums, values, n)
    for series in range(2):
        told = sums.strongest(series)
        rows = values[told.since - 10 :, series]
        assert (told.since - 10) % ROWS_BETWEEN_STARTS == 0
        assert told.rows == np.count_nonzero(~np.isnan(rows))
        assert told.estimate == pytest.approx(np.nanmean(rows))
        assert told.announced == pytest.approx(np.nanmean(np.where(rows > 0, 1 - rows, -rows)))


def test_squares_are_about_a_recent_mean_that_is_put_into_the_range():
    rng = np.random.default_rng(7)
    p = rng.random(500)
    values = (rng.random(500) < p) - p
    values[::9], values[5::70] = np.nan, 0.0
    sums = DeviationSums(1)
    add(sums, values[:, None], np.arange(500))
    mean = squares = 0.0
    for value in values[~np.isnan(values)].tolist():
        # y - p, of which y is 0 or 1, lies in [-p, 1 - p]; of a certain p it is known.
        low, high = (value, value + 1.0) if value < 0.0 else (value - 1.0, value)
        about = float(np.clip(mean, low, high)) if value else 0.0
        squares += (value - about) ** 2
        mean += (value - mean) / 32.0
    assert sums.state()["sums"][0, 2] == pytest.approx(squares, rel=1e-12)


def test_all_intervals_hold_at_all_times_with_the_confidence():
    rng, runs = np.random.default_rng(2), 150
    sums, left = DeviationSums(runs, level=0.1), np.zeros(runs, dtype=bool)
    for begin in range(0, 3200, ROWS_BETWEEN_STARTS):
        values = (rng.random((ROWS_BETWEEN_STARTS, runs)) < 0.4) - 0.4
        add(sums, values, np.arange(begin, begin + ROWS_BETWEEN_STARTS))
        for j in range(runs):
            told = sums.strongest(j)
            left[j] |= not told.lower <= 0 <= told.upper
    assert left.sum() <= 28  # beyond it less than one in a thousand of a binomial(150, .1)


def test_there_is_no_deviation_before_the_first_row():
    assert DeviationSums(1).strongest(0) is None


def test_the_strongest_start_has_the_interval_farthest_from_zero():
    rng = np.random.default_rng(5)
    values = (rng.random(2000) < np.where(np.arange(2000) < 900, 0.3, 0.55)) - 0.3
    sums = DeviationSums(1)
    add(sums, values[:, None], np.arange(2000))
    told = sums.strongest(0)
    found = []
    for number in range(2000 // ROWS_BETWEEN_STARTS + 1):
        rows = values[number * ROWS_BETWEEN_STARTS :]
        # The squares are about an expected value that only the sums know: theirs are taken.
        at = np.flatnonzero(sums.state()["starts"][:, 0] == number)
        if len(at):
            squares = sums.state()["sums"][0, 2] - sums.state()["before"][at[0], 0, 2]
            level = 0.025 * (0.25 if number == 0 else 0.25 / 127)
            variance = 2 ** (math.ceil(16 * math.log2(squares)) / 16)
            reach = boundary_of_mean(variance, -math.log(level), np.array([RHO]))
            found.append(((abs(rows.sum()) - reach) / len(rows), number * ROWS_BETWEEN_STARTS))
    assert told.since == max(found)[1]
    assert told.lower == pytest.approx(max(found)[0])


@pytest.mark.parametrize("share", [0.31, 0.45])  # all intervals contain 0, or not
def test_the_strongest_start_up_to_a_row_is_none_after_it(share):
    rng = np.random.default_rng(6)
    chance = np.where(np.arange(3000) < 2980, share, 1.0)
    sums, n = DeviationSums(1), 50 + np.arange(3000)
    add(sums, ((rng.random(3000) < chance) - 0.3)[:, None], n)
    assert sums.strongest(0, upto=4000) == sums.strongest(0)
    assert sums.strongest(0, upto=49) == sums.strongest(0)  # no start is as early
    for upto in (50, 800, 2000):
        assert sums.strongest(0, upto).since <= upto
    assert (sums.strongest(0).since > 2000) == (share == 0.31)
