"""The ignorance table: its Gauss-Legendre rules against numpy's, its splines against scipy's."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from online_svm.calibration.evidential.table import cubic_spline, evaluate, gauss_legendre

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [1, 2, 3, 16])
def test_nodes_and_weights_are_those_of_numpy(n):
    nodes, weights = np.polynomial.legendre.leggauss(n)
    expected = [(nodes + 1.0) / 2.0, weights / 2.0]
    np.testing.assert_allclose(gauss_legendre(n), expected, rtol=0, atol=1e-15)


def test_the_shared_rule_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        gauss_legendre(4)[0, 0] = 0.0


@pytest.mark.parametrize("m", [4, 5, 7, 140])
def test_the_pieces_are_those_of_scipy(m):
    knots = np.cumsum(RNG.uniform(0.01, 1.0, m))
    values = RNG.normal(size=(m, 2))
    theirs = CubicSpline(knots, values)
    x = np.concatenate([knots, RNG.uniform(knots[0], knots[-1], 500)])
    np.testing.assert_allclose(
        evaluate(knots, cubic_spline(knots, values), x), theirs(x), rtol=1e-9, atol=1e-9
    )


def test_values_do_not_depend_on_the_scores_beside_them():
    knots = np.linspace(-1.0, 1.0, 30)
    pieces = cubic_spline(knots, RNG.normal(size=(30, 2)))
    x = RNG.uniform(-1.0, 1.0, 100)
    alone = np.concatenate([evaluate(knots, pieces, x[i : i + 1]) for i in range(100)])
    np.testing.assert_array_equal(evaluate(knots, pieces, x), alone)
