"""Stacks of the newest labels: weights of the present answer, the long trees and the mid trees.

A stack is a softmax regression on the log-odds of its experts, for two classes with an intercept.
Every `FIT_EVERY` labels it is fitted on its newest labels, with a penalty centred at the first
expert alone: without evidence the stack says what the first expert says.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

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


class StackedLabels(NamedTuple):
    """Labels, and what the experts said of them."""

    odds: Floats  # shape (n, n_experts, n_classes - 1); log-odds of the classes against the first
    columns: Ints  # shape (n,); class columns


class MemoryStacks(StoredArrays):
    """Stacks of the same experts, one for each number of labels in `sizes`.

    Examples
    --------
    >>> stacks = MemoryStacks(2, 2, [200, 1_000])
    >>> labels = stacks.room(100)
    >>> labels.odds[:], labels.columns[:] = [[0.0], [1.4]], 1
    >>> stacks.learned(labels, 100)
    >>> stacks.weights[0].round(1).tolist(), stacks.next_stop
    ([1.0, 1.4, 1.0], 200)
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
    def n_held(self) -> int:
        """Number of newest labels that are held."""
        return len(self._columns)

    @property
    def next_stop(self) -> int:
        """Number of learned labels up to which the weights do not change."""
        return self.n - self.n % FIT_EVERY + FIT_EVERY

    def room(self, count: int) -> StackedLabels:
        """Return what is held of the newest labels, with room for `count` more at the end."""
        self._odds.extend(count)
        self._columns.extend(count)
        return StackedLabels(self._odds.held, self._columns.held)

    def learned(self, labels: StackedLabels, count: int) -> None:
        """Count labels that were written to their room, up to `next_stop`, and fit if it is due.

        `labels`: all that are held, these `count` last.
        """
        self.n += count
        if count and self.n % FIT_EVERY == 0:
            for weights, size in zip(self.weights, self._sizes, strict=True):
                newest = slice(-size, None)
                self._fit(weights, self._inputs(labels.odds[newest]), labels.columns[newest])

    def drop_old(self) -> None:
        """Drop the labels that no fit needs."""
        for held in (self._odds, self._columns):
            held.drop_before(held.stop - max(self._sizes))

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
