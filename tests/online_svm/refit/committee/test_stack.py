"""Sigmoids and stack, against scipy's minimiser of the same objective written out."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from online_svm.refit.committee.stack import MAX_SCORES_FOR_EQUAL_WEIGHTS, Stack


def said(n, members, decisions, seed=0):
    """Scores of members of different worth, and the classes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, max(decisions, 2), n)
    positive = codes == 1 if decisions == 1 else codes[:, None] == np.arange(decisions)
    truth = np.where(positive.reshape(n, decisions), 1.0, -1.0)
    noise = rng.normal(size=(n, members, decisions)) * (0.5 + np.arange(members))[:, None]
    return truth[:, None, :] + noise, codes


def all_recent(codes):
    return np.ones(len(codes), dtype=bool)


def sigmoid_objective(fitted, score, positive):
    count, n = positive.sum(), len(positive)
    t = np.where(positive, (count + 1) / (count + 2), 1 / (n - count + 2))
    f = fitted[0] * score + fitted[1]
    return (np.logaddexp(0, f) - t * f).sum() + 0.5 * ((fitted[0] - 1.5) ** 2 + fitted[1] ** 2)


@pytest.mark.parametrize("decisions", [1, 3])
def test_each_sigmoid_minimises_its_penalised_loss_of_smoothed_targets(decisions):
    scores, codes = said(150, 3, decisions)
    stack = Stack.fit(scores, codes, all_recent(codes))
    for m in range(3):
        for s in range(decisions):
            positive = codes == (1 if decisions == 1 else s)
            fitted = np.array([stack.slope[m, s], stack.intercept[m, s]])
            parts = (scores[:, m, s], positive)
            best = minimize(sigmoid_objective, fitted, parts, method="BFGS")
            assert sigmoid_objective(fitted, *parts) <= best.fun + 1e-7


def odds_of(stack, scores):
    return np.clip(stack.slope * scores + stack.intercept, -8.0, 8.0)


def test_the_weights_of_two_classes_minimise_the_penalised_logistic_loss():
    scores, codes = said(200, 3, 1)
    recent = np.arange(200) >= 60
    stack = Stack.fit(scores, codes, recent)
    odds = odds_of(stack, scores[recent])[:, :, 0]

    def objective(w):
        f = odds @ w[:3] + w[3]
        loss = (np.logaddexp(0, f) - (codes[recent] == 1) * f).sum()
        return loss + 5.0 * ((w[:3] - 1 / 3) ** 2).sum() + 0.05 * w[3] ** 2

    found = np.append(stack.weights, stack.constant)
    assert objective(found) <= minimize(objective, found, method="BFGS").fun + 1e-7
    assert stack.weights[0] > stack.weights[2]


@pytest.mark.parametrize("classes", [3, 7])
def test_the_weights_of_more_classes_minimise_the_penalised_softmax_loss(classes):
    scores, codes = said(200, 3, classes)
    stack = Stack.fit(scores, codes, all_recent(codes))
    odds = odds_of(stack, scores)

    def objective(w):
        logs = log_softmax(np.einsum("nms,m->ns", odds, w), axis=1)
        return -logs[np.arange(200), codes].sum() + 5.0 * ((w - 1 / 3) ** 2).sum()

    assert objective(stack.weights) <= minimize(objective, stack.weights).fun + 1e-7
    expected = np.einsum("nms,m->ns", odds, stack.weights) + stack.constant
    np.testing.assert_allclose(stack.apply(scores), expected, rtol=1e-12, atol=1e-12)


def test_more_classes_whose_members_are_confident_and_wrong_get_finite_weights():
    scores, codes = said(600, 4, 3)
    scores *= 40.0
    codes = (codes + 1) % 3
    weights = Stack.fit(scores, codes, all_recent(codes)).weights
    assert np.abs(weights).max() < 2.0


def test_with_few_scores_the_weights_are_equal():
    scores, codes = said(MAX_SCORES_FOR_EQUAL_WEIGHTS, 4, 1)
    stack = Stack.fit(scores, codes, all_recent(codes))
    assert stack.weights.tolist() == [0.25] * 4
    assert stack.constant.tolist() == [0.0]
    more, codes = said(MAX_SCORES_FOR_EQUAL_WEIGHTS + 1, 4, 1)
    assert Stack.fit(more, codes, all_recent(codes)).weights.tolist() != [0.25] * 4
