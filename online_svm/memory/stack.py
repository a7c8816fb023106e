"""A stack of the newest labels: weights of the present answer, the long trees and the mid trees.

The stack is a softmax regression on the log-odds of its experts, for two classes with an intercept.
Every `FIT_EVERY` labels it is fitted on the newest `size` labels, with a penalty centred at the
first expert alone: without evidence the stack says what the first expert says.
"""

from collections.abc import Sequence

import numpy as np

from online_svm.compiled.elementary import exps, logs
from online_svm.refit.committee.stack import SoftmaxStack, fit_softmax
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, ints, one
from online_svm.stream.available_examples import SlidingArray
from online_svm.types import Floats, Ints

FIT_EVERY = 100  # labels
RIDGE = 5.0
TOLERANCE = 1e-3  # largest entry of the gradient, a sum over the examples
MIN_PROBABILITY = 1e-6


class MemoryStack(StoredArrays):
    """A stack of `n_experts` experts for `n_classes` classes.

    Examples
    --------
    >>> stack = MemoryStack(2, 2, 1_000)
    >>> flat, sure = np.full((600, 2), 0.5), np.tile([0.2, 0.8], (600, 1))
    >>> for i in range(0, 600, 100):
    ...     stack.learn([flat[:100], sure[:100]], np.ones(100, dtype=np.int64))
    >>> stack.answer([flat[:1], sure[:1]]).round(2).tolist()
    [[0.01, 0.99]]
    """

    _stored = StateSchema(
        one("n"), floats("_odds.held", "n ._n_inputs ._n_classes", stored_as="odds"),
        ints("_columns.held", "n", below="._n_classes", stored_as="columns"), floats("weights"),
    )  # fmt: skip

    def __init__(self, n_experts: int, n_classes: int, size: int) -> None:
        self._size, self._n_classes = size, n_classes
        self._n_inputs = n_experts + (n_classes == 2)
        self._odds = SlidingArray(np.empty((0, self._n_inputs, n_classes)))
        self._columns = SlidingArray(np.empty(0, dtype=np.int64))
        self.n = 0  # learned labels
        self._centre = np.zeros(self._n_inputs)
        self._centre[0] = 1.0
        self.weights = self._centre.copy()

    @property
    def next_stop(self) -> int:
        """Number of learned labels up to which the weights do not change."""
        return self.n - self.n % FIT_EVERY + FIT_EVERY

    def answer(self, experts: Sequence[Floats]) -> Floats:
        """Return probabilities, shape (m, n_classes), given those of each expert."""
        sums = np.zeros(experts[0].shape)
        for m, odds in enumerate(self._inputs(experts).transpose(1, 0, 2)):
            sums += self.weights[m] * odds
        terms = exps(sums - sums.max(axis=1, keepdims=True))
        total = np.zeros(len(terms))
        for k in range(self._n_classes):  # in this order, so that a row has the same bits anywhere
            total += terms[:, k]
        return np.asarray(terms / total[:, None])

    def learn(self, experts: Sequence[Floats], columns: Ints) -> None:
        """Learn what the experts said of labelled rows, up to `next_stop`.

        `experts`: each of shape (m, n_classes).
        `columns`, shape (m,): class columns of the labels.
        """
        self._odds.append(self._inputs(experts))
        self._columns.append(columns)
        self.n += len(columns)
        for held in (self._odds, self._columns):
            held.drop_before(held.stop - self._size)
        if self.n % FIT_EVERY == 0:
            examples = SoftmaxStack(
                np.ascontiguousarray(self._odds.held), np.ascontiguousarray(self._columns.held),
                self._centre, RIDGE,
            )  # fmt: skip
            fit_softmax(examples, self.weights, TOLERANCE)

    def _on_restored(self) -> None:
        require(len(self._columns) == min(self.n, self._size), "n")

    def _inputs(self, experts: Sequence[Floats]) -> Floats:
        """Return the log-odds against the first class, shape (m, n_inputs, n_classes)."""
        found = np.zeros((len(experts[0]), len(self._centre), self._n_classes))
        for m, p in enumerate(experts):
            odds = logs(np.maximum(p, MIN_PROBABILITY).ravel()).reshape(p.shape)
            found[:, m] = odds - odds[:, :1]
        if self._n_classes == 2:
            found[:, -1, 1] = 1.0
        return found
