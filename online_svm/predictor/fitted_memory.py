"""The memory of a fitted estimator: its model averaged with experts that learn from all rows.

The model of an estimator sees a window of rows. Four experts are averaged: the model, the long
trees, the mid trees, and a stack of these three. The weights are learned on the newest rows, which
the model answers before it learns them, and which the trees do not learn at first. Then the trees
are fitted again, on all rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.memory.forests import Forests, RowKinds
from online_svm.memory.stack import MemoryStack
from online_svm.predictor.ensemble import Ensemble, WeightUpdate
from online_svm.predictor.recent_interval import RecentIntervals
from online_svm.storage.state_schema import StateSchema, StoredArrays, part
from online_svm.stream.labels import ClassView
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats, Ints

PLAYED_ROWS = 5_000
"""Rows, the newest, that the model learns."""

MIN_ROWS = 100
"""Rows without which the model answers alone."""

MEMORY_UPDATE = WeightUpdate(0.001, first=0.5)
"""Of the model, which is first, the long and the mid trees, and the stack."""

Answer = tuple[Floats, Floats, Floats]  # probabilities, lower and upper ends, of shape (m, K)


def held_out(n: int) -> int:
    """Return how many of n rows, the newest, the trees do not learn at first."""
    return min(PLAYED_ROWS, n // 5)


class FittedMemory(StoredArrays):
    """Average of a model's answers, forests that were fitted on all rows, and their stack.

    `view`: the classes, all of them declared.
    `level`: nominal coverage of the intervals.
    `kinds`: what is known of the features.
    """

    _stored = StateSchema(part("_forests"), part("_stack"), part("_average"), part("_intervals"))

    @classmethod
    def of(cls, config: PredictorConfig, *, is_named: bool) -> Self:
        """Return an empty memory; `config` declares classes and an interval level."""
        if config.classes is None or config.interval_level is None:
            raise ValueError("a memory is of declared classes, and has an interval level")
        kinds = RowKinds(is_named, config.declared_kinds)
        return cls(ClassView(config.classes, declared=True), config.interval_level, kinds)

    def __init__(self, view: ClassView, level: float, kinds: RowKinds) -> None:
        self._kinds, self._n_classes = kinds, view.n_known
        self._forests = Forests(kinds)
        self._stack = MemoryStack(3, view.n_known, PLAYED_ROWS)
        self._average = Ensemble(4, MEMORY_UPDATE)
        self._intervals = RecentIntervals(level, view)

    @property
    def weights(self) -> Floats:
        """Weights of the model, the long and the mid trees, and the stack; they sum to 1."""
        return self._average.weights

    def _on_restored(self) -> None:
        self._forests.check(self._n_classes)

    def fit(self, X: Floats, columns: Ints, present: Floats, seed: int) -> None:
        """Learn all rows, in order; `columns`, shape (n,), are their classes.

        `present`, shape (m, n_classes): the model's answers to the newest m rows, each from before
        it was learned; m is at least `held_out(n)`.
        """
        older = len(X) - held_out(len(X))
        self._forests.fit(X[:older], columns[:older], self._n_classes, seed)
        self.learn(X[older:], columns[older:], present[-held_out(len(X)) :])
        self._forests = Forests(self._kinds)
        self._forests.fit(X, columns, self._n_classes, seed)

    def answer(self, X: Floats, present: Floats) -> Answer:
        """Answer rows, given the model's answers; nothing is learned."""
        return self._answer(self._experts(X, present), np.full(len(X), -1))

    def learn(self, X: Floats, columns: Ints, present: Floats) -> Answer:
        """Answer rows in order, and learn the weights of the experts; the forests stay."""
        found, at = list[Answer](), 0
        while at < len(X):
            stop = min(len(X), at + self._stack.next_stop - self._stack.n)
            three = self._experts(X[at:stop], present[at:stop])
            found.append(self._answer(three, columns[at:stop]))
            self._stack.learn(three, columns[at:stop])
            at = stop
        point, lower, upper = map(np.concatenate, zip(*found, strict=True))
        return point, lower, upper

    def _experts(self, X: Floats, present: Floats) -> Sequence[Floats]:
        return [present, *self._forests.probabilities(X)]

    def _answer(self, three: Sequence[Floats], columns: Ints) -> Answer:
        """Return the average and its intervals; both learn a row with a column after its answer."""
        point = self._average.answer([*three, self._stack.answer(three)], columns)
        return point, *self._intervals.answer(columns, point)


def answered_by(answer: Answer, blocks: Iterable[PredictionBlock]) -> list[PredictionBlock]:
    """Return blocks of the model with the probabilities and intervals of `answer` to their rows."""
    found, at = list[PredictionBlock](), 0
    for block in blocks:
        point, lower, upper = (part[at : at + len(block)] for part in answer)
        label = point.argmax(axis=1)
        found.append(replace(block, label=label, point=point, lower=lower, upper=upper))
        at += len(block)
    return found
