"""Stacks of the newest labels: weights of the present answer, the long trees and the mid trees.

A stack is a softmax regression on the log-odds of its experts, for two classes with an intercept.
Every `FIT_EVERY` labels it is fitted on its newest labels, with a penalty centred at the first
expert alone: without evidence the stack says what the first expert says.
"""

from collections.abc import Sequence

import numpy as np

from online_svm.compiled.elementary import exps, logs
from online_svm.refit.committee.ridge_logistic import Regression, fit_ridge_logistic
from online_svm.refit.committee.stack import SoftmaxStack, fit_softmax
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, ints, one
from online_svm.stream.available_examples import SlidingArray
from online_svm.types import Floats, Ints

FIT_EVERY = 100  # labels
RIDGE = 5.0
TOLERANCE = 0.05  # largest entry of the gradient, a sum over the examples
MAX_STEPS = 12
MIN_PROBABILITY = 1e-6


class MemoryStacks(StoredArrays):
    """Stacks of the same experts, one for each number of labels in `sizes`.

    Examples
    --------
    >>> stacks = MemoryStacks(2, 2, [200, 1_000])
    >>> flat, sure = np.full((600, 2), 0.5), np.tile([0.2, 0.8], (600, 1))
    >>> for i in range(0, 600, 100):
    ...     stacks.learn([flat[:100], sure[:100]], np.ones(100, dtype=np.int64))
    >>> stacks.answer([flat[:1], sure[:1]]).round(2).tolist()
    [[[0.03, 0.97]], [[0.01, 0.99]]]
    """

    _stored = StateSchema(
        one("n"), floats("_odds.held", "n ._n_experts ._n_odds", stored_as="odds"),
        ints("_columns.held", "n", below="._n_classes", stored_as="columns"), floats("weights"),
    )  # fmt: skip

    def __init__(self, n_experts: int, n_classes: int, sizes: Sequence[int]) -> None:
        self._sizes, self._n_experts, self._n_classes = sizes, n_experts, n_classes
        self._n_odds = n_classes - 1
        self._odds = SlidingArray(np.empty((0, n_experts, self._n_odds)))
        self._columns = SlidingArray(np.empty(0, dtype=np.int64))
        self.n = 0  # learned labels
        self._centre = np.zeros(n_experts + (n_classes == 2))
        self._centre[0] = 1.0
        self.weights = np.tile(self._centre, (len(sizes), 1))

    @property
    def next_stop(self) -> int:
        """Number of learned labels up to which the weights do not change."""
        return self.n - self.n % FIT_EVERY + FIT_EVERY

    def answer(self, experts: Sequence[Floats] | Floats) -> Floats:
        """Return the probabilities of each stack, shape (n_stacks, m, n_classes).

        `experts`, each of shape (m, n_classes): the probabilities of each expert.
        """
        odds = self._inputs(_odds_of(experts))
        terms = np.zeros((len(self.weights), len(odds), self._n_classes))
        for m in range(odds.shape[1]):
            terms += self.weights[:, m, None, None] * odds[:, m]
        terms = exps(terms - terms.max(axis=2, keepdims=True))
        total = np.zeros(terms.shape[:2])
        for k in range(self._n_classes):  # in this order, so that a row has the same bits anywhere
            total += terms[:, :, k]
        return np.asarray(terms / total[:, :, None])

    def learn(self, experts: Sequence[Floats] | Floats, columns: Ints) -> None:
        """Learn what the experts said of labelled rows, up to `next_stop`.

        `experts`: each of shape (m, n_classes).
        `columns`, shape (m,): class columns of the labels.
        """
        self._odds.append(_odds_of(experts))
        self._columns.append(columns)
        self.n += len(columns)
        for held in (self._odds, self._columns):
            held.drop_before(held.stop - max(self._sizes))
        if self.n % FIT_EVERY == 0:
            for weights, size in zip(self.weights, self._sizes, strict=True):
                inputs = self._inputs(self._odds.held[-size:])
                self._fit(weights, inputs, np.ascontiguousarray(self._columns.held[-size:]))

    def _fit(self, weights: Floats, inputs: Floats, columns: Ints) -> None:
        """Fit the weights of a stack, in place, from where they are."""
        if self._n_classes > 2:
            examples = SoftmaxStack(inputs, columns, self._centre, RIDGE)
            fit_softmax(examples, weights, TOLERANCE)
            return
        odds, ridge = np.ascontiguousarray(inputs[:, :, 1].T), np.full(len(weights), RIDGE)
        targets, costs = columns.astype(np.float64), np.ones(len(columns))
        problem = Regression(odds, targets, costs, self._centre, ridge)
        fit_ridge_logistic(problem, weights, MAX_STEPS, TOLERANCE)

    def _on_restored(self) -> None:
        require(len(self._columns) == min(self.n, max(self._sizes)), "n")

    def _inputs(self, odds: Floats) -> Floats:
        """Return the inputs of the regressions, shape (m, n_inputs, n_classes)."""
        found = np.zeros((len(odds), len(self._centre), self._n_classes))
        found[:, : self._n_experts, 1:] = odds
        if self._n_classes == 2:
            found[:, -1, 1] = 1.0
        return found


def _odds_of(experts: Sequence[Floats] | Floats) -> Floats:
    """Return log-odds of the classes against the first, shape (m, n_experts, n_classes - 1)."""
    odds = logs(np.maximum(np.stack(list(experts), axis=1), MIN_PROBABILITY))
    return np.asarray(odds[:, :, 1:] - odds[:, :, :1])
