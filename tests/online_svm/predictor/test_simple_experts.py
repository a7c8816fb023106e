"""Base rates against their formula, regressions against scikit-learn; classes, states."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from online_svm.predictor import simple_experts
from online_svm.predictor.expert import RowsToLearn
from online_svm.predictor.simple_experts import (
    INTERCEPT_PENALTY,
    LARGEST_VALUE,
    MAX_FIT_CELLS,
    MAX_FIT_ROWS,
    PENALTIES,
    SimpleExperts,
    bounded,
    max_fit_rows,
    next_fit,
)
from online_svm.refit.scaling import Scaling


def sample(n, k, d=4, seed=0):
    """Return features of different sizes, and columns of overlapping classes."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, k, n)
    X = rng.normal(size=(n, d))
    X[:, 0] += columns
    X[:, 1] -= columns == 1
    return X * 10.0 ** np.arange(d) + 3.0, columns


def fitted(X, columns, k):
    experts = SimpleExperts(k)
    experts.fit(X, columns, Scaling.fit(X, standard=True))
    return experts


def answers(experts, X, columns=None, scaled=None):
    """Return the answers of all experts, shape (N_EXPERTS, m, k)."""
    columns = np.full(len(X), -1) if columns is None else columns
    return np.array(experts.answer(RowsToLearn(X, scaled, columns, None), {}))


def regression(X, hits, penalty):
    """Return the tight fit of scikit-learn: features, then the intercept as one more feature."""
    scaled = np.clip((X - X.mean(axis=0)) / X.std(axis=0), -LARGEST_VALUE, LARGEST_VALUE)
    # Its penalty is the same on all weights: a constant feature of this size has the other one.
    size = np.sqrt(penalty / INTERCEPT_PENALTY)
    features = np.column_stack([scaled, np.full(len(X), size)])
    model = LogisticRegression(C=1.0 / penalty, fit_intercept=False, tol=1e-10, max_iter=10_000)
    return model.fit(features, hits).predict_proba(features)[:, 1]


def test_the_base_rate_is_the_smoothed_share_of_the_labels_before():
    columns = np.array([2, -1, 2, 0, 3, 2])  # column 3 is none of the classes
    found = answers(SimpleExperts(3), np.zeros((6, 1)), columns)
    counts = np.zeros(3)
    for i, column in enumerate(columns):
        rates = (counts + 0.5) / (counts.sum() + 1.5)
        for expert in found:  # without fit and model, all answer so
            np.testing.assert_allclose(expert[i], rates, rtol=1e-15)
        if 0 <= column < 3:
            counts[column] += 1


@pytest.mark.parametrize("n", [60, 400])
def test_two_classes_are_answered_as_by_scikit_learn(n):
    X, columns = sample(n, 2)
    found = answers(fitted(X, columns, 2), X)
    for expert, penalty in zip(found[1:], PENALTIES, strict=True):
        np.testing.assert_allclose(expert[:, 1], regression(X, columns == 1, penalty), atol=5e-3)
        np.testing.assert_allclose(expert.sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("n", [60, 400])
def test_more_classes_are_normalised_regressions_of_one_against_the_rest(n):
    X, columns = sample(n, 4)
    found = answers(fitted(X, columns, 4), X)
    for expert, penalty in zip(found[1:], PENALTIES, strict=True):
        each = np.stack([regression(X, columns == y, penalty) for y in range(4)], axis=1)
        np.testing.assert_allclose(expert, each / each.sum(axis=1, keepdims=True), atol=5e-3)


def test_a_class_without_examples_keeps_its_base_rate():
    X, columns = sample(100, 2)
    experts = fitted(X, np.where(columns == 1, 2, 0), 4)  # columns 0 and 2 of 4
    _, two = sample(100, 2)
    alone = answers(fitted(X, two, 2), X)
    answers(experts, X[:4], np.array([0, 2, 1, 2]))
    rates = (np.array([1.0, 1.0, 2.0, 0.0]) + 0.5) / 6.0
    found = answers(experts, X)
    for expert, of_two in zip(found[1:], alone[1:], strict=True):
        np.testing.assert_allclose(expert[:, [1, 3]], np.tile(rates[[1, 3]], (100, 1)))
        np.testing.assert_allclose(expert[:, [0, 2]], of_two * (rates[0] + rates[2]), rtol=1e-12)


def test_rows_that_a_model_has_scaled_give_the_same_answers():
    X, columns = sample(50, 2)
    experts, scaling = fitted(X, columns, 2), Scaling.fit(X, standard=True)
    assert experts.scales_like(scaling)
    assert not experts.scales_like(Scaling.fit(X[1:], standard=True))
    assert not SimpleExperts(2).scales_like(scaling)
    found = answers(experts, X, scaled=scaling.transform(X))
    np.testing.assert_array_equal(found, answers(experts, X))


def test_a_regression_does_not_extrapolate():
    X, columns = sample(100, 2)
    experts = fitted(X, columns, 2)
    far, farther = np.full((1, 4), 1e9), np.full((1, 4), 1e300)
    np.testing.assert_array_equal(answers(experts, far), answers(experts, farther))
    assert np.isfinite(answers(experts, -farther)).all()


def test_huge_values_are_cut_unless_rows_have_names():
    X = np.array([[1e300, -1e300, 2.0, np.nan]])
    np.testing.assert_array_equal(bounded(X, None), [[1e100, -1e100, 2.0, np.nan]])
    assert bounded(X, object()) is X


def test_only_the_newest_examples_are_fitted(monkeypatch):
    X, columns = sample(120, 2)
    wrong = np.concatenate([1 - columns[:40], columns[40:]])
    monkeypatch.setattr(simple_experts, "MAX_FIT_ROWS", 80)
    scaling = Scaling.fit(X, standard=True)
    found = []
    for labels in (columns, wrong):
        experts = SimpleExperts(2)
        experts.fit(X, labels, scaling)
        found.append(experts.state().arrays["weights"])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("columns", "rows"),
    [(1, MAX_FIT_ROWS), (60, MAX_FIT_ROWS), (100, MAX_FIT_CELLS // 100), (10_000, 50)],
)
def test_wide_rows_are_fitted_with_fewer_examples(columns, rows):
    assert max_fit_rows(columns) == rows


def test_fits_begin_where_the_last_ones_ended():
    X, columns = sample(200, 2)
    experts = fitted(X[:150], columns[:150], 2)
    scaling = Scaling.fit(X, standard=True)
    experts.fit(X, columns, scaling)
    afresh = fitted(X, columns, 2)
    one, other = experts.state().arrays["weights"], afresh.state().arrays["weights"]
    np.testing.assert_allclose(one, other, atol=0.02)
    assert (one != other).any()


@pytest.mark.parametrize("column", [0, 1])
def test_examples_of_one_class_give_base_rates(column):
    X, columns = sample(50, 2)
    experts = fitted(X, columns, 2)
    experts.fit(X[:20], np.full(20, column), Scaling.fit(X[:20], standard=True))
    found = answers(experts, X)
    assert (found == 0.5).all()


def test_fits_come_at_4_5_and_6_times_each_power_of_two_then_at_doublings():
    fits = [4]
    while fits[-1] < 5000:
        fits.append(next_fit(fits[-1]))
    below = sorted(f * 2**p for f in (4, 5, 6) for p in range(8) if f * 2**p <= 512)
    assert fits == [*below, 1024, 2048, 4096, 8192]
    for n in range(5000):
        assert next_fit(n) == min(fit for fit in fits if fit > n)


def test_other_classes_keep_their_counts_and_wait_for_a_fit():
    experts = fitted(*sample(50, 3), 3)
    answers(experts, np.zeros((6, 4)), np.array([0, 0, 0, 1, 2, 2]))
    wider = experts.moved([0, 2, 3], 4)
    assert wider.state().arrays["counts"].tolist() == [3.0, 0.0, 1.0, 2.0]
    merged = experts.moved([0, 1, 1], 2)
    assert merged.state().arrays["counts"].tolist() == [3.0, 3.0]
    found = answers(wider, np.ones((1, 4)))
    for expert in found:
        np.testing.assert_allclose(expert[0], np.array([3.5, 0.5, 1.5, 2.5]) / 8.0)


def test_a_fit_is_tight_enough_for_its_penalty():
    """The largest entry of the gradient bounds the distance from the optimum by its penalty."""
    X, columns = sample(300, 2)
    state = fitted(X, columns, 2).state().arrays
    scaled = np.clip((X - X.mean(axis=0)) / X.std(axis=0), -LARGEST_VALUE, LARGEST_VALUE)
    features = np.column_stack([scaled, np.ones(300)])
    for weights, penalty in zip(state["weights"][:, 0], PENALTIES, strict=True):
        ridge = np.append(np.full(4, penalty), INTERCEPT_PENALTY)
        gradient = features.T @ (expit(features @ weights) - columns) + ridge * weights
        assert np.abs(gradient).max() <= simple_experts.FIT_TOLERANCE
