"""Gauss-Legendre rules against numpy's."""

import numpy as np
import pytest

from online_svm.calibration.evidential.table import gauss_legendre


@pytest.mark.parametrize("n", [1, 2, 3, 16])
def test_nodes_and_weights_are_those_of_numpy(n):
    nodes, weights = np.polynomial.legendre.leggauss(n)
    expected = [(nodes + 1.0) / 2.0, weights / 2.0]
    np.testing.assert_allclose(gauss_legendre(n), expected, rtol=0, atol=1e-15)


def test_the_shared_rule_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        gauss_legendre(4)[0, 0] = 0.0


def test_sixteen_nodes_integrate_powers_below_32_exactly():
    nodes, weights = gauss_legendre(16)
    for power in range(32):
        assert weights @ nodes**power == pytest.approx(1.0 / (power + 1.0), abs=1e-15)
