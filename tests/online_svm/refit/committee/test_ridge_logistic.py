"""Penalised logistic regression by our own sums, against scipy's minimiser."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from online_svm.refit.committee.committee import INTERCEPT_RIDGE, LogisticMachine
from online_svm.refit.committee.ridge_logistic import Regression, fit_ridge_logistic


def objective(weights, features, targets, costs, centre, ridge):
    f = weights @ features
    losses = costs * (np.logaddexp(0.0, f) - targets * f)
    return losses.sum() + 0.5 * (ridge * (weights - centre) ** 2).sum()


def problem(n, p, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    return (
        scale * rng.normal(size=(p, n)), rng.uniform(size=n), rng.uniform(0.1, 5.0, size=n),
        rng.normal(size=p), rng.uniform(0.1, 10.0, size=p),
    )  # fmt: skip


@given(
    n=st.integers(0, 60), p=st.integers(1, 12), seed=st.integers(0, 500),
    scale=st.sampled_from([1e-3, 1.0, 30.0]),
)  # fmt: skip
def test_the_minimum_is_the_one_that_scipy_finds(n, p, seed, scale):
    parts = problem(n, p, seed, scale)
    weights = np.zeros(p)
    fit_ridge_logistic(Regression(*parts), weights, 200, 1e-9)
    best = minimize(objective, np.zeros(p), parts, method="BFGS", options={"gtol": 1e-8})
    assert objective(weights, *parts) <= best.fun + 1e-7 * max(1.0, abs(best.fun))


@pytest.mark.parametrize("seed", range(20))
def test_a_dozen_steps_suffice_from_a_start_that_is_far_off_and_confident(seed):
    features, targets, costs, centre, _ = problem(500, 4, seed, scale=5.0)
    targets = (targets < 0.5).astype(float)
    parts = (features, targets, costs, np.zeros(4), np.full(4, 10.0))
    weights = np.full(4, 8.0) * np.sign(centre)
    fit_ridge_logistic(Regression(*parts), weights, 12, 1e-6)
    best = minimize(objective, np.zeros(4), parts, method="BFGS")
    assert objective(weights, *parts) <= best.fun + 1e-3


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_machine_minimises_its_objective_for_every_class(n_classes):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, n_classes, 120)
    X = rng.normal(size=(120, 5)) + codes[:, None] * np.array([1.0, 0.5, 0.0, 0.0, -1.0])
    penalties = np.arange(1.0, n_classes + 1.0)
    machine = LogisticMachine(n_classes, 5)
    for _ in range(5):  # each goes on where the last one ended
        machine.fit(X, codes, penalties)
    features, ridge = np.vstack([X.T, np.ones(120)]), np.append(np.ones(5), INTERCEPT_RIDGE)
    for s, weights in enumerate(machine.weights):
        positive = 1 if n_classes == 2 else s
        parts = (features, (codes == positive) * 1.0, penalties[codes], np.zeros(6), ridge)
        best = minimize(objective, np.zeros(6), parts, method="BFGS")
        assert objective(weights, *parts) <= best.fun + 1e-4
    expected = X @ machine.weights[:, :-1].T + machine.weights[:, -1]
    np.testing.assert_allclose(machine.model().scores(X), expected, atol=1e-12)


def test_a_machine_that_saw_one_class_only_says_so_with_a_finite_score():
    machine = LogisticMachine(2, 2)
    machine.fit(np.zeros((50, 2)), np.ones(50, dtype=np.int64), np.ones(2))
    (score,) = machine.model().scores(np.zeros((1, 2)))[0]
    assert 2.0 < score < 20.0
