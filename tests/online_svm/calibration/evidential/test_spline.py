"""The cubic spline of the ignorance table, against scipy's."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from online_svm.calibration.evidential.table import cubic_spline, evaluate

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("m", [4, 5, 7, 140])
def test_the_pieces_are_those_of_scipy(m):
    knots = np.cumsum(RNG.uniform(0.01, 1.0, m))
    values = RNG.normal(size=(m, 2))
    theirs = CubicSpline(knots, values)
    x = np.concatenate([knots, RNG.uniform(knots[0], knots[-1], 500)])
    np.testing.assert_allclose(
        evaluate(knots, cubic_spline(knots, values), x), theirs(x), rtol=1e-9, atol=1e-9
    )


def test_a_cubic_polynomial_is_its_own_spline():
    knots = np.cumsum(RNG.uniform(0.1, 1.0, 12))
    values = (2.0 * knots**3 - knots + 5.0)[:, None]
    x = RNG.uniform(knots[0], knots[-1], 100)
    found = evaluate(knots, cubic_spline(knots, values), x)[:, 0]
    np.testing.assert_allclose(found, 2.0 * x**3 - x + 5.0, rtol=1e-11)


def test_values_do_not_depend_on_the_scores_beside_them():
    knots = np.linspace(-1.0, 1.0, 30)
    pieces = cubic_spline(knots, RNG.normal(size=(30, 2)))
    x = RNG.uniform(-1.0, 1.0, 100)
    alone = np.concatenate([evaluate(knots, pieces, x[i : i + 1]) for i in range(100)])
    np.testing.assert_array_equal(evaluate(knots, pieces, x), alone)
