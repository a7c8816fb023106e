"""Masses and probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.calibration.evidential.masses import (
    bayesian,
    belief_plausibility,
    inverse_pignistic,
    pignistic,
)
from online_svm.errors import InvalidInput


@given(st.floats(0.0, 1.0))
def test_the_inverse_pignistic_masses_have_that_pignistic_probability(p):
    mass = inverse_pignistic(p)
    assert pignistic(mass) == pytest.approx(p, abs=1e-15)
    assert mass.sum() == pytest.approx(1.0, abs=1e-15)
    assert min(mass[0], mass[1]) == 0.0  # consonant


@given(st.floats(0.0, 1.0))
def test_no_mass_with_that_pignistic_probability_is_less_committed(p):
    # m({1}) = a leaves m({0}) = a + 1 - 2 p; the least a that both allow keeps most ignorance.
    least = max(0.0, 2.0 * p - 1.0)
    assert inverse_pignistic(p)[2] == pytest.approx(
        1.0 - least - (least + 1.0 - 2.0 * p), abs=1e-15
    )


def test_probabilities_without_ignorance_are_their_own_bounds():
    p = np.array([0.0, 0.2, 1.0])
    np.testing.assert_array_equal(belief_plausibility(bayesian(p)), np.column_stack([p, p]))
    np.testing.assert_array_equal(pignistic(bayesian(p)), p)


def test_any_leading_shape_is_kept():
    assert inverse_pignistic(np.full((2, 5), 0.3)).shape == (2, 5, 3)
    assert pignistic(np.tile([0.2, 0.3, 0.5], (2, 5, 1))).shape == (2, 5)
    assert belief_plausibility([0.2, 0.3, 0.5]).shape == (2,)


@pytest.mark.parametrize("function", [inverse_pignistic, bayesian])
@pytest.mark.parametrize("p", [-0.1, 1.1, np.nan, np.inf])
def test_what_is_no_probability_is_refused_by_name(function, p):
    with pytest.raises(InvalidInput, match=r"^p: "):
        function([0.5, p])


@pytest.mark.parametrize("bad", [0.5, [0.5, 0.5], [0.5, 0.5, 0.5], [np.nan, 0.5, 0.5]])
def test_what_is_no_mass_is_refused_by_name(bad):
    with pytest.raises(InvalidInput, match=r"^mass: "):
        pignistic(bad)
