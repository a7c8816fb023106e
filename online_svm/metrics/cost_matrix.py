"""The action of least expected cost, given class probabilities, and the cost of past decisions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.config import PredictorConfig
from online_svm.config.groups import REVIEW
from online_svm.metrics.label_weights import most_examples
from online_svm.metrics.sequential.comparison import mean_bounds
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, ints, one
from online_svm.stream.labels import LabelIndex
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import CostReport
from online_svm.types import Floats, Ints


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

    Examples
    --------
    >>> costs = {"bad": {"bad": 0, "good": 5, "review": 0.4},
    ...          "good": {"bad": 1, "good": 0, "review": 0.4}}
    >>> matrix = CostMatrix(costs, ("bad", "good"))
    >>> p = np.array([[0.7, 0.3], [0.25, 0.75], [0.01, 0.99]])
    >>> [matrix.actions[i] for i in matrix.decide(p).action]
    ['bad', 'review', 'good']
    """

    def __init__(self, costs: Mapping[str, Mapping[str, float]], classes: tuple[str, ...]) -> None:
        others = sorted(set(costs[classes[0]]) - set(classes))
        self.actions = (*classes, *others)
        rows = [[costs[label][name] for name in self.actions] for label in classes]
        # Total cost of each action by true label, shape (n_classes, n_actions).
        self.costs: Floats = np.array(rows, dtype=np.float64)
        if REVIEW in others:
            review = self.actions.index(REVIEW)
            known = np.delete(self.costs, review, axis=1)
            self.costs[:, review] += known.min(axis=1)

    @classmethod
    def of(cls, config: PredictorConfig) -> "CostMatrix | None":
        """Return the cost matrix of a configuration, or None without costs."""
        if config.costs is None:
            return None
        assert config.classes is not None
        known = [label for label in LabelIndex(config.classes).view().classes if label is not None]
        return cls(config.costs, tuple(known))

    def decided(self, block: PredictionBlock) -> PredictionBlock:
        """Return the block with decisions added; a block answered during warm-up is unchanged."""
        if block.status != "ok":
            return block
        found = self.decide(block.point)
        return replace(block, actions=self.actions, **found._asdict())

    def decide(self, point: Floats) -> Decisions:
        """Choose an action for each row of probabilities, shape (m, n_classes)."""
        m = len(point)
        found = Decisions(np.empty(m, dtype=np.int64), np.empty(m))
        _decide(self.costs, np.ascontiguousarray(point), found)
        return found


@kernel
def _decide(costs: Floats, point: Floats, found: Decisions) -> None:
    """Write the action of each row and its expected cost; `costs` is (n_classes, n_actions)."""


_OWN, _BY_LABEL, _OWN_SQUARES = range(3)


class RealisedCost(StoredArrays):
    """Running sums of the cost of the chosen actions, added example by example.

    `most`: number of examples for which a label may stand.
    """

    _stored = StateSchema(floats("_always"), ints("_taken"), floats("_sums"), one("_scored"))

    def __init__(self, matrix: CostMatrix, most: int = 1) -> None:
        self.matrix, self._most = matrix, most
        self._scored = 0
        self._always = np.zeros(len(matrix.actions))
        self._taken = np.zeros(len(matrix.actions), dtype=np.int64)
        self._sums = np.zeros(3)

    @classmethod
    def of(cls, config: PredictorConfig) -> "RealisedCost | None":
        """Return empty sums for a configuration, or None without costs."""
        matrix = CostMatrix.of(config)
        return None if matrix is None else cls(matrix, most_examples(config.label_budget))

    def update(self, point: Floats, columns: Ints) -> None:
        """Add examples in the order in which they are learned, with their announced probabilities.

        `point` has shape (m, n_classes); `columns`, shape (m,), are the indices of the true labels.
        """
        action = self.matrix.decide(point).action
        label = np.asarray(point.argmax(axis=1), dtype=np.int64)
        taken = np.stack([action, label, columns], axis=1)
        _add(self.matrix.costs, taken, self._always, self._taken, self._sums, self._scored)
        self._scored += len(columns)

    def report(self) -> CostReport:
        """Return the means so far; they are None before the first example."""
        actions, scored = self.matrix.actions, self._scored
        lower, upper = self._bounds() if scored else (None, None)
        return CostReport(
            scored=scored,
            mean=self._mean(self._sums[_OWN]),
            lower=lower,
            upper=upper,
            by_label=self._mean(self._sums[_BY_LABEL]),
            always={name: self._mean(self._always[i]) for i, name in enumerate(actions)},
            taken={name: int(self._taken[i]) for i, name in enumerate(actions)},
        )

    def _bounds(self) -> tuple[float, float]:
        costs, (own, _, squares) = self.matrix.costs, self._sums.tolist()
        span = min(0.0, float(costs.min())), max(0.0, float(costs.max()))
        return mean_bounds(self._scored, own, squares, span, self._most)

    def _mean(self, total: float) -> float | None:
        return float(total) / self._scored if self._scored else None


@kernel
def _add(costs: Floats, rows: Ints, always: Floats, taken: Ints, sums: Floats, count: int) -> None:
    """Add the costs of rows (action, predicted label, true label), after `count` earlier ones."""
