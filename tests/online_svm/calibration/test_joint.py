"""Joint maps of the scores of all classes, against scipy's minimisers of the same loss."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from system_tools import package

from online_svm import MatrixScaling, PlattScaling, TemperatureScaling, VectorScaling
from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.errors import InvalidInput, InvalidSnapshot

MAPS = [TemperatureScaling(), VectorScaling(), MatrixScaling(ridge=3.0)]
each_map = pytest.mark.parametrize("map_", MAPS, ids=repr)


def sample(n_classes, n=300, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    scores = rng.normal(size=(n, n_classes)) * 2.0
    scores[np.arange(n), codes] += 1.5 + 0.5 * codes
    return scores, codes


def targets(codes, n_classes):
    counts = np.bincount(codes, minlength=n_classes)
    high = (counts + 1.0) / (counts + 2.0)
    found = np.repeat((1.0 - high[codes])[:, None] / (n_classes - 1), n_classes, axis=1)
    found[np.arange(len(codes)), codes] = high[codes]
    return found


def loss(logits, codes):
    return float(-(targets(codes, logits.shape[1]) * log_softmax(logits, axis=1)).sum())


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("unit", [1.0, 1e-3, 250.0])
def test_the_temperature_is_the_best_of_all(n_classes, unit):
    scores, codes = sample(n_classes)
    fitted = TemperatureScaling().fit(scores * unit, codes)
    best = minimize_scalar(lambda beta: loss(beta * scores, codes), (0.1, 1.0), tol=1e-12)
    assert fitted.inverse_temperature_ * unit == pytest.approx(best.x, rel=1e-6)
    expected = softmax(fitted.inverse_temperature_ * scores * unit, axis=1)
    np.testing.assert_allclose(fitted.predict(scores * unit), expected, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_vector_scaling_reaches_the_loss_of_another_minimiser(n_classes):
    scores, codes = sample(n_classes)
    found = VectorScaling().fit(scores, codes).predict(scores)

    def loss_of(theta):
        return loss(theta[:n_classes] * scores + theta[n_classes:], codes)

    best = minimize(loss_of, np.append(np.ones(n_classes), np.zeros(n_classes)), tol=1e-10)
    ours = loss(np.log(found), codes)
    assert ours <= best.fun * (1.0 + 1e-6)
    expected = softmax(best.x[:n_classes] * scores + best.x[n_classes:], axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("ridge", [0.5, 10.0])
def test_matrix_scaling_reaches_the_loss_of_another_minimiser(n_classes, ridge):
    scores, codes = sample(n_classes)
    fitted = MatrixScaling(ridge).fit(scores, codes)
    scaled = TemperatureScaling().fit(scores, codes).inverse_temperature_ * scores
    eye = np.eye(n_classes)

    def objective(theta):
        W, b = theta[:-n_classes].reshape(eye.shape), theta[-n_classes:]
        return loss(scaled @ W.T + b, codes) + 0.5 * ridge * float(((W - eye) ** 2).sum())

    best = minimize(objective, np.append(eye.ravel(), np.zeros(n_classes)), tol=1e-10)
    W, b = best.x[:-n_classes].reshape(eye.shape), best.x[-n_classes:]
    expected = softmax(scaled @ W.T + b, axis=1)
    np.testing.assert_allclose(fitted.predict(scores), expected, atol=2e-4)


def test_vector_scaling_of_a_single_column_is_platt_scaling():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=200)
    labels = (scores + rng.normal(size=200) > 0.0).astype(np.int64)
    platt = PlattScaling().fit(scores, labels).predict(scores)
    found = VectorScaling().fit(scores[:, None], labels).predict(scores[:, None])
    np.testing.assert_allclose(found[:, 1], platt, atol=1e-4)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-15)


@each_map
def test_a_stored_map_answers_byte_for_byte(map_):
    scores, codes = sample(3)
    fitted = clone(map_).fit(scores, codes)
    restored = type(map_).from_state(fitted.state())
    np.testing.assert_array_equal(restored.predict(scores), fitted.predict(scores))
    state = fitted.state()
    for damaged in (
        state | {"parameters": state["parameters"][:-1]},
        state | {"parameters": np.full_like(state["parameters"], np.nan)},
        state | {"n_classes": np.array([0])},
        state | {"n_classes": np.array([10**12])},
    ):
        with pytest.raises(InvalidSnapshot):
            type(map_).from_state(damaged)


@each_map
def test_without_examples_all_classes_are_alike(map_):
    fitted = clone(map_).fit(np.empty((0, 4)), np.empty(0, dtype=np.int64))
    np.testing.assert_array_equal(fitted.predict([[9.0, -1.0, 0.0, 2.0]]), np.full((1, 4), 0.25))


@each_map
def test_separable_scores_have_a_finite_optimum(map_):
    codes = np.arange(60) % 3
    scores = np.eye(3)[codes]
    fitted = clone(map_).fit(scores, codes)
    found = fitted.predict(scores)[np.arange(60), codes]
    np.testing.assert_allclose(found, 21 / 22, atol=2e-3)  # the target, (N + 1) / (N + 2)
    assert np.isfinite(fitted.state()["parameters"]).all()


def test_scores_that_point_the_wrong_way_say_nothing_to_the_temperature():
    scores, codes = np.eye(3)[[1, 2, 0] * 9], np.array([0, 1, 2] * 9)
    fitted = TemperatureScaling().fit(scores, codes)
    assert fitted.inverse_temperature_ == 0.0
    np.testing.assert_allclose(fitted.predict(scores), 1 / 3)


@each_map
@pytest.mark.parametrize("size", [1e-300, 1e300, 1.7e308])
def test_scores_of_any_finite_size_give_probabilities(map_, size):
    scores, codes = sample(3, n=60)
    scores = np.clip(scores, -1.0, 1.0) * size
    found = clone(map_).fit(scores, codes).predict(np.vstack([scores, -scores]))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)


@each_map
@pytest.mark.parametrize(
    ("scores", "labels", "told"),
    [
        ([[0.0, np.nan]], [0], "scores: value 1 is nan"),
        ([[0.0, 1.0]], [2], r"codes: must lie in 0\.\.1"),
        ([[0.0, 1.0]], [0, 1], "codes: expected 1 integers"),
        ([0.0, 1.0], [0, 1], "scores: expected shape"),
    ],
)
def test_what_is_no_score_or_class_is_refused(map_, scores, labels, told):
    with pytest.raises(InvalidInput, match=told):
        clone(map_).fit(scores, labels)


@each_map
def test_scores_of_another_number_of_classes_are_refused(map_):
    fitted = clone(map_).fit(*sample(3))
    with pytest.raises(InvalidInput, match="expected the columns of 3 classes, as in fit, got 4"):
        fitted.predict(np.zeros((1, 4)))
    for error in (NotFittedError, InvalidInput):
        with pytest.raises(error, match="not fitted yet"):
            clone(map_).predict([[0.0, 1.0]])


@pytest.mark.parametrize("ridge", [-1.0, np.nan, np.inf])
def test_a_ridge_that_is_no_penalty_is_refused(ridge):
    for make in (lambda: MatrixScaling(ridge), lambda: MatrixScaling().set_params(ridge=ridge)):
        with pytest.raises(InvalidInput, match="ridge: must be finite and not negative"):
            make().fit(*sample(3))


TABLES = {
    "pandas": pd.DataFrame,
    "polars": lambda columns: package("polars", "pip install polars").DataFrame(columns),
    "pyarrow": lambda columns: package("pyarrow", "pip install pyarrow").table(columns),
}


@pytest.mark.parametrize("form", TABLES)
@pytest.mark.parametrize(
    "make", [TemperatureScaling, VectorScaling, MatrixScaling, lambda: OneAgainstAll(PlattScaling)]
)
def test_named_columns_are_found_by_their_codes(make, form):
    table = TABLES[form]
    scores = np.random.default_rng(5).normal(size=(90, 3))
    codes = (scores + np.random.default_rng(6).normal(size=(90, 3))).argmax(axis=1)
    expected = make().fit(scores, codes).predict(scores)
    for order in ((2, 0, 1), (0, 1, 2), (1, 0, 2)):
        frame = table({str(k): scores[:, k] for k in order})
        assert_array_equal(make().fit(frame, codes).predict(frame), expected)
        assert_array_equal(make().fit(scores, codes).predict(frame), expected)
    named = table({name: scores[:, k] for k, name in enumerate("bca")})
    with pytest.raises(
        InvalidInput,
        match=r"^scores: it has the columns 'b', 'c', 'a'; give one for each of the classes, 0, 1, "
        "2, or an array in this order$",
    ):
        make().fit(named, codes)


def test_a_single_named_column_is_about_the_second_class():
    scores = np.linspace(-1.0, 1.0, 20)
    codes = (scores > 0.2).astype(int)
    fitted = VectorScaling().fit(scores[:, None], codes)
    for name in ("score", 1):
        frame = pd.DataFrame({name: scores})
        assert_array_equal(fitted.predict(frame), fitted.predict(scores[:, None]))
    with pytest.raises(InvalidInput, match=r"^scores: it has the columns '0'"):
        fitted.predict(pd.DataFrame({"0": scores}))
