"""The headline of two classes: the stack of a committee, Venn-Abers and maps of recent scores."""

from typing import Self

import numpy as np

from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.calibration.platt import PlattScaling
from online_svm.compiled.jit import jit
from online_svm.compiled.logistic import logistic
from online_svm.predictor.headline import Headline, HeadlineAnswers, held_answers
from online_svm.predictor.mixture import Mixture
from online_svm.predictor.recent_map import RecentMap
from online_svm.storage.arrays import nest, under
from online_svm.types import Arrays, Floats, Ints
from online_svm.venn.protocol import VennAnswers

COMPONENTS = 3
SHARE = 0.005
"""Part of its weights that the mixture spreads evenly after each label."""


class PairHeadline:
    """A mixture of the stack, of the stack clipped to the pair (p0, p1), and of the pair's mean.

    For two known classes, and scores that are log-odds of class 1. The stack was fitted on what its
    members said of training examples, and is the freshest. Clipped to the pair it is mended where
    it was wrong for long; of the merges of the pair this does best, since the mean is biased where
    a class is rare, and p1 - p0 then wide on one side. The mean is the last to go wrong under
    drift. Weights follow the labels, and outlive a model: see `Mixture`. On thirteen streams (3,000
    examples of each) the clipped stack had a mean log loss of .2975, the stack .2997, the mean
    .3021, the mixture .2849; with the sigmoids of `RecentHeadline` around it .2798, and .2820 with
    those around the clipped stack alone.

    A mixture has no guarantee of its own; the pair's stands beside it.

    Examples
    --------
    >>> lower, upper = np.array([[0.3, 0.6]]), np.array([[0.4, 0.7]])
    >>> venn = VennAnswers(0.5 * (lower + upper), lower, upper, np.array([1]), np.array([9]))
    >>> headline = PairHeadline()
    >>> for odds in (-3.0, 0.5, 3.0):  # the stack says 0.047, 0.622 and 0.953
    ...     said = headline.answer(np.array([[odds]]), venn, np.array([-1]))
    ...     print(said.point.round(3).tolist())
    [[0.568, 0.432]]
    [[0.368, 0.632]]
    [[0.232, 0.768]]
    """

    method = "venn-abers-pair"
    interval_level = None

    def __init__(self) -> None:
        self._mixture = Mixture(COMPONENTS, SHARE)

    def fit(self, _scores: Floats, _columns: Ints) -> None:
        """Do nothing: the calibration set itself answers."""

    def follow(self, before: Headline) -> None:
        """Begin with the weights that the headline of the model before has now."""
        if isinstance(before, PairHeadline):
            self._mixture = before._mixture

    def answer(self, scores: Floats, venn: VennAnswers, columns: Ints) -> HeadlineAnswers:
        """Mix rows in turn; each labelled one changes the weights after its answer."""
        components = np.empty((COMPONENTS, len(scores), 2))
        _fill(scores, venn.point, venn.lower, venn.upper, components)
        mixed = self._mixture.answer(components, columns)
        return held_answers(_with_unseen(mixed, venn.point.shape[1]), venn)

    def state(self) -> Arrays:
        """Return the weights."""
        return self._mixture.state()

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Return the headline that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If the weights are absent, of another number or not finite.
        """
        restored = cls()
        restored._mixture = Mixture.from_state(state, COMPONENTS, SHARE)
        return restored


def _with_unseen(known: Floats, n_classes: int) -> Floats:
    """Return probabilities of two known classes, and 0 for the slot of unseen labels."""
    if n_classes == known.shape[1]:
        return known
    point = np.zeros((len(known), n_classes))
    point[:, : known.shape[1]] = known
    return point


@jit
def _fill(scores: Floats, mean: Floats, lower: Floats, upper: Floats, components: Floats) -> None:
    """Write the probabilities of both classes: of the stack, of it clipped, and the pair's mean."""
    for i in range(len(scores)):
        stacked = logistic(scores[i, 0])
        clipped = min(max(stacked, lower[i, 1]), upper[i, 1])
        components[0, i, 0], components[0, i, 1] = 1.0 - stacked, stacked
        components[1, i, 0], components[1, i, 1] = 1.0 - clipped, clipped
        components[2, i, 0], components[2, i, 1] = mean[i, 0], mean[i, 1]


SIZES = (250, 1000)
"""Examples that the maps of recent scores are fitted to."""


class RecentHeadline:
    """A mixture of another headline with two sigmoids of the recent scores.

    The calibration set is as old as what the model learned; where the stream moves, both describe
    the past. The sigmoids are fitted to what the models said of the last examples before they
    learned them, see `RecentMap`. Where nothing moves, the weights stay with the other headline.

    Parameters
    ----------
    inner : Headline
        Of two known classes; gives the interval, which is widened to hold the mixture.

    Examples
    --------
    >>> from online_svm.predictor.headline import VennHeadline
    >>> headline = RecentHeadline(VennHeadline())
    >>> venn = VennAnswers.counted(np.array([[1, 2]]), np.array([0]))
    >>> headline.answer(np.array([[0.5]]), venn, np.array([1])).point.tolist()
    [[0.375, 0.625]]
    """

    method = "venn-abers-mixed"

    def __init__(self, inner: Headline) -> None:
        self._inner = inner
        self._mixture = Mixture(1 + len(SIZES), SHARE)
        self._recent = [RecentMap(size, _sigmoid, _restored) for size in SIZES]

    @property
    def interval_level(self) -> float | None:
        """That of the other headline."""
        return self._inner.interval_level

    def fit(self, scores: Floats, columns: Ints) -> None:
        """Fit the other headline."""
        self._inner.fit(scores, columns)

    def follow(self, before: Headline) -> None:
        """Go on with the weights and the recent scores of the model before."""
        if isinstance(before, RecentHeadline):
            self._mixture, self._recent = before._mixture, before._recent
            self._inner.follow(before._inner)

    def answer(self, scores: Floats, venn: VennAnswers, columns: Ints) -> HeadlineAnswers:
        """Mix rows in turn; each labelled one is learned after its answer."""
        inner = self._inner.answer(scores, venn, columns).point
        known, unseen = inner[:, :2], inner[:, 2:]
        of_known = np.where(columns < 2, columns, -1) if unseen.shape[1] else columns
        said = [recent.answer(scores, of_known, known) for recent in self._recent]
        if unseen.shape[1]:
            said = [np.concatenate([values, unseen], axis=1) for values in said]
        return held_answers(self._mixture.answer([inner, *said], columns), venn)

    def state(self) -> Arrays:
        """Return the weights, the recent scores and maps, and the other headline."""
        arrays = nest("mixture", self._mixture.state()) | nest("inner", self._inner.state())
        for size, recent in zip(SIZES, self._recent, strict=True):
            arrays |= nest(str(size), recent.state())
        return arrays

    @classmethod
    def from_state(cls, state: Arrays, inner: Headline) -> Self:
        """Return the headline that `state` describes, around another that is restored already.

        Raises
        ------
        InvalidSnapshot, LookupError, ValueError
            If an array is absent or has another type, length or range.
        """
        restored = cls(inner)
        restored._mixture = Mixture.from_state(under("mixture", state), 1 + len(SIZES), SHARE)
        restored._recent = [
            RecentMap.from_state(under(str(size), state), size, _sigmoid, _restored, 2)
            for size in SIZES
        ]
        return restored


def _sigmoid(scores: Floats, columns: Ints) -> OneAgainstAll:
    return OneAgainstAll(PlattScaling).fit(scores, columns)


def _restored(state: Arrays) -> OneAgainstAll:
    return OneAgainstAll.from_state(state, PlattScaling)
