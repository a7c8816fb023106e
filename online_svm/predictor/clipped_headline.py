"""A headline of two classes: the stack of a committee, held to the pair of Venn-Abers."""

import numpy as np

from online_svm.compiled.logistic import logistic_of
from online_svm.predictor.headline import Headline, HeadlineAnswers
from online_svm.types import Arrays, Floats, Ints
from online_svm.venn.protocol import VennAnswers


class ClippedHeadline:
    """The logistic function of the score of class 1, clipped to the pair of Venn-Abers.

    For two known classes, and scores that are log-odds. Of what merges the pair (p0, p1) into one
    number this did best; the mean is biased where a class is rare, since p1 - p0 is then wide on
    one side. The interval is the hull of the pair.

    Examples
    --------
    >>> lower, upper = np.array([[0.3, 0.6]]), np.array([[0.4, 0.7]])
    >>> venn = VennAnswers(0.5 * (lower + upper), lower, upper, np.array([1]), np.array([9]))
    >>> for odds in (-3.0, 0.5, 3.0):
    ...     said = ClippedHeadline().answer(np.array([[odds]]), venn, np.array([-1]))
    ...     print(said.point.round(3).tolist())
    [[0.4, 0.6]]
    [[0.378, 0.622]]
    [[0.3, 0.7]]
    """

    method = "venn-abers-clip"
    interval_level = None

    def fit(self, _scores: Floats, _columns: Ints) -> None:
        """Do nothing: the calibration set itself answers."""

    def follow(self, _before: Headline) -> None:
        """Do nothing: there is nothing to take over."""

    def answer(self, scores: Floats, venn: VennAnswers, _columns: Ints) -> HeadlineAnswers:
        """Return the clipped probabilities; an unseen label has 0."""
        positive = np.clip(logistic_of(scores[:, 0]), venn.lower[:, 1], venn.upper[:, 1])
        point = np.zeros_like(venn.point)
        point[:, 0], point[:, 1] = 1.0 - positive, positive
        return HeadlineAnswers(point, venn.lower, venn.upper)

    def state(self) -> Arrays:
        """Return nothing."""
        return {}
