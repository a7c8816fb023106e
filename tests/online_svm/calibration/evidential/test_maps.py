"""What holds for every evidential map."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm import EvidentialBinning, EvidentialIsotonic, EvidentialLogistic
from online_svm.calibration.evidential.masses import pignistic
from online_svm.errors import InvalidInput

MAPS = [
    kind(model)
    for kind in (EvidentialBinning, EvidentialIsotonic, EvidentialLogistic)
    for model in ("likelihood", "confidence", "dempster")
    if not (kind is EvidentialLogistic and model == "dempster")
]
each_map = pytest.mark.parametrize("made", MAPS, ids=lambda m: f"{type(m).__name__}-{m.model}")
GRID = np.concatenate([np.linspace(-5, 5, 23), [-1e300, 1e300, 1e-300]])


def sample(n=120, seed=0):
    random = np.random.default_rng(seed)
    labels = random.random(n) < 0.4
    return random.normal(size=n) + 2.0 * labels, labels


def check_proper(fitted, scores):
    masses, interval, point = (
        fitted.mass(scores),
        fitted.predict_interval(scores),
        fitted.predict(scores),
    )
    assert masses.shape == (len(scores), 3)
    assert ((masses >= 0) & (masses <= 1)).all()
    np.testing.assert_allclose(masses.sum(axis=1), 1.0, atol=1e-12)
    assert (interval[:, 0] <= point).all()
    assert (point <= interval[:, 1]).all()
    assert (interval[:, 1] <= 1.0).all()
    np.testing.assert_allclose(interval[:, 1], 1.0 - masses[:, 1], atol=1e-12)


@each_map
def test_masses_bounds_and_point_fit_together(made):
    fitted = made.fit(*sample())
    check_proper(fitted, GRID)
    np.testing.assert_array_equal(fitted.predict(GRID), pignistic(fitted.mass(GRID)))


@each_map
def test_without_examples_the_map_is_vacuous(made):
    fitted = made.fit([], [])
    np.testing.assert_array_equal(fitted.mass(GRID), np.tile([0.0, 0.0, 1.0], (len(GRID), 1)))
    np.testing.assert_array_equal(fitted.predict(GRID), np.full(len(GRID), 0.5))
    np.testing.assert_array_equal(fitted.contour(0.3, [0.0, 0.2, 1.0]), np.ones(3))
    restored = type(made).from_state(fitted.state())
    np.testing.assert_array_equal(restored.mass(GRID), fitted.mass(GRID))


@each_map
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_one_class_only_is_believed_and_the_other_stays_plausible(made, label, n):
    fitted = made.fit(np.linspace(-1, 1, n), np.full(n, label))
    check_proper(fitted, GRID)
    at = fitted.mass(np.linspace(-1, 1, n))
    assert (at[:, 0 if label else 1] >= at[:, 1 if label else 0]).all()
    assert (at[:, 2] > 0).all()


@each_map
def test_more_examples_leave_less_ignorance(made):
    few, many = sample(20, 7), sample(2000, 7)
    scores = np.linspace(0.0, 2.0, 9)
    ignorance = [made.fit(*examples).mass(scores)[:, 2].mean() for examples in (few, many)]
    assert ignorance[1] < 0.5 * ignorance[0]


@each_map
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused_by_name(made, bad):
    with pytest.raises(InvalidInput, match="scores"):
        made.fit([0.0, bad], [0, 1])
    fitted = made.fit(*sample())
    with pytest.raises(InvalidInput, match="scores"):
        fitted.mass([0.0, bad])
    with pytest.raises(InvalidInput, match="scores"):
        fitted.contour(bad, [0.5])


@each_map
@pytest.mark.parametrize("tau", [-0.1, 1.1, np.nan])
def test_a_contour_is_asked_for_proportions_only(made, tau):
    with pytest.raises(InvalidInput, match="tau"):
        made.fit(*sample()).contour(0.0, [0.5, tau])


@each_map
def test_labels_other_than_0_and_1_are_refused_by_name(made):
    with pytest.raises(InvalidInput, match="labels"):
        made.fit([0.0, 1.0], [-1, 1])


@each_map
def test_before_fit_every_method_asks_for_it(made):
    fresh = type(made)(made.model)
    for call in (lambda: fresh.mass([0.0]), lambda: fresh.contour(0.0, 0.5), fresh.state):
        with pytest.raises(InvalidInput, match="fit"):
            call()


@each_map
def test_a_restored_map_answers_with_the_same_bytes(made):
    fitted = made.fit(*sample())
    state = fitted.state()
    assert all(values.ndim == 1 for values in state.values())
    assert all(values.dtype in (np.float64, np.int64) for values in state.values())
    restored = type(made).from_state(state)
    assert restored.mass(GRID).tobytes() == fitted.mass(GRID).tobytes()
    assert (restored.model, restored.alpha) == (fitted.model, fitted.alpha)


@each_map
def test_a_score_gets_the_same_bytes_alone_and_in_any_batch(made):
    fitted = made.fit(*sample())
    together = fitted.mass(GRID)
    for size in (1, 3, 7):
        parts = [fitted.mass(GRID[i : i + size]) for i in range(0, len(GRID), size)]
        assert np.concatenate(parts).tobytes() == together.tobytes()


@each_map
def test_the_order_of_the_examples_hardly_matters(made):
    scores, labels = sample()
    first = made.fit(scores, labels).mass(GRID)
    np.testing.assert_allclose(made.fit(scores[::-1], labels[::-1]).mass(GRID), first, atol=1e-9)


@each_map
@given(
    st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.booleans()), max_size=12
    )
)
def test_any_finite_scores_have_proper_masses(made, examples):
    scores = np.array([score for score, _ in examples])
    fitted = made.fit(scores, [label for _, label in examples])
    check_proper(fitted, np.concatenate([scores, GRID]))


@pytest.mark.parametrize("kind", [EvidentialBinning, EvidentialIsotonic, EvidentialLogistic])
def test_unknown_models_and_levels_are_refused_by_name(kind):
    with pytest.raises(InvalidInput, match="model"):
        kind("bayes")
    for alpha in (-0.1, 1.1, np.nan):
        with pytest.raises(InvalidInput, match="alpha"):
            kind("confidence", alpha=alpha)


@pytest.mark.parametrize("kind", [EvidentialBinning, EvidentialIsotonic, EvidentialLogistic])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_at_both_limits_of_alpha_confidence_is_vacuous(kind, alpha):
    masses = kind("confidence", alpha=alpha).fit(*sample()).mass(GRID)
    np.testing.assert_array_equal(masses, np.tile([0.0, 0.0, 1.0], (len(GRID), 1)))
