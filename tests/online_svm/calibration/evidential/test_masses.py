"""Masses, and rules of combination against the definitions, enumerated over subsets."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.calibration.evidential.masses import (
    bayesian,
    belief_plausibility,
    combined_decision,
    dempster_combine,
    inverse_pignistic,
    pignistic,
    plausibility_log_odds,
)
from online_svm.errors import InvalidInput


@given(st.floats(0.0, 1.0))
def test_the_inverse_pignistic_masses_have_that_pignistic_probability(p):
    mass = inverse_pignistic(p)
    assert pignistic(mass) == pytest.approx(p, abs=1e-15)
    assert mass.sum() == pytest.approx(1.0, abs=1e-15)
    assert min(mass[0], mass[1]) == 0.0  # consonant


def test_probabilities_without_ignorance_are_their_own_bounds():
    p = np.array([0.0, 0.2, 1.0])
    np.testing.assert_array_equal(belief_plausibility(bayesian(p)), np.column_stack([p, p]))
    np.testing.assert_array_equal(pignistic(bayesian(p)), p)


@pytest.mark.parametrize("function", [inverse_pignistic, bayesian])
@pytest.mark.parametrize("p", [-0.1, 1.1, np.nan, np.inf])
def test_what_is_no_probability_is_refused_by_name(function, p):
    with pytest.raises(InvalidInput, match=r"^p: "):
        function([0.5, p])


FOCAL = (frozenset({1}), frozenset({0}), frozenset({0, 1}))
VACUOUS = [0.0, 0.0, 1.0]
CERTAIN, EXCLUDED = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]

shares = st.floats(0.0, 1.0)


@st.composite
def mass(draw, least_ignorance=0.0):
    first, second = sorted((draw(shares), draw(shares)))
    room = 1.0 - least_ignorance
    return [room * first, room * (1.0 - second), 1.0 - room * first - room * (1.0 - second)]


def by_definition(masses):
    """Eqs 6 and 7 for any number of sources: multiply over all tuples of focal sets."""
    combined = dict.fromkeys(FOCAL, 0.0)
    for sets in product(range(3), repeat=len(masses)):
        meet = frozenset.intersection(*(FOCAL[i] for i in sets))
        if meet:
            combined[meet] += np.prod([m[i] for m, i in zip(masses, sets, strict=True)])
    return np.array([combined[focal] for focal in FOCAL]) / sum(combined.values())


@given(st.lists(mass(least_ignorance=0.01), min_size=1, max_size=4))
def test_dempsters_rule_is_its_definition(masses):
    np.testing.assert_allclose(dempster_combine(masses), by_definition(masses), atol=1e-12)


def test_total_conflict_is_vacuous_in_any_order_of_sources():
    third = [0.5, 0.0, 0.5]
    for sources in (
        [CERTAIN, EXCLUDED, third],
        [CERTAIN, third, EXCLUDED],
        [third, CERTAIN, EXCLUDED],
    ):
        np.testing.assert_array_equal(dempster_combine(sources), VACUOUS)


def test_total_conflict_of_one_row_leaves_the_others_alone():
    combined = dempster_combine([[CERTAIN, [0.5, 0.0, 0.5]], [EXCLUDED, [0.5, 0.0, 0.5]]])
    np.testing.assert_array_equal(combined, [VACUOUS, [0.75, 0.0, 0.25]])


def test_many_weak_sources_do_not_underflow():
    combined = dempster_combine([[0.4, 0.6, 0.0]] * 5000)
    assert np.isfinite(combined).all()
    assert combined[1] == pytest.approx(1.0)


def test_rows_are_combined_one_by_one():
    random = np.random.default_rng(3)
    masses = random.dirichlet(np.ones(3), size=(4, 50))
    together = dempster_combine(masses)
    for row in range(50):
        np.testing.assert_array_equal(together[row], dempster_combine(masses[:, row]))


@given(st.lists(mass(least_ignorance=0.001), min_size=1, max_size=4))
def test_log_odds_are_those_of_the_combined_plausibilities(masses):
    combined = by_definition(masses)
    expected = np.log((combined[0] + combined[2]) / (combined[1] + combined[2]))
    assert plausibility_log_odds(masses) == pytest.approx(expected, abs=1e-9)


def test_the_decision_takes_the_more_plausible_class_and_ties_go_to_zero():
    first = [[0.5, 0.0, 0.5], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5], VACUOUS]
    second = [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5], VACUOUS]
    decisions = combined_decision([first, second])
    np.testing.assert_array_equal(decisions, [True, False, False, False])


def test_total_conflict_has_finite_log_odds():
    assert plausibility_log_odds([CERTAIN, EXCLUDED]) == 0.0
    assert not combined_decision([CERTAIN, EXCLUDED])
    assert combined_decision([CERTAIN, EXCLUDED, [0.1, 0.0, 0.9]])


@pytest.mark.parametrize(
    "bad", [0.5, [0.5, 0.5], [0.5, 0.6, 0.1], [-0.1, 0.6, 0.5], [np.nan, 0.5, 0.5]]
)
@pytest.mark.parametrize("function", [pignistic, dempster_combine])
def test_what_is_no_mass_is_refused_by_name(function, bad):
    with pytest.raises(InvalidInput, match=r"^mass: "):
        function([bad])


@pytest.mark.parametrize("rule", [dempster_combine, combined_decision])
@pytest.mark.parametrize("bad", [[0.2, 0.3, 0.5], np.zeros((0, 3))])
def test_a_rule_takes_at_least_one_source(rule, bad):
    with pytest.raises(InvalidInput, match="masses: give at least one source"):
        rule(bad)
