"""Belief functions from counts in blocks of neighbouring scores: bins, or isotonic regression."""

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from online_svm.calibration.argument_checks import check_finite, check_n_bins
from online_svm.calibration.binning import equal_count_bins
from online_svm.calibration.diagram import Blocks, TiedCounts, isotonic_blocks, midpoints
from online_svm.calibration.evidential.binomial import (
    BINOMIAL_MODELS,
    BinomialModel,
    binomial_contour,
    binomial_mass,
)
from online_svm.calibration.evidential.evidential_map import (
    EvidentialMap,
    check_alpha,
    check_option,
)
from online_svm.calibration.evidential.masses import stack, vacuous
from online_svm.calibration.score_map import CountsMap
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.storage.fields import Fields, floats, ints, one
from online_svm.types import Arrays, Floats, Ints

_OPTIONS = Fields(one("model", below=len(BINOMIAL_MODELS)), floats("alpha", "1"))


class BlockMap(CountsMap, EvidentialMap):
    """A map that is constant on each block of scores; between two it changes half way.

    Parameters
    ----------
    model : {"likelihood", "confidence", "dempster"}
    alpha : float

    Attributes
    ----------
    edges_ : ndarray of shape (n_blocks - 1,)
        Upper edge of each block but the last, inclusive.
    totals_, positives_ : ndarray of shape (n_blocks,)
        Examples, and positive examples, in each block.
    masses_ : ndarray of shape (n_blocks, 3)
        m({1}), m({0}), m({0, 1}) of each block.
    """

    _learned = "totals_"
    _fields = Fields(
        ints("totals_", least=1),
        ints("positives_", beside="totals_"),
        floats("edges_", beside="totals_", more=-1),
    )
    edges_: Floats
    totals_: Ints
    positives_: Ints
    masses_: Floats

    def __init__(self, model: BinomialModel = "likelihood", alpha: float = 0.05) -> None:
        self.model: BinomialModel = model
        self.alpha = alpha
        self._check_parameters()

    def _check_parameters(self) -> None:
        check_option(self.model, BINOMIAL_MODELS, "model")
        check_alpha(self.alpha)

    @abstractmethod
    def _shape(self, masses: Floats) -> Floats:
        """Turn the masses that each block has by itself into those of the map."""

    @override
    def _mass(self, scores: Floats) -> Floats:
        return self.masses_[self._block(scores)] if len(self.totals_) else vacuous(len(scores))

    @override
    def contour(self, s: float, tau: ArrayLike) -> Floats:
        block = self._block(self._asked([s]))
        proportions = check_proportions(tau)
        if not len(self.totals_):
            return np.ones(len(proportions))
        k, n = self.positives_[block], self.totals_[block]
        return binomial_contour(self.model, k, n, proportions, self.alpha)

    def _state(self) -> Arrays:
        return super()._state() | {
            "model": np.array([BINOMIAL_MODELS.index(self.model)], dtype=np.int64),
            "alpha": np.array([float(self.alpha)]),
        }

    def _load(self, state: Arrays) -> None:
        super()._load(state)
        options = _OPTIONS.values(type(self), None, state)
        alpha = options["alpha"].item()
        if not 0.0 <= alpha <= 1.0 or (self.positives_ > self.totals_).any():
            raise InvalidSnapshot("map state: a count or alpha is out of range")
        self.model, self.alpha = BINOMIAL_MODELS[options["model"]], alpha
        self._weigh()

    def _set_blocks(self, blocks: Blocks) -> None:
        self.edges_ = midpoints(blocks.upper[:-1], blocks.lower[1:])
        self.totals_, self.positives_ = blocks.totals, blocks.positives
        self._weigh()

    def _weigh(self) -> None:
        """Set the masses, by the counts of the blocks."""
        own = binomial_mass(self.model, self.positives_, self.totals_, self.alpha)
        self.masses_ = self._shape(own)

    def _block(self, scores: Floats) -> Ints:
        return np.searchsorted(self.edges_, scores, side="left")


class EvidentialBinning(BlockMap):
    """Masses of the bin that holds the score; the bins are those of `ScoreBinning`.

    Parameters
    ----------
    model : {"likelihood", "confidence", "dempster"}, default="likelihood"
        How counts become belief: the relative likelihood as contour (eqs 29-31), the
        Clopper-Pearson interval (eqs 26-28), or Dempster's model (eq. 24).
    n_bins : int, default=10
        At most so many bins of equal count. There are no empty bins; with fewer distinct scores
        than bins there are fewer bins.
    alpha : float, default=0.05
        One minus the confidence level, for "confidence".

    Attributes
    ----------
    edges_ : ndarray of shape (n_blocks - 1,)
        Upper edge of each bin but the last, inclusive.
    totals_, positives_ : ndarray of shape (n_blocks,)
        Examples, and positive examples, in each bin.
    masses_ : ndarray of shape (n_blocks, 3)
        m({1}), m({0}), m({0, 1}) of each bin.

    References
    ----------
    P. Xu, F. Davoine, H. Zha, T. Denoeux (2016), Evidential calibration of binary SVM classifiers.

    Examples
    --------
    >>> fitted = EvidentialBinning("dempster", n_bins=2).fit([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1])
    >>> fitted.predict_interval([0.5, 2.5]).round(3).tolist()
    [[0.0, 0.333], [0.667, 1.0]]
    """

    _fields = Fields(*BlockMap._fields, one("n_bins", least=1))

    def __init__(
        self, model: BinomialModel = "likelihood", n_bins: int = 10, alpha: float = 0.05
    ) -> None:
        self.n_bins = n_bins
        super().__init__(model, alpha)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_n_bins(self.n_bins)

    def _fit_counts(self, counts: TiedCounts) -> None:
        self._set_blocks(equal_count_bins(counts, self.n_bins))

    def _shape(self, masses: Floats) -> Floats:
        return masses


class EvidentialIsotonic(BlockMap):
    """Masses of isotonic regression: Bel and Pl never fall with the score.

    Tied scores are pooled, then adjacent violators; neighbours with equal means are merged, since
    the masses depend on how many examples share a mean. The blocks' own bounds need not be
    monotone: Pl becomes the highest so far from below, Bel the lowest so far from above. Between
    two blocks the map switches half way.

    Parameters
    ----------
    model : {"likelihood", "confidence", "dempster"}, default="likelihood"
        How counts become belief: the relative likelihood as contour (eqs 29-31), the
        Clopper-Pearson interval (eqs 26-28), or Dempster's model (eq. 24).
    alpha : float, default=0.05
        One minus the confidence level, for "confidence".

    Attributes
    ----------
    edges_ : ndarray of shape (n_blocks - 1,)
        Upper edge of each block but the last, inclusive.
    totals_, positives_ : ndarray of shape (n_blocks,)
        Examples, and positive examples, in each block; positives_ / totals_ increases strictly.
    masses_ : ndarray of shape (n_blocks, 3)
        m({1}), m({0}), m({0, 1}) of each block, after the envelopes.

    References
    ----------
    P. Xu, F. Davoine, H. Zha, T. Denoeux (2016), Evidential calibration of binary SVM classifiers.

    Examples
    --------
    >>> fitted = EvidentialIsotonic("dempster").fit([0.0, 1.0, 2.0, 3.0], [0, 1, 0, 1])
    >>> fitted.predict_interval([0.0, 1.5, 9.0]).round(3).tolist()
    [[0.0, 0.5], [0.333, 0.667], [0.5, 1.0]]
    """

    def _fit_counts(self, counts: TiedCounts) -> None:
        self._set_blocks(isotonic_blocks(counts))

    def _shape(self, masses: Floats) -> Floats:
        """Draw the envelopes; the least m({0}) so far is the highest plausibility so far."""
        belief = np.minimum.accumulate(masses[::-1, 0])[::-1]
        return stack(belief, np.minimum.accumulate(masses[:, 1]))


def check_proportions(tau: ArrayLike) -> Floats:
    """Return proportions as an array of shape (m,).

    Raises
    ------
    InvalidInput
        If one is outside [0, 1].

    Examples
    --------
    >>> check_proportions(0.5).tolist()
    [0.5]
    """
    values = check_finite(np.atleast_1d(np.asarray(tau, dtype=np.float64)), "tau")
    if ((values < 0.0) | (values > 1.0)).any():
        raise InvalidInput("tau: a proportion is outside [0, 1]")
    return values
