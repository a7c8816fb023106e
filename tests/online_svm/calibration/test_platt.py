import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.calibration import _SigmoidCalibration

from online_svm import PlattScaling
from online_svm.errors import InvalidInput, InvalidSnapshot

METHODS = ["newton", "model-trust"]
each_method = pytest.mark.parametrize("method", METHODS)


def noisy_sample(n, slope=1.3, offset=0.4, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n) * 1.5
    return scores, rng.random(n) < 1 / (1 + np.exp(-slope * scores + offset))


def platt_targets(labels):
    labels = np.asarray(labels, dtype=bool)
    n_positive, n_negative = labels.sum(), (~labels).sum()
    return np.where(labels, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))


def cross_entropy(a, b, scores, targets):
    line = a * np.asarray(scores) + b
    return (targets * np.logaddexp(0, line) + (1 - targets) * np.logaddexp(0, -line)).sum()


@pytest.mark.parametrize("seed", range(10))
@each_method
def test_the_fit_is_scikit_learns(method, seed):
    scores, labels = noisy_sample(400, seed=seed)
    ours = PlattScaling(method).fit(scores, labels)
    theirs = _SigmoidCalibration().fit(scores, labels)
    parameters = (ours.A_, ours.B_)
    assert parameters == pytest.approx((theirs.a_, theirs.b_), rel=1e-3, abs=1e-3)
    targets = platt_targets(labels)
    assert ours.loss_ == pytest.approx(cross_entropy(ours.A_, ours.B_, scores, targets), rel=1e-12)
    assert ours.loss_ <= cross_entropy(theirs.a_, theirs.b_, scores, targets) * (1 + 1e-12)
    gaps = targets - ours.predict(scores)  # the gradient vanishes
    assert max(abs(gaps.sum()), abs((gaps * scores).sum())) < 1e-6
    assert not ours.wrong_sign_


score = st.one_of(
    st.floats(-3, 3),
    st.integers(-2, 2).map(float),
    st.floats(-1e6, 1e6),
    st.sampled_from([1e300, -1e300, 1e-300, 1e8]),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(score, st.booleans()), min_size=1, max_size=40))
def test_both_methods_reach_the_same_loss_and_no_other_line_does_better(sample):
    scores, labels = map(np.array, zip(*sample, strict=True))
    newton = PlattScaling("newton").fit(scores, labels)
    trust = PlattScaling("model-trust").fit(scores, labels)
    assert newton.loss_ == pytest.approx(trust.loss_, rel=1e-6)
    assert newton.A_ <= 0 >= trust.A_
    if np.abs(scores).max() <= 5:
        targets = platt_targets(labels)
        found = minimize(
            lambda v: cross_entropy(v[0], v[1], scores, targets),
            [newton.A_, newton.B_],
            bounds=[(None, 0), (None, None)],
            method="L-BFGS-B",
        )
        assert newton.loss_ <= found.fun * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize(("label", "expected"), [(1, 6 / 7), (0, 1 / 7)])
@each_method
def test_one_class_gives_the_constant_of_platts_targets(method, label, expected):
    fitted = PlattScaling(method).fit([0.1, 0.2, 5.0, -3.0, 1.0], [label] * 5)
    assert fitted.A_ == 0.0
    assert fitted.predict([-1e9, 0.0, 1e9]) == pytest.approx([expected] * 3, rel=1e-15)


@each_method
def test_a_slope_of_the_wrong_sign_becomes_the_best_constant(method):
    scores, labels = noisy_sample(200, slope=-1.0)
    fitted = PlattScaling(method).fit(scores, labels)
    targets = platt_targets(labels)
    assert fitted.wrong_sign_
    assert fitted.A_ == 0.0
    assert fitted.predict([0.0])[0] == pytest.approx(targets.mean())
    assert fitted.loss_ == pytest.approx(cross_entropy(0.0, fitted.B_, scores, targets))


@pytest.mark.parametrize("exponent", [-1000, -300, -50, 50, 300, 1000])
@each_method
def test_scaling_the_scores_by_a_power_of_two_changes_no_probability(method, exponent):
    scores, labels = noisy_sample(150)
    plain = PlattScaling(method).fit(scores, labels)
    scaled = PlattScaling(method).fit(np.ldexp(scores, exponent), labels)
    expected = plain.predict(scores)
    assert scaled.predict(np.ldexp(scores, exponent)).tobytes() == expected.tobytes()


@each_method
def test_a_slope_too_steep_for_a_double_becomes_a_constant(method):
    fitted = PlattScaling(method).fit([0.0, 0.0, 5e-324, 5e-324], [0, 0, 1, 1])
    assert fitted.A_ == 0.0
    assert fitted.predict([1.0])[0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("labels", "message"), [([1, 1, 1], "need both classes"), ([0, 1, 1], "separate the classes")]
)
def test_raw_targets_without_a_finite_optimum_are_refused(labels, message):
    with pytest.raises(InvalidInput, match=message):
        PlattScaling(targets="raw").fit([0.0, 1.0, 2.0], labels)


def test_a_state_that_names_no_method_is_refused():
    state = PlattScaling().fit([0.0, 1.0], [0, 1]).state()
    state["options"][0] = 7
    with pytest.raises(InvalidSnapshot, match="options"):
        PlattScaling.from_state(state)
