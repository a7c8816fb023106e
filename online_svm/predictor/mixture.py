"""The mixed probability: the published probabilities weighted by how well they did so far."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from online_svm.compiled.elementary import exp, exps, log
from online_svm.compiled.elementary import logs as logarithms
from online_svm.compiled.jit import inner, jit
from online_svm.config import MIXED, PredictorConfig
from online_svm.storage.fields import Fields, floats
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Arrays, Floats, Ints

FLOOR = 1e-6  # as the log loss: one certain error must not silence a map for ever

SHARE = 0.001
"""Of the mixed map of a feed: it follows what is best now; 0 is the plain Bayes mixture."""


_FIELDS = Fields(floats("_logs"))


class Mixture:
    """p = sum of w_i p_i, where w_i follows the product of the p_i(y) of the labels so far.

    That is the Bayes mixture: with no share, its cumulative log loss is -ln of the mean over i of
    the products, so at most that of the best p_i plus ln K. With a share, each label moves that
    part of the weight evenly to all K, so that no weight dies, and the mixture can follow the p_i
    that is best now (Herbster & Warmuth 1998, with the share also going back to where it came
    from); against the best sequence of p_i with s changes it then loses little more than
    s ln(K / share) + n share.

    The p_i are clipped: a class below 1e-6 (or half of one part in the number of classes) is
    raised to it, and the others are scaled down, so that the row sums to one; rows without such a
    class keep their bits. Weights change when an example is learned, from one example to the next
    within a block as well; what a refit does to the p_i changes no weight. A class that is not
    known yet has what the p_i give its slot: the Venn predictor a share, a map its floor.

    Parameters
    ----------
    n_components : int
        K, the number of probabilities that are mixed.
    share : float
        Part of the weight that each label moves, in [0, 1].
    first : float, optional
        Weight with which the first of the p_i begins, and its part of what each label moves; the
        others have equal parts of the rest. By default all are equal.
    rate : float
        Power of p_i(y) in the product. Where labels come late, the weights are wrong for as long
        as labels take; a rate below 1 lets them go there more slowly.

    References
    ----------
    M. Herbster, M. K. Warmuth (1998), Tracking the best expert.

    Examples
    --------
    >>> mixture = Mixture(2, share=0.0)
    >>> first, second = np.array([[0.9, 0.1]] * 2), np.array([[0.5, 0.5]] * 2)
    >>> mixture.answer([first, second], np.array([0, -1])).round(4).tolist()
    [[0.7, 0.3], [0.7571, 0.2429]]
    >>> mixture.weights.round(4).tolist()  # 0.9 to 0.5
    [0.6429, 0.3571]
    """

    def __init__(
        self, n_components: int, share: float, *, first: float | None = None, rate: float = 1.0
    ) -> None:
        self._share, self._rate = share, rate
        self._logs = np.zeros(n_components)
        self._moved = np.full(n_components, share / n_components)
        if first is not None:
            begin = np.full(n_components, (1.0 - first) / (n_components - 1))
            begin[0] = first
            self._logs, self._moved = logarithms(begin), share * begin

    @classmethod
    def of(cls, config: PredictorConfig) -> "Mixture | None":
        """Return the mixture that `config` publishes, at its beginning; None if it does not.

        Examples
        --------
        >>> Mixture.of(PredictorConfig()) is None
        True
        >>> Mixture.of(PredictorConfig(maps=("platt", "mixed"))).weights.tolist()
        [0.5, 0.5]
        """
        names = config.published
        return cls(len(names), SHARE) if MIXED in names else None

    @property
    def weights(self) -> Floats:
        """The present w_i, shape (K,): of the Venn predictor, then of the maps as published."""
        weights = exps(self._logs - self._logs.max())
        return np.asarray(weights / math.fsum(weights))

    def answer(self, components: Floats | Sequence[Floats], columns: Ints) -> Floats:
        """Mix rows in order; each labelled one changes the weights after its answer.

        Parameters
        ----------
        components : ndarray of shape (K, m, n_classes), or a sequence of its K parts
            Probabilities; rows sum to one.
        columns : ndarray of shape (m,)
            Class column of each label; -1 where there is none. One beyond the classes is not
            learned.

        Returns
        -------
        ndarray of shape (m, n_classes)
        """
        stacked = np.asarray(components)
        mixed = np.empty(stacked.shape[1:])
        _mix(stacked, columns, self._logs, self._moved, (self._share, self._rate), mixed)
        return mixed

    def added_to(self, block: PredictionBlock, columns: Ints) -> PredictionBlock:
        """Return `block` with the mixed probability after its maps; the labels are learned."""
        mixed = self.answer([block.point, *block.maps.values()], columns)
        return replace(block, maps={**block.maps, MIXED: mixed})

    def state(self) -> Arrays:
        """Return the logarithms of the weights."""
        return _FIELDS.arrays_of(self)

    @classmethod
    def from_state(
        cls,
        state: Arrays,
        n_components: int,
        share: float,
        *,
        first: float | None = None,
        rate: float = 1.0,
    ) -> Self:
        """Return the mixture that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If they are of another number of probabilities, or not finite.
        """
        mixture = cls(n_components, share, first=first, rate=rate)
        _FIELDS.fill(mixture, None, state)
        return mixture


@jit
def _mix(
    components: Floats,
    columns: Ints,
    logs: Floats,
    moved: Floats,
    pace: tuple[float, float],
    mixed: Floats,
) -> None:
    """Write the mixed rows, and change the logarithms of the weights with each label.

    The pace is the share and the rate; of the share each component gets what `moved` says.
    """
    parts = np.empty((len(logs), mixed.shape[1]))
    for i in range(len(columns)):
        # 1. The weights, from their logarithms, and the weighted sum of the rows.
        top = logs.max()
        total = 0.0
        mixed[i] = 0.0
        for k in range(len(logs)):
            _clip(components[k, i], parts[k])
            weight = exp(logs[k] - top)
            total += weight
            for y in range(mixed.shape[1]):
                mixed[i, y] += weight * parts[k, y]
        # 2. Divide by the sum of the weights.
        for y in range(mixed.shape[1]):
            mixed[i, y] /= total
        # 3. Learn the label.
        if 0 <= columns[i] < mixed.shape[1]:
            _learn(logs, parts[:, columns[i]], moved, pace)


@inner
def _clip(values: Floats, clipped: Floats) -> None:
    """Raise what is below the floor to it, and scale the rest so that the sum stays one."""
    floor = min(FLOOR, 0.5 / len(values))
    raised, rest = 0, 0.0
    for value in values:
        if value < floor:
            raised += 1
        else:
            rest += value
    factor = (1.0 - raised * floor) / rest if raised else 1.0
    for y in range(len(values)):
        clipped[y] = floor if values[y] < floor else values[y] * factor


@inner
def _learn(logs: Floats, given: Floats, moved: Floats, pace: tuple[float, float]) -> None:
    """Multiply each weight by what its component gave the label; then move the share."""
    share, rate = pace
    top = -math.inf
    for k in range(len(logs)):
        logs[k] += rate * log(given[k])
        top = max(top, logs[k])
    total = 0.0
    for k in range(len(logs)):
        logs[k] -= top  # the largest weight is 1: nothing overflows, whatever the length
        total += exp(logs[k])
    if share > 0.0:
        for k in range(len(logs)):
            kept = (1.0 - share) * exp(logs[k]) / total
            logs[k] = log(kept + moved[k])
