"""Belief functions from counts in blocks of adjacent scores: bins or isotonic regression.

A block has k positives among n examples. The binomial models give its predictive masses in closed
form (Xu et al. 2016, section 4.1), and the contour behind them: the plausibility of each value tau
of the unknown proportion. Without examples every model is vacuous.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from online_svm.calibration.diagram import (
    Blocks,
    TiedCounts,
    check_finite,
    check_n_bins,
    equal_count_bins,
    isotonic_blocks,
    midpoints,
)
from online_svm.calibration.evidential.masses import belief_plausibility, pignistic, stack, vacuous
from online_svm.calibration.score_map import CountsMap, IntervalMap
from online_svm.compiled.kernel import kernel
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.storage.state_schema import StateSchema, floats, ints, one
from online_svm.types import Arrays, Floats, Ints


class EvidentialMap(IntervalMap):
    """A map from two-class scores to mass functions on {0, 1}.

    `predict` returns the pignistic probability of the positive class, `predict_interval` its belief
    and plausibility. Fitted on no examples, a map is vacuous. The masses carry no validity
    guarantee. `fit` takes no weights: the masses depend on the number of independent examples, and
    a weight is not a number of independent examples. A subclass implements `_mass`.
    """

    @abstractmethod
    def _mass(self, scores: Floats) -> Floats: ...

    def _interval(self, scores: Floats) -> Floats:
        return belief_plausibility(self._mass(scores))

    def _predict(self, scores: Floats) -> Floats:
        return pignistic(self._mass(scores))

    def mass(self, scores: ArrayLike) -> Floats:
        """Return m({1}), m({0}) and m({0, 1}) for each score, shape (n_samples, 3).

        Raises InvalidInput if a score is not finite, or the map is not fitted.
        """
        return self._mass(self._asked(scores))

    @abstractmethod
    def contour(self, s: float, tau: ArrayLike) -> Floats:
        """Return the plausibility of each proportion `tau`, shape (m,), of positives at score `s`.

        For maps in blocks this is the contour of the block alone. For the likelihood and confidence
        models its integrals are the block's masses (Xu et al. 2016, eqs 22 and 23).

        Raises InvalidInput if s is not finite, a proportion is outside [0, 1], or the map is not
        fitted; also if a logistic map with model "likelihood" was restored from a state, because
        states do not hold the examples.
        """


def check_option(value: str, allowed: tuple[str, ...], name: str) -> None:
    """Raise InvalidInput unless `value` is one of `allowed`."""
    if value not in allowed:
        raise InvalidInput(f"{name}: must be one of {allowed}, not {value!r}")


def check_alpha(alpha: float) -> None:
    """Raise InvalidInput unless `alpha`, one minus the confidence level, is in [0, 1]."""
    if not 0.0 <= alpha <= 1.0:  # rejects NaN too
        raise InvalidInput(f"alpha: {alpha} is outside [0, 1]; use 0.05 for 95 % confidence")


BinomialModel = Literal["likelihood", "confidence", "dempster"]
BINOMIAL_MODELS: tuple[BinomialModel, ...] = ("likelihood", "confidence", "dempster")


def binomial_mass(model: BinomialModel, k: ArrayLike, n: ArrayLike, alpha: float = 0.05) -> Floats:
    """Return the predictive masses, shape (..., 3), after k positives among n examples.

    `k` and `n` hold whole numbers. "dempster" (eq. 24) stands for one further example without its
    label. The contour of "likelihood" is the relative likelihood (eqs 29-31). "confidence" is the
    Clopper-Pearson interval at level 1 - `alpha` (eqs 26-28), discounted by alpha.
    """
    positive, total = _counts(k, n)
    negative = total - positive
    if model == "dempster":
        return stack(positive / (total + 1.0), negative / (total + 1.0))
    if model == "likelihood":
        return stack(
            _each(_write_belief, positive, negative), _each(_write_belief, negative, positive)
        )
    return interval_mass(*clopper_pearson(k, n, alpha), alpha)


def interval_mass(lower: Floats, upper: Floats, alpha: float) -> Floats:
    """Return the masses of a confidence interval (eqs 26 and 27)."""
    return stack((1.0 - alpha) * lower, (1.0 - alpha) * (1.0 - upper))


def clopper_pearson(k: ArrayLike, n: ArrayLike, alpha: float) -> tuple[Floats, Floats]:
    """Return the bounds of the exact interval of a proportion at level 1 - alpha (eq. 28)."""
    positive, total = _counts(k, n)
    negative = total - positive
    # The upper bound is one minus the lower bound of the negatives.
    return _lower_bound(positive, negative, alpha), 1.0 - _lower_bound(negative, positive, alpha)


def binomial_contour(
    model: BinomialModel, k: ArrayLike, n: ArrayLike, tau: ArrayLike, alpha: float = 0.05
) -> Floats:
    """Return the plausibility of each proportion `tau` after k positives among n examples.

    "likelihood" is eq. 29 and "confidence" eq. 25. "dempster" is the random interval between order
    statistics k and k + 1 of n uniform variables; it covers tau with the binomial probability of k.
    The arrays are broadcast against each other.
    """
    positive, total = _counts(k, n)
    proportion = np.asarray(tau, dtype=np.float64)
    if model == "confidence":
        lower, upper = clopper_pearson(positive, total, alpha)
        return np.where((lower <= proportion) & (proportion <= upper), 1.0, alpha)
    negative = total - positive
    write = _write_relative_likelihood if model == "likelihood" else _write_probability
    return _each(write, positive, negative, proportion)


def _lower_bound(hits: Floats, misses: Floats, alpha: float) -> Floats:
    return _each(_write_lower_bound, hits, misses, np.float64(alpha / 2.0))


def _each(write: Callable[..., None], *values: ArrayLike) -> Floats:
    """Broadcast the arrays together and apply a compiled elementwise function."""
    whole = [np.array(each) for each in np.broadcast_arrays(*values)]
    found = np.empty(whole[0].shape)
    write(*(each.reshape(-1) for each in whole), found.reshape(-1))
    return found


def _counts(k: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    return np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)


@kernel
def _write_lower_bound(hits: Floats, misses: Floats, tail: Floats, found: Floats) -> None:
    """Write the lower bound of each confidence interval."""


@kernel
def _write_belief(hits: Floats, misses: Floats, found: Floats) -> None:
    """Write the maximum likelihood proportion minus the integral of the contour below it."""


@kernel
def _write_relative_likelihood(hits: Floats, misses: Floats, shares: Floats, found: Floats) -> None:
    """Write the likelihood of each proportion relative to the maximum."""


@kernel
def _write_probability(hits: Floats, misses: Floats, shares: Floats, found: Floats) -> None:
    """Write the binomial probability of the hits."""


@kernel
def log_likelihood(hits: float, misses: float, share: float) -> float:
    """Return log(share^hits (1 - share)^misses), with 0^0 = 1."""


_OPTIONS = StateSchema(one("model", below=len(BINOMIAL_MODELS)), floats("alpha", "1"))


class BlockMap(CountsMap, EvidentialMap):
    """A map that is constant on each block of scores and changes midway between two blocks.

    Attributes
    ----------
    edges_ : ndarray of shape (n_blocks - 1,)
        Inclusive upper edge of each block except the last.
    totals_, positives_ : ndarray of shape (n_blocks,)
        Number of examples, and of positive examples, in each block.
    masses_ : ndarray of shape (n_blocks, 3)
        m({1}), m({0}), m({0, 1}) of each block.
    """

    _learned = "totals_"
    _fields = StateSchema(
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
        """Convert each block's own masses to the masses of the map."""

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
        """Compute the masses from the counts of the blocks."""
        own = binomial_mass(self.model, self.positives_, self.totals_, self.alpha)
        self.masses_ = self._shape(own)

    def _block(self, scores: Floats) -> Ints:
        return np.searchsorted(self.edges_, scores, side="left")


class EvidentialBinning(BlockMap):
    """Masses of the bin that holds the score; the bins are the same as in `ScoreBinning`.

    Parameters
    ----------
    model : {"likelihood", "confidence", "dempster"}, default="likelihood"
        Conversion of counts to belief: the relative likelihood as contour (eqs 29-31), the
        Clopper-Pearson interval (eqs 26-28), or Dempster's model (eq. 24).
    n_bins : int, default=10
        Maximum number of bins of equal count. Empty bins are dropped.
    alpha : float, default=0.05
        One minus the confidence level, for "confidence".

    References
    ----------
    P. Xu, F. Davoine, H. Zha, T. Denoeux (2016), Evidential calibration of binary SVM classifiers.

    Examples
    --------
    >>> fitted = EvidentialBinning("dempster", n_bins=2).fit([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1])
    >>> fitted.predict_interval([0.5, 2.5]).round(3).tolist()
    [[0.0, 0.333], [0.667, 1.0]]
    """

    _fields = StateSchema(*BlockMap._fields, one("n_bins", least=1))

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
    """Masses of isotonic regression: Bel and Pl never decrease with the score.

    Tied scores are pooled, then adjacent violators, and adjacent blocks of equal means, because the
    masses depend on how many examples share a mean. The bounds of single blocks need not be
    monotone, so Pl becomes its running maximum from the lowest block and Bel its running minimum
    from the highest block.

    Parameters
    ----------
    model, alpha
        As in `EvidentialBinning`.

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
        """Apply the running extremes: a running minimum of m({0}) is a running maximum of Pl."""
        belief = np.minimum.accumulate(masses[::-1, 0])[::-1]
        return stack(belief, np.minimum.accumulate(masses[:, 1]))


def check_proportions(tau: ArrayLike) -> Floats:
    """Return proportions as an array of shape (m,); raise InvalidInput if one is outside [0, 1]."""
    values = check_finite(np.atleast_1d(np.asarray(tau, dtype=np.float64)), "tau")
    if ((values < 0.0) | (values > 1.0)).any():
        raise InvalidInput("tau: a proportion is outside [0, 1]")
    return values
