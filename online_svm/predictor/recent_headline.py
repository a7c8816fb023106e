"""The headline of two classes: another one, mixed with maps of the recent scores."""

from typing import Self

import numpy as np

from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.calibration.platt import PlattCalibrator
from online_svm.predictor.headline import Headline, HeadlineAnswers, held_answers
from online_svm.predictor.mixture import Mixture
from online_svm.predictor.recent_map import RecentMap
from online_svm.storage.arrays import nest, under
from online_svm.types import Arrays, Floats, Ints
from online_svm.venn.protocol import VennAnswers

SHARE = 0.005
"""Part of its weights that the mixture spreads evenly after each label."""

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
    return OneAgainstAll(PlattCalibrator).fit(scores, columns)


def _restored(state: Arrays) -> OneAgainstAll:
    return OneAgainstAll.from_state(state, PlattCalibrator)
