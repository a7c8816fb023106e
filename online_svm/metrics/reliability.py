"""The calibration of the probabilities of one event: bins, statistics, and the CORP parts.

Each reliability bin has a consistency band: the frequencies expected by chance if the probabilities
are perfect. For n examples with mean probability p it covers the central 90 % of the binomial
distribution (n, p). If the probabilities within a bin differ, the true spread is smaller (Hoeffding
1956) and the band slightly too wide.

The three statistics are tests only at one moment chosen in advance. Under repeated looks, as in a
rolling window, their p-values are invalid; the statistics still describe where and how far
probabilities are off.

CORP (Dimitriadis, Gneiting & Jordan 2021, "Stable reliability diagrams for probabilistic
classifiers", PNAS 118) recalibrates by isotonic regression, which needs no choice of bins:

    Brier score = miscalibration - discrimination + uncertainty

Miscalibration is the decrease of the score by recalibration. Discrimination is the lead of the
recalibrated probabilities over the constant frequency. Uncertainty is the score of that constant.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.diagram import check_labels, check_scores
from online_svm.compiled.kernel import kernel
from online_svm.errors import InvalidInput
from online_svm.stream.validity_report import ReliabilityBin
from online_svm.types import Bools, Floats, Ints


class SortedEvents(NamedTuple):
    """Events by ascending probability; among equal probabilities, non-events come first.

    Only identical pairs tie, so sums in this order have the same bits for every order of arrival.
    Both fields have shape (n_samples,).
    """

    probabilities: Floats
    happened: Bools


def sorted_events(probabilities: ArrayLike, outcomes: ArrayLike) -> SortedEvents:
    """Return checked probabilities and outcomes, both of shape (n_samples,), sorted.

    A probability is P(positive), or the confidence in the predicted class; an outcome is 1 if the
    event happened, else 0. Raises InvalidInput if a probability is not in [0, 1], an outcome is not
    0 or 1, or there are no examples.
    """
    values, happened = check_events(probabilities, outcomes)
    order = np.argsort(sort_keys(values, happened))
    return SortedEvents(values[order], happened[order])


def check_events(probabilities: ArrayLike, outcomes: ArrayLike) -> tuple[Floats, Bools]:
    """Return checked probabilities and outcomes; errors are as in `sorted_events`."""
    values = check_probabilities(probabilities)
    return values, check_labels(outcomes, len(values))


def check_probabilities(probabilities: ArrayLike) -> Floats:
    """Return at least one probability in [0, 1], shape (n,), or raise InvalidInput."""
    values = check_scores(probabilities)
    if not len(values):
        raise InvalidInput("probabilities: there is no example to score")
    return check_unit(values)


def check_unit(values: Floats) -> Floats:
    """Return `values` unchanged; raise InvalidInput if one is not in [0, 1]."""
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise InvalidInput("probabilities: must lie in [0, 1]")
    return values


def sort_keys(probabilities: Floats, happened: Bools) -> Ints:
    """Return integer keys that sort like the pairs (p, outcome): 2 * bits of p + outcome.

    The bits of floats in [0, 1], read as integers, ascend like the floats, and the two highest bits
    are 0.
    """
    bits = np.ascontiguousarray(probabilities + 0.0).view(np.int64)  # -0.0 becomes 0.0
    return (bits << 1) | happened


def bin_ends(p: Floats, n_bins: int) -> Ints:
    """Return the position after the last example of each non-empty bin, for ascending `p`.

    Example r of n (from 0) belongs to bin floor(n_bins r / n); a run of equal probabilities belongs
    to the bin of its middle rank, as in `calibration.isotonic.equal_count_bins`.
    """
    ends = np.empty(min(n_bins, len(p)), dtype=np.int64)
    return ends[: _bin_ends(p, ends)]


@kernel
def _bin_ends(p: Floats, ends: Ints) -> int:
    """Write the position after each bin, for at most len(ends) bins; return their number."""


def binomial_range(n: int, p: float, tail: float) -> tuple[int, int]:
    """Return the quantiles of the binomial distribution at `tail` and 1 - `tail`.

    A quantile is the smallest k whose distribution function reaches the given probability.
    """
    return _binomial_range(p, tail, np.empty(n + 1))


@kernel
def _binomial_range(p: float, tail: float, weights: Floats) -> tuple[int, int]:
    """Return the quantiles for n = len(weights) - 1; `weights` is scratch."""


N_BINS = 10
BAND_TAIL = (1.0 - 0.9) / 2.0  # probability below and above a band


def reliability_bins(probabilities: ArrayLike, outcomes: ArrayLike) -> list[ReliabilityBin]:
    """Return equal-mass bins by ascending probability, with their bands.

    Parameters and errors are as in `sorted_events`; equal probabilities share a bin.
    """
    return as_bins(bin_rows(*sorted_events(probabilities, outcomes), N_BINS, BAND_TAIL))


def as_bins(rows: Floats) -> list[ReliabilityBin]:
    """Convert the rows of `bin_rows` to bins."""
    return [ReliabilityBin(int(row[0]), *row[1:]) for row in rows.tolist()]


def bin_rows(p: Floats, happened: Bools, n_bins: int, tail: float) -> Floats:
    """Return the bins of sorted events, shape (at most n_bins, 5)."""
    rows = np.empty((min(n_bins, len(p)), 5))
    return rows[: _bin_rows(p, happened, tail, rows, np.empty(len(p) + 1))]


@kernel
def _bin_rows(p: Floats, happened: Bools, tail: float, rows: Floats, weights: Floats) -> int:
    """Write one row a bin, for at most len(rows) bins; return their number.

    `rows` has shape (n_bins, 5); `weights` is scratch of shape (n + 1,).
    """


@kernel
def cumulative_statistics(p: Floats, happened: Bools) -> tuple[float, float, float]:
    """Return three statistics of sorted events, shape (n,), n >= 1.

    The z of Spiegelhalter (1986) is standard normal for perfect probabilities, positive for
    overconfident ones, and NaN if all are 0, 1/2 or 1. The Kolmogorov-Smirnov statistic is the
    maximum over probabilities q of |sum of y - p over the examples with p <= q| / n. Kuiper's is
    the same maximum over all ranges of probability; it finds deviations that cancel (Arrieta-Ibarra
    et al. 2022, "Metrics of calibration for probabilistic predictions").
    """


@kernel
def debiased_square(p: Floats, happened: Bools, n_bins: int) -> float:
    """Return the `squared_calibration_error` of sorted events, shape (n,); NaN for n < 2."""


class BrierParts(NamedTuple):
    """A Brier score and its non-negative parts."""

    brier: float  # mean of (p - y)^2: miscalibration - discrimination + uncertainty
    miscalibration: float
    discrimination: float
    uncertainty: float


def corp_decomposition(probabilities: ArrayLike, outcomes: ArrayLike) -> BrierParts:
    """Return the Brier score of one event and its parts; arguments as in `sorted_events`.

    Chance alone makes miscalibration positive; it shrinks with the number of examples.
    """
    return BrierParts(*brier_parts(*sorted_events(probabilities, outcomes)))


def brier_parts(p: Floats, happened: Bools) -> tuple[float, float, float, float]:
    """Return the parts for at least one sorted event."""
    return _brier_parts(p, happened, np.empty((3, len(p) + 1), dtype=np.int64))


@kernel
def _brier_parts(p: Floats, happened: Bools, diagram: Ints) -> tuple[float, float, float, float]:
    """Implement `brier_parts`; `diagram` is scratch of shape (3, n + 1)."""
