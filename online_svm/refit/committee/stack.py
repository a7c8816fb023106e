"""Sigmoids and stack: from the scores of the members of a committee to one log-odds a class.

Both are fitted on *progressive* scores: what each member said of an example of the proper training
set before it learned it. These are out of fold, at no cost.

The sigmoid of a member and class: log-odds a s + b, by Platt's smoothed targets, with a quadratic
penalty that draws a to 1.5 and b to 0, clipped at +-8. The stack weighs the log-odds of the
members: for two classes a logistic regression with an intercept, for more the softmax of the
weighted sum, one weight a member; a penalty draws the weights to equal ones.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from online_svm.compiled.elementary import exp_nonpositive
from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import jit
from online_svm.refit.committee.ridge_logistic import (
    MOST_HALVINGS,
    OVERSHOOT,
    Regression,
    fit_ridge_logistic,
)
from online_svm.storage.arrays import require
from online_svm.storage.fields import Fields, floats
from online_svm.types import Arrays, Bools, Floats, Ints

SLOPE, SLOPE_RIDGE = 1.5, 1.0  # a margin of one is then a probability of .82
MOST_LOG_ODDS = 8.0
WEIGHT_RIDGE, CONSTANT_RIDGE = 10.0, 0.1
FEW = 20  # with no more scores, the weights are equal
STEPS, TOL = 12, 1e-6
MOST_WEIGHT = 1e6
"""Of a weight or constant that is stored.

Where it is least, the penalty is at most the loss of equal weights: at most 21 an example, of
1,000. So weights are below 65; of two classes, with a loss of 8.1, the constant is below 410. What
is beyond this was not fitted, and sums of it might overflow.
"""

FIELDS = Fields(
    floats("slope", "M S"), floats("intercept", "M S"), floats("weights", "M"),
    floats("constant", "1"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stack:
    """What is made of the scores of M members, each one for every one of S decisions.

    Attributes
    ----------
    slope, intercept : ndarray of shape (M, S)
        Of the sigmoids.
    weights : ndarray of shape (M,)
    constant : ndarray of shape (1,)
        The intercept of the stack; 0 for more than two classes.
    """

    slope: Floats
    intercept: Floats
    weights: Floats
    constant: Floats

    @classmethod
    def fit(cls, scores: Floats, codes: Ints, recent: Bools) -> Self:
        """Return sigmoids and stack fitted on progressive scores.

        Parameters
        ----------
        scores : ndarray of shape (n, M, S)
            S = 1: of class 1 of two; else of each class against the rest.
        codes : ndarray of shape (n,)
            Their classes.
        recent : ndarray of shape (n,)
            Which of them the weights are fitted on.

        Examples
        --------
        >>> scores, codes = np.zeros((0, 2, 1)), np.zeros(0, dtype=np.int64)
        >>> stack = Stack.fit(scores, codes, np.zeros(0, dtype=bool))
        >>> stack.apply(np.array([[[2.0], [-1.0]]]))  # (1.5 * 2 - 1.5 * 1) / 2
        array([[0.75]])
        """
        members, decisions = scores.shape[1:]
        positive = codes == 1 if decisions == 1 else codes[:, None] == np.arange(decisions)
        sides = positive.reshape(len(codes), decisions)
        slope, intercept = _fit_sigmoids(np.ascontiguousarray(scores), sides)
        even = np.full(members, 1.0 / members)
        stack = cls(slope, intercept, even, np.zeros(1))
        if np.count_nonzero(recent) <= FEW:
            return stack
        odds = _log_odds(np.ascontiguousarray(scores[recent]), slope, intercept)
        if decisions == 1:
            weights = np.append(even, 0.0)
            fit_two(odds[:, :, 0], sides[recent, 0], weights, TOL)
            return cls(slope, intercept, weights[:-1].copy(), weights[-1:].copy())
        weights = even.copy()
        fit_more(odds, codes[recent], weights, TOL)
        return cls(slope, intercept, weights, np.zeros(1))

    def log_odds(self, scores: Floats) -> Floats:
        """Return the log-odds of each member by its sigmoids, of raw scores (n, M, S)."""
        return _log_odds(scores, self.slope, self.intercept)

    def apply(self, scores: Floats) -> Floats:
        """Return the stacked log-odds of raw scores, shape (n, M, S), as (n, S)."""
        out = np.empty((len(scores), scores.shape[2]))
        _apply(scores, self.slope, self.intercept, self.weights, self.constant, out)
        return out

    def state(self) -> Arrays:
        """Return the attributes by name."""
        return FIELDS.arrays_of(self)

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Return the stack that `state` describes.

        Raises
        ------
        ValueError
            If the parts do not fit one another.
        """
        stack = cls(**FIELDS.values(cls, None, state))
        require(stack.slope.size, "slope")
        require_weights(stack.weights)
        require_weights(stack.constant)
        return stack


def require_weights(weights: Floats) -> None:
    """Raise ValueError unless weights that were stored are such as a fit reaches."""
    require((np.abs(weights) <= MOST_WEIGHT).all(), "weights")


def _fit_sigmoids(scores: Floats, sides: Bools) -> tuple[Floats, Floats]:
    """Return slope and intercept of each member and decision, shape (M, S) both."""
    n, members, decisions = scores.shape
    slope, intercept = np.empty((members, decisions)), np.empty((members, decisions))
    centre, ridge, costs = np.array([SLOPE, 0.0]), np.full(2, SLOPE_RIDGE), np.ones(n)
    features = np.ones((2, n))
    for s in range(decisions):
        count = int(np.count_nonzero(sides[:, s]))
        targets = np.where(sides[:, s], (count + 1) / (count + 2), 1 / (n - count + 2))
        for m in range(members):
            features[0] = scores[:, m, s]
            fitted = centre.copy()
            problem = Regression(features, targets, costs, centre, ridge)
            fit_ridge_logistic(problem, fitted, STEPS, TOL)
            slope[m, s], intercept[m, s] = fitted
    return slope, intercept


def fit_two(odds: Floats, positive: Bools, weights: Floats, tol: float) -> None:
    """Move the weights of the members, shape (M + 1,), the intercept last, to those of two classes.

    Parameters
    ----------
    odds : ndarray of shape (n, M)
    positive : ndarray of shape (n,)
    weights : ndarray of shape (M + 1,)
        Where the fit begins; the solution afterwards.
    tol : float
        The fit ends where no entry of the gradient, a sum over the examples, is larger.
    """
    n, members = odds.shape
    features = np.vstack([odds.T, np.ones(n)])
    centre = np.append(np.full(members, 1.0 / members), 0.0)
    ridge = np.append(np.full(members, WEIGHT_RIDGE), CONSTANT_RIDGE)
    problem = Regression(features, positive.astype(np.float64), np.ones(n), centre, ridge)
    fit_ridge_logistic(problem, weights, STEPS, tol)


@jit
def _log_odds(scores: Floats, slope: Floats, intercept: Floats) -> Floats:
    """Return what the sigmoids make of scores, of the same shape (n, M, S)."""
    odds = np.empty_like(scores)
    for i in range(len(scores)):
        for m in range(scores.shape[1]):
            for s in range(scores.shape[2]):
                value = fma(slope[m, s], scores[i, m, s], intercept[m, s])
                odds[i, m, s] = min(max(value, -MOST_LOG_ODDS), MOST_LOG_ODDS)
    return odds


@jit
def _apply(
    scores: Floats, slope: Floats, intercept: Floats, weights: Floats, constant: Floats, out: Floats
) -> None:
    """Write the stacked log-odds to `out`, shape (n, S); members are added in their order."""
    for i in range(len(scores)):
        for s in range(scores.shape[2]):
            total = constant[0]
            for m in range(scores.shape[1]):
                value = fma(slope[m, s], scores[i, m, s], intercept[m, s])
                total = fma(weights[m], min(max(value, -MOST_LOG_ODDS), MOST_LOG_ODDS), total)
            out[i, s] = total


@jit
def fit_more(odds: Floats, codes: Ints, weights: Floats, tol: float) -> None:
    """Move the weights of M members to the penalised maximum of the softmax likelihood.

    By Newton's method; a step is halved as long as it would end uphill.
    """
    members = len(weights)
    gradient, hessian = np.empty(members), np.empty((members, members))
    direction, start = np.empty(members), np.empty(members)
    _moments(odds, codes, weights, gradient, hessian)
    for _ in range(STEPS):
        if not np.abs(gradient).max() > tol:
            return
        direction[:] = gradient
        _solve(hessian, direction)
        slope, step = 0.0, 1.0
        for m in range(members):
            slope = fma(gradient[m], direction[m], slope)
        start[:] = weights
        for _ in range(MOST_HALVINGS):
            for m in range(members):
                weights[m] = start[m] - step * direction[m]
            _moments(odds, codes, weights, gradient, hessian)
            uphill = 0.0
            for m in range(members):
                uphill = fma(-gradient[m], direction[m], uphill)
            if uphill <= OVERSHOOT * slope:
                break
            step *= 0.5


@jit
def _moments(odds: Floats, codes: Ints, weights: Floats, gradient: Floats, hessian: Floats) -> None:
    """Write gradient and lower half of the Hessian of the penalised negative log-likelihood.

    The gradient by w_m is sum_i (E_i[l_m] - l_m of the true class), where E_i is the mean over the
    classes by their probability; the Hessian is the sum of the covariances of the l_m.
    """
    n, members, classes = odds.shape
    p, mean = np.empty(classes), np.empty(members)
    # 1. The penalty, which draws to equal weights.
    hessian[:] = 0.0
    for a in range(members):
        gradient[a] = WEIGHT_RIDGE * (weights[a] - 1.0 / members)
        hessian[a, a] = WEIGHT_RIDGE
    for i in range(n):
        # 2. The probabilities of the classes.
        _softmax(odds[i], weights, p)
        # 3. Means and covariances of the log-odds of the members.
        for a in range(members):
            mean[a] = 0.0
            for k in range(classes):
                mean[a] = fma(p[k], odds[i, a, k], mean[a])
            gradient[a] += mean[a] - odds[i, a, codes[i]]
        for a in range(members):
            for b in range(a + 1):
                total = 0.0
                for k in range(classes):
                    apart = (odds[i, a, k] - mean[a]) * (odds[i, b, k] - mean[b])
                    total = fma(p[k], apart, total)
                hessian[a, b] += total


@jit
def _softmax(odds: Floats, weights: Floats, p: Floats) -> None:
    members, classes = odds.shape
    highest = -np.inf
    for k in range(classes):
        total = 0.0
        for m in range(members):
            total = fma(weights[m], odds[m, k], total)
        p[k] = total
        highest = max(highest, total)
    whole = 0.0
    for k in range(classes):
        p[k] = exp_nonpositive(p[k] - highest)
        whole += p[k]
    for k in range(classes):
        p[k] /= whole


@jit
def _solve(A: Floats, b: Floats) -> None:
    """Write A^-1 b to b, of a positive definite A of which the lower half is given, by Cholesky."""
    n = len(b)
    for i in range(n):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = np.sqrt(total) if i == j else total / A[j, j]
    for i in range(n):
        for k in range(i):
            b[i] -= A[i, k] * b[k]
        b[i] /= A[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= A[k, i] * b[k]
        b[i] /= A[i, i]
