"""CostMatrix: the action that costs least, given the probability of each true label."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from online_svm.compiled.jit import inner, jit
from online_svm.config import PredictorConfig
from online_svm.config.groups import REVIEW
from online_svm.stream.labels import LabelIndex
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats, Ints

NO_REVIEW = -1


class Decisions(NamedTuple):
    """What to do about m examples.

    Attributes
    ----------
    action : ndarray of int of shape (m,)
        Index into the actions.
    expected_cost : ndarray of shape (m,)
        Of that action, at the announced probabilities.
    """

    action: Ints
    expected_cost: Floats


class CostMatrix:
    """What each action costs, by the true label; it says which action to take.

    The action is the one of least expected cost sum_y p(y) c(y, a) at the announced probabilities
    (Elkan 2001, equation 1); of equal ones the first. The action `review` asks a person, who
    names the true label: it costs its price and what the best action for that label costs. It is
    taken where what is at stake exceeds its price: the most that the action taken could cost above
    the best one, for a probability within the interval. Where one action is best in the whole
    interval nothing is at stake.

    Parameters
    ----------
    costs : mapping of str to mapping of str to float
        By true label, then by action.
    classes : sequence of str
        The labels, in the order of probabilities.

    Attributes
    ----------
    actions : tuple of str
        The labels in their order, then the others by name.

    References
    ----------
    Elkan, C. (2001). The foundations of cost-sensitive learning. IJCAI.

    Examples
    --------
    >>> costs = {"bad": {"bad": 0, "good": 5, "review": 0.4},
    ...          "good": {"bad": 1, "good": 0, "review": 0.4}}
    >>> matrix = CostMatrix(costs, ("bad", "good"))
    >>> p = np.array([[0.25, 0.75], [0.25, 0.75], [0.01, 0.99]])
    >>> lower = np.array([[0.24, 0.7], [0.05, 0.55], [0.0, 0.98]])
    >>> upper = np.array([[0.3, 0.76], [0.45, 0.95], [0.02, 1.0]])
    >>> found = matrix.decide(p, lower, upper)
    >>> [matrix.actions[i] for i in found.action], found.expected_cost.round(2).tolist()
    (['bad', 'review', 'good'], [0.75, 0.4, 0.05])
    """

    def __init__(self, costs: Mapping[str, Mapping[str, float]], classes: tuple[str, ...]) -> None:
        others = sorted(set(costs[classes[0]]) - set(classes))
        self.actions = (*classes, *others)
        self._review = others.index(REVIEW) + len(classes) if REVIEW in others else NO_REVIEW
        self._costs = np.array([[costs[label][name] for name in self.actions] for label in classes])
        self._price = 0.0
        if self._review != NO_REVIEW:
            known = np.delete(self._costs, self._review, axis=1)
            self._costs[:, self._review] += known.min(axis=1)
            self._price = float(costs[classes[0]][REVIEW])

    @classmethod
    def of(cls, config: PredictorConfig) -> "CostMatrix | None":
        """Return the costs of a configuration; None if it has none.

        Examples
        --------
        >>> CostMatrix.of(PredictorConfig()) is None
        True
        """
        if config.costs is None:
            return None
        assert config.classes is not None
        known = [label for label in LabelIndex(config.classes).view().classes if label is not None]
        return cls(config.costs, tuple(known))

    @property
    def costs(self) -> Floats:
        """What each action comes to, by the true label, shape (n_classes, n_actions)."""
        return self._costs

    def decided(self, block: PredictionBlock) -> PredictionBlock:
        """Return a block of answers with what to do; while warming up nothing is decided."""
        if block.status != "ok":
            return block
        found = self.decide(block.point, block.lower, block.upper)
        return replace(block, actions=self.actions, **found._asdict())

    def decide(self, point: Floats, lower: Floats, upper: Floats) -> Decisions:
        """Return what to do about each example.

        Parameters
        ----------
        point, lower, upper : ndarray of shape (m, n_classes)
            Probability and interval of each true label.
        """
        m = len(point)
        found = Decisions(np.empty(m, dtype=np.int64), np.empty(m))
        bounds = _Bounds(*map(np.ascontiguousarray, (point, lower, upper)))
        _decide(self._costs, self._review, self._price, bounds, found)
        return found


class _Bounds(NamedTuple):
    """Probability and interval of each true label, each of shape (m, n_classes)."""

    point: Floats
    lower: Floats
    upper: Floats


@jit
def _decide(costs: Floats, review: int, price: float, bounds: _Bounds, found: Decisions) -> None:
    """Write the action of each row, and what it costs on average."""
    point, lower, upper = bounds
    ends = np.empty(2)
    for i in range(len(point)):
        best, cost = _best(costs, review, point[i])
        if review >= 0:
            # What is at stake is a maximum of linear functions of p: it lies at an end.
            at_stake = 0.0
            for end in range(2):
                ends[1] = lower[i, 1] if end == 0 else upper[i, 1]
                ends[0] = 1.0 - ends[1]
                _, least = _best(costs, review, ends)
                at_stake = max(at_stake, _expected(costs, best, ends) - least)
            if price < at_stake:
                best, cost = review, _expected(costs, review, point[i])
        found.action[i], found.expected_cost[i] = best, cost


@inner
def _best(costs: Floats, review: int, point: Floats) -> tuple[int, float]:
    """Return the action of least expected cost but for `review`, and that cost."""
    best, least = -1, np.inf
    for action in range(costs.shape[1]):
        if action == review:
            continue
        cost = _expected(costs, action, point)
        if cost < least:
            best, least = action, cost
    return best, least


@inner
def _expected(costs: Floats, action: int, point: Floats) -> float:
    total = 0.0
    for label in range(len(point)):
        total += point[label] * costs[label, action]
    return total
