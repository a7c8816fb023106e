"""The action of least expected cost, given class probabilities, and the cost of past decisions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.config import PredictorConfig
from online_svm.config.groups import REVIEW
from online_svm.storage.state_schema import StateSchema, floats, ints, one
from online_svm.stream.labels import LabelIndex
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import CostReport
from online_svm.types import Arrays, Floats, Ints

NONE_BY_INTERVAL = -1  # index of `review` for the kernel if intervals do not decide it


class Decisions(NamedTuple):
    """Decisions about m examples; both shapes are (m,)."""

    action: Ints  # index into the actions
    expected_cost: Floats  # of the action, at the announced probabilities


class CostMatrix:
    """Cost of each action by true label; chooses the action of least expected cost.

    The expected cost of action a is sum_y p(y) c(y, a) at the announced probabilities (Elkan 2001,
    The foundations of cost-sensitive learning, equation 1); ties go to the first action. `review`
    asks a person for the true label: its cost is its price plus the cost of the best action for
    that label. The actions are the labels in their order, then the other actions by name.

    `reviews_by_interval` selects the rule of semantics 4 for two classes: `review` is chosen if its
    price is below the stake, the maximum over the probabilities in the interval of the excess cost
    of the chosen action over the best one. By default intervals have no effect.

    Examples
    --------
    >>> costs = {"bad": {"bad": 0, "good": 5, "review": 0.4},
    ...          "good": {"bad": 1, "good": 0, "review": 0.4}}
    >>> matrix = CostMatrix(costs, ("bad", "good"))
    >>> p = np.array([[0.7, 0.3], [0.25, 0.75], [0.01, 0.99]])
    >>> [matrix.actions[i] for i in matrix.decide(p, p, p).action]
    ['bad', 'review', 'good']
    """

    def __init__(
        self,
        costs: Mapping[str, Mapping[str, float]],
        classes: tuple[str, ...],
        reviews_by_interval: bool = False,
    ) -> None:
        others = sorted(set(costs[classes[0]]) - set(classes))
        self.actions = (*classes, *others)
        rows = [[costs[label][name] for name in self.actions] for label in classes]
        # Total cost of each action by true label, shape (n_classes, n_actions).
        self.costs: Floats = np.array(rows, dtype=np.float64)
        self._by_interval, self._price = NONE_BY_INTERVAL, 0.0
        if REVIEW in others:
            review = self.actions.index(REVIEW)
            known = np.delete(self.costs, review, axis=1)
            self.costs[:, review] += known.min(axis=1)
            if reviews_by_interval:
                self._by_interval, self._price = review, float(costs[classes[0]][REVIEW])

    @classmethod
    def of(cls, config: PredictorConfig) -> "CostMatrix | None":
        """Return the cost matrix of a configuration, or None without costs."""
        if config.costs is None:
            return None
        assert config.classes is not None
        known = [label for label in LabelIndex(config.classes).view().classes if label is not None]
        return cls(config.costs, tuple(known), reviews_by_interval=config.semantics < 5)

    def decided(self, block: PredictionBlock) -> PredictionBlock:
        """Return the block with decisions added; a block answered during warm-up is unchanged."""
        if block.status != "ok":
            return block
        found = self.decide(block.point, block.lower, block.upper)
        return replace(block, actions=self.actions, **found._asdict())

    def decide(self, point: Floats, lower: Floats, upper: Floats) -> Decisions:
        """Choose an action for each example; all arrays have shape (m, n_classes)."""
        m = len(point)
        found = Decisions(np.empty(m, dtype=np.int64), np.empty(m))
        bounds = _Bounds(*map(np.ascontiguousarray, (point, lower, upper)))
        _decide(self.costs, self._by_interval, self._price, bounds, found)
        return found


class _Bounds(NamedTuple):
    """Probability and interval of each class; each array has shape (m, n_classes)."""

    point: Floats
    lower: Floats
    upper: Floats


@kernel
def _decide(costs: Floats, review: int, price: float, bounds: _Bounds, found: Decisions) -> None:
    """Write the action of each row and its expected cost.

    `costs` has shape (n_classes, n_actions); `review` is `NONE_BY_INTERVAL` or the action that
    intervals decide.
    """


_FIELDS = StateSchema(floats("_always"), ints("_taken"), floats("_sums"), one("_scored"))

_OWN, _BY_LABEL = range(2)


class RealisedCost:
    """Running sums of the cost of the chosen actions, added example by example."""

    def __init__(self, matrix: CostMatrix) -> None:
        self.matrix = matrix
        self._scored = 0
        self._always = np.zeros(len(matrix.actions))
        self._taken = np.zeros(len(matrix.actions), dtype=np.int64)
        self._sums = np.zeros(2)

    @classmethod
    def of(cls, config: PredictorConfig) -> "RealisedCost | None":
        """Return empty sums for a configuration, or None without costs."""
        matrix = CostMatrix.of(config)
        return None if matrix is None else cls(matrix)

    def update(self, point: Floats, lower: Floats, upper: Floats, columns: Ints) -> None:
        """Add examples in the order in which they are learned, with their announced probabilities.

        The floats have shape (m, n_classes); `columns`, shape (m,), are the indices of the true
        labels.
        """
        action = self.matrix.decide(point, lower, upper).action
        label = np.asarray(point.argmax(axis=1), dtype=np.int64)
        taken = np.stack([action, label, columns], axis=1)
        _add(self.matrix.costs, taken, self._always, self._taken, self._sums)
        self._scored += len(columns)

    def report(self) -> CostReport:
        """Return the means so far; they are None before the first example."""
        actions, scored = self.matrix.actions, self._scored
        return CostReport(
            scored=scored,
            mean=self._mean(self._sums[_OWN]),
            by_label=self._mean(self._sums[_BY_LABEL]),
            always={name: self._mean(self._always[i]) for i, name in enumerate(actions)},
            taken={name: int(self._taken[i]) for i, name in enumerate(actions)},
        )

    def state(self) -> Arrays:
        """Return the sums as arrays."""
        return _FIELDS.arrays_of(self)

    @classmethod
    def from_state(cls, state: Arrays, matrix: CostMatrix) -> Self:
        """Restore the sums, or raise InvalidSnapshot."""
        return _FIELDS.fill(cls(matrix), None, state)

    def _mean(self, total: float) -> float | None:
        return float(total) / self._scored if self._scored else None


@kernel
def _add(costs: Floats, rows: Ints, always: Floats, taken: Ints, sums: Floats) -> None:
    """Add the costs of rows (action, predicted label, true label), in order."""
