"""Sigmoids and stack: from the scores of a committee's members to the log-odds of each class.

Both are fitted on *progressive* scores: a member scores an example of the proper training set
before it learns the example. Such scores are out of fold and cost nothing extra.

The sigmoid of a member and class gives log-odds a s + b, clipped at +-8; it is fitted to Platt's
smoothed targets with a quadratic penalty centred at a = 1.5, b = 0. The stack weights the log-odds
of the members, with one weight a member: for two classes by a logistic regression with an
intercept, for more by the softmax of the weighted sums. Its penalty is centred at equal weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.compiled.kernels import Kernel
from online_svm.refit.committee.boosting import TreeModel
from online_svm.refit.committee.ridge_logistic import Regression, fit_ridge_logistic
from online_svm.storage.state import nest, require, under
from online_svm.storage.state_schema import StateSchema, StoredRecord, floats
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Arrays, Bools, Floats, Ints

SLOPE, SLOPE_RIDGE = 1.5, 1.0  # with this slope a score of 1 has probability .82
WEIGHT_RIDGE, CONSTANT_RIDGE = 10.0, 0.1
MAX_SCORES_FOR_EQUAL_WEIGHTS = 20  # up to this many scores the weights are equal
MAX_NEWTON_STEPS, GRADIENT_TOLERANCE = 12, 1e-6
ROWS = 64  # rows of a chunk of a softmax stack; as in stack.c
MAX_WEIGHT = 1e6
"""Limit on a stored weight or constant.

At the minimum the penalty is at most the loss of equal weights, which is below 21 for each of 1,000
examples: fitted weights are below 65. For two classes the loss is below 8.1 and the constant below
410. Sums of values beyond the limit might overflow.
"""

STACK_SCHEMA = StateSchema(
    floats("slope", "M S"), floats("intercept", "M S"), floats("weights", "M"),
    floats("constant", "1"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stack(StoredRecord):
    """Sigmoids and weights of M members with S decisions each."""

    _stored = STACK_SCHEMA

    slope: Floats  # shape (M, S); slopes of the sigmoids
    intercept: Floats  # shape (M, S); intercepts of the sigmoids
    weights: Floats  # shape (M,)
    constant: Floats  # shape (1,); the intercept of the stack; 0 for more than two classes

    @classmethod
    def fit(cls, scores: Floats, codes: Ints, recent: Bools) -> Self:
        """Return sigmoids and stack fitted on progressive scores.

        `scores`, shape (n, M, S): S = 1, the score of class 1, for two classes; else one score for
            each class against the rest.
        `codes`, shape (n,): class of each example.
        `recent`, shape (n,): whether the weights are fitted on an example.
        """
        members, decisions = scores.shape[1:]
        positive = codes == 1 if decisions == 1 else codes[:, None] == np.arange(decisions)
        sides = positive.reshape(len(codes), decisions)
        slope, intercept = _fit_sigmoids(np.ascontiguousarray(scores), sides)
        even = np.full(members, 1.0 / members)
        stack = cls(slope, intercept, even, np.zeros(1))
        if np.count_nonzero(recent) <= MAX_SCORES_FOR_EQUAL_WEIGHTS:
            return stack
        odds = _odds_of(np.ascontiguousarray(scores[recent]), slope, intercept)
        if decisions == 1:
            weights = np.append(even, 0.0)
            fit_two(odds[:, :, 0], sides[recent, 0], weights, GRADIENT_TOLERANCE)
            return cls(slope, intercept, weights[:-1].copy(), weights[-1:].copy())
        weights = even.copy()
        fit_more(odds, codes[recent], weights, GRADIENT_TOLERANCE)
        return cls(slope, intercept, weights, np.zeros(1))

    def log_odds(self, scores: Floats) -> Floats:
        """Return the log-odds of each member from raw scores; both have shape (n, M, S)."""
        return _odds_of(scores, self.slope, self.intercept)

    def apply(self, scores: Floats) -> Floats:
        """Return the stacked log-odds, shape (n, S), from raw scores of shape (n, M, S)."""
        out = np.empty((len(scores), scores.shape[2]))
        _apply(scores, self.slope, self.intercept, self.weights, self.constant, out)
        return out

    def _on_restored(self) -> None:
        require(self.slope.size, "slope")
        require_weights(self.weights)
        require_weights(self.constant)


def require_weights(weights: Floats) -> None:
    """Raise ValueError unless stored weights are within the range of a fit."""
    require((np.abs(weights) <= MAX_WEIGHT).all(), "weights")


def _fit_sigmoids(scores: Floats, sides: Bools) -> tuple[Floats, Floats]:
    """Return slope and intercept of each member and decision, both of shape (M, S)."""
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
            fit_ridge_logistic(problem, fitted, MAX_NEWTON_STEPS, GRADIENT_TOLERANCE)
            slope[m, s], intercept[m, s] = fitted
    return slope, intercept


def fit_two(odds: Floats, positive: Bools, weights: Floats, tol: float) -> None:
    """Fit the stack weights of two classes, in place, starting from `weights`.

    `odds`, shape (n, M).
    `positive`, shape (n,).
    `weights`, shape (M + 1,): the intercept is last.
    `tol`: the largest entry of the gradient, a sum over the examples, at which to stop.
    """
    n, members = odds.shape
    features = np.ascontiguousarray(np.vstack([odds.T, np.ones(n)]))
    centre = np.append(np.full(members, 1.0 / members), 0.0)
    ridge = np.append(np.full(members, WEIGHT_RIDGE), CONSTANT_RIDGE)
    problem = Regression(features, positive.astype(np.float64), np.ones(n), centre, ridge)
    fit_ridge_logistic(problem, weights, MAX_NEWTON_STEPS, tol)


def fit_more(odds: Floats, codes: Ints, weights: Floats, tol: float) -> None:
    """Fit the stack weights of K > 2 classes, in place, by penalised softmax likelihood.

    `odds`, shape (n, M, K).
    `codes`, shape (n,).
    `weights`, shape (M,): the start, replaced by the solution.
    `tol`: as in `fit_two`.
    """
    centre = np.full(odds.shape[1], 1.0 / odds.shape[1])
    fit_softmax(SoftmaxStack(odds, codes, centre, WEIGHT_RIDGE), weights, tol)


class SoftmaxStack(NamedTuple):
    """A penalised softmax regression with one weight for each of M members."""

    odds: Floats  # shape (n, M, K)
    codes: Ints  # shape (n,)
    centre: Floats  # shape (M,); centre of the penalty
    ridge: float  # strength of the penalty


def fit_softmax(examples: SoftmaxStack, weights: Floats, tol: float) -> None:
    """Minimise the penalised softmax loss, in place, by damped Newton steps; as `fit_more`."""
    members, classes = examples.odds.shape[1:]
    of_rows = np.empty(((members + 1) * (classes + 1) + 2, ROWS))
    _fit_more(examples, weights, tol, np.empty((members + 3, members)), of_rows)


def _odds_of(scores: Floats, slope: Floats, intercept: Floats) -> Floats:
    odds = np.empty(scores.shape)
    _log_odds(scores, slope, intercept, odds)
    return odds


@kernel
def _log_odds(scores: Floats, slope: Floats, intercept: Floats, odds: Floats) -> None:
    """Write the log-odds of each member to `odds`, shape (n, M, S)."""


@kernel
def _apply(
    scores: Floats, slope: Floats, intercept: Floats, weights: Floats, constant: Floats, out: Floats
) -> None:
    """Write the stacked log-odds to `out`, shape (n, S)."""


@kernel
def _fit_more(
    examples: SoftmaxStack, weights: Floats, tol: float, of_members: Floats, of_rows: Floats
) -> None:
    """Implement `fit_softmax`.

    Scratch: `of_members`, shape (M + 3, M); `of_rows`, shape ((M + 1)(K + 1) + 2, `ROWS`).
    """


Scorer = KernelModel | TreeModel


@dataclass(frozen=True, slots=True)
class CommitteeModel:
    """Log-odds of a class: sum_m w_m clip(a_m f_m(x) + b_m) + c, over the members m.

    For two classes these are the log-odds of class 1; for more, the logits of a softmax. The bits
    of a row's score do not depend on the other rows.
    """

    machines: tuple[Scorer, ...]  # one for each member, all with S decision functions
    stack: Stack

    @property
    def kernels(self) -> tuple[Kernel | None, ...]:
        """Kernels of the machines; None for trees."""
        return tuple(getattr(machine, "kernel", None) for machine in self.machines)

    def scores(self, X: Floats) -> Floats:
        """Return the stacked log-odds of the rows of X, shape (m, S)."""
        return self.stack.apply(member_scores(self.machines, X))

    def member_outputs(self, X: Floats) -> tuple[Floats, Floats]:
        """Return `scores` and the log-odds of each member, shape (m, M, S)."""
        scores = member_scores(self.machines, X)
        return self.stack.apply(scores), self.stack.log_odds(scores)

    def state(self) -> Arrays:
        """Return the parts by name, without the kernels."""
        arrays = nest("stack", self.stack.state())
        for m, machine in enumerate(self.machines):
            arrays |= nest(str(m), machine.state())
        return arrays

    @classmethod
    def from_state(cls, state: Arrays, kernels: Sequence[Kernel | None], n_features: int) -> Self:
        """Return the model described by `state`, for rows with `n_features` features."""
        stack = Stack.from_state(under("stack", state))
        members, decisions = stack.slope.shape
        require(len(kernels) == members, "kernels")
        machines: list[Scorer] = []
        for m, own in enumerate(kernels):
            parts = under(str(m), state)
            if own is None:
                trees = TreeModel.from_state(parts)
                trees.check_width(n_features)
                require(trees.leaves.shape[2] == decisions, "leaves")
                machines.append(trees)
                continue
            machine = KernelModel.from_state(parts, own)
            require(len(machine.intercept) == decisions, "intercept")
            require(len(machine.vectors) == n_features, "vectors")
            machines.append(machine)
        return cls(tuple(machines), stack)


def member_scores(machines: Sequence[Scorer], X: Floats) -> Floats:
    """Return the scores of M machines for the rows of X, shape (m, M, S)."""
    first = machines[0].scores(X)
    scores = np.empty((len(X), len(machines), first.shape[1]))
    scores[:, 0] = first
    for m, machine in enumerate(machines[1:], 1):
        scores[:, m] = machine.scores(X)
    return scores
