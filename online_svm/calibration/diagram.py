"""Check scores, labels and weights of calibrators, and count them in a cumulative sum diagram.

Tied scores are pooled first. Point j of the diagram is (examples, positives) among the j lowest
distinct scores; the isotonic fit is the slope of the greatest convex minorant (Barlow et al.
1972). Counts are integers and slopes are compared by cross-multiplication, so equal means merge
exactly (up to 3e9 examples). Means of fractional weights may differ by rounding and stay separate.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from online_svm.compiled.kernel import kernel
from online_svm.errors import InvalidInput
from online_svm.stream.frames import scores_by_name
from online_svm.types import Bools, Floats, Ints, Weights

MAX_EXACT_EXAMPLES = 3_000_000_000  # up to this many examples, products of two counts fit 64 bits


def check_scores(scores: ArrayLike) -> Floats:
    """Return `scores` as a float64 array; raise InvalidInput unless it is 1-D and finite."""
    values = _as_floats(scores, "scores")
    if values.ndim != 1:
        raise InvalidInput(
            f"scores: expected one score an example, shape (n,), got shape {values.shape}"
        )
    return check_finite(values, "scores")


def check_finite(values: Floats, name: str) -> Floats:
    """Return `values` unchanged, or raise InvalidInput if one is NaN or infinite."""
    if not np.isfinite(values).all():
        first = int(np.flatnonzero(~np.isfinite(values.ravel()))[0])
        raise InvalidInput(
            f"{name}: value {first} is {values.ravel()[first]}; remove such examples"
        )
    return values


def check_labels(labels: ArrayLike, n_samples: int) -> Bools:
    """Return two-class labels as booleans.

    Raises InvalidInput if the shape is not (n_samples,), or a label is not 0, 1, False or True.
    """
    values = np.asarray(labels)
    if values.shape != (n_samples,):
        raise InvalidInput(
            f"labels: expected one label for each of {n_samples} scores, got shape {values.shape}"
        )
    if values.dtype == np.bool_:
        return np.ascontiguousarray(values)  # kernels take contiguous arrays
    positive = np.asarray(values == 1, dtype=np.bool_)
    if not (positive | np.asarray(values == 0, dtype=np.bool_)).all():
        raise InvalidInput("labels: must be 0 or 1; encode the positive class as 1")
    return positive


def check_training(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Bools]:
    """Return checked scores and labels; see `check_scores` and `check_labels`."""
    values = check_scores(scores)
    return values, check_labels(labels, len(values))


def check_weights(sample_weight: ArrayLike, n_samples: int) -> Weights:
    """Return sample weights: int64 if all are whole numbers, float64 otherwise.

    A fit with whole weights equals a fit on repeated examples. Raises InvalidInput if the shape is
    not (n_samples,), or a weight is neither 0 nor in [1e-100, 1e100].
    """
    weights = _as_floats(sample_weight, "sample_weight")
    if weights.shape != (n_samples,):
        raise InvalidInput(
            f"sample_weight: expected one weight for each of {n_samples} scores, "
            f"got shape {weights.shape}"
        )
    check_finite(weights, "sample_weight")
    if (weights < 0.0).any():
        raise InvalidInput(f"sample_weight: {weights.min()} is negative; use 0 to leave one out")
    if ((weights != 0.0) & ((weights < 1e-100) | (weights > 1e100))).any():  # so that squares fit
        raise InvalidInput("sample_weight: give 0, or sizes from 1e-100 to 1e100")
    is_whole = (weights == np.floor(weights)).all() and weights.sum() <= MAX_EXACT_EXAMPLES
    return weights.astype(np.int64) if is_whole else weights


def check_n_bins(n_bins: int) -> None:
    """Raise InvalidInput unless `n_bins` is a whole number of at least 1."""
    if not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise InvalidInput(f"n_bins: must be at least 1, and whole, not {n_bins!r}")


def check_codes(codes: ArrayLike, n_samples: int, n_classes: int) -> Ints:
    """Return class codes as int64, or raise InvalidInput if one is not in [0, n_classes)."""
    values = np.asarray(codes)
    if values.shape != (n_samples,) or (values.dtype.kind not in "iub" and n_samples):
        raise InvalidInput(
            f"codes: expected {n_samples} integers, one a row of scores, got {values.dtype} "
            f"of shape {values.shape}"
        )
    if n_samples and not (values.min() >= 0 and values.max() < n_classes):
        raise InvalidInput(f"codes: must lie in 0..{n_classes - 1} for this number of columns")
    return values.astype(np.int64)


def check_columns(scores: ArrayLike) -> Floats:
    """Return score rows as a float64 matrix; raise InvalidInput unless it is 2-D and finite.

    The columns of a data frame are found by the codes of the classes, if they have names.
    """
    try:
        if not isinstance(scores, np.ndarray):
            scores = scores_by_name(scores, argument="scores")
        columns = np.asarray(scores, dtype=np.float64)
    except InvalidInput:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidInput("scores: expected rows of numbers, all of one length") from error
    if columns.ndim != 2 or not columns.shape[1]:
        raise InvalidInput(
            "scores: expected shape (n, 1) for two classes, or one column a class, "
            f"got {columns.shape}"
        )
    return check_finite(columns, "scores")


def _as_floats(values: ArrayLike, name: str) -> Floats:
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name}: expected numbers, got {type(values).__name__}") from error


@dataclass(frozen=True, slots=True)
class TiedCounts:
    """Number (or summed weight) of examples at each of k distinct scores."""

    scores: Floats  # distinct, ascending; shape (k,)
    totals: Weights  # all examples at each score
    positives: Weights  # positive examples at each score

    def diagram(self) -> tuple[Weights, Weights]:
        """Return the k + 1 points of the diagram, from (0, 0): cumulative totals and positives."""
        return _from_zero(self.totals), _from_zero(self.positives)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Runs of adjacent distinct scores that share one frequency of positives; all shapes (b,)."""

    lower: Floats  # lowest score of each block, ascending
    upper: Floats  # highest score of each block
    totals: Weights  # number (or summed weight) of examples
    positives: Weights  # number (or summed weight) of positive examples


def pool_ties(scores: Floats, labels: Bools) -> TiedCounts:
    """Count all examples and positive examples at each distinct score."""
    order = np.argsort(scores)  # unstable sort: faster, and sums over ties need no order
    ordered = scores[order] + 0.0  # -0.0 becomes 0.0, so that ties are bit-identical
    is_end = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_end[:-1])
    ends = np.flatnonzero(is_end)
    running = np.cumsum(labels[order], dtype=np.int64)
    return TiedCounts(
        scores=ordered[ends], totals=_differences(ends + 1), positives=_differences(running[ends])
    )


def pool_weights(scores: Floats, labels: Bools, weights: Weights) -> TiedCounts:
    """Sum the weights of all examples and of positive examples at each distinct score."""
    distinct, group = np.unique(scores + 0.0, return_inverse=True)
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], np.arange(len(distinct)))
    return TiedCounts(
        scores=distinct,
        totals=sums(weights[order], first),
        positives=sums(np.where(labels, weights, 0)[order], first),
    )


def sums(counts: Weights, first: Ints) -> Weights:
    """Return the sums of runs of adjacent counts, given the start of each run."""
    return np.add.reduceat(counts, first) if len(first) else counts[:0]


def isotonic_blocks(counts: TiedCounts) -> Blocks:
    """Pool adjacent violators; also merge equal means, so that frequencies increase strictly."""
    totals, positives = counts.diagram()
    corners = hull_corners(hull_links(totals, positives))
    return Blocks(
        lower=counts.scores[corners[:-1]],
        upper=counts.scores[corners[1:] - 1],
        totals=sums(counts.totals, corners[:-1]),
        positives=sums(counts.positives, corners[:-1]),
    )


def equal_count_bins(counts: TiedCounts, n_bins: int) -> Blocks:
    """Group distinct scores into at most `n_bins` non-empty bins of about equal count.

    Example r of n (from 0) belongs to bin floor(n_bins r / n); tied examples belong to the bin of
    their middle rank. With fractional weights, cumulative weight replaces rank.
    """
    bins = _bins(counts.totals, n_bins)
    is_first = np.ones(len(bins), dtype=np.bool_)
    np.not_equal(bins[1:], bins[:-1], out=is_first[1:])
    first = np.flatnonzero(is_first)
    last = np.empty_like(first)
    last[:-1], last[-1:] = first[1:] - 1, len(bins) - 1
    return Blocks(
        lower=counts.scores[first],
        upper=counts.scores[last],
        totals=sums(counts.totals, first),
        positives=sums(counts.positives, first),
    )


def _bins(totals: Weights, n_bins: int) -> Ints:
    """Return the bin of each distinct score."""
    ends = np.cumsum(totals)
    if not len(ends):
        return np.zeros(0, dtype=np.int64)
    if totals.dtype == np.float64:
        middle = (ends - 0.5 * totals) / ends[-1]
        return np.asarray(np.minimum(middle * n_bins, n_bins - 1), dtype=np.int64)
    twice_middle = 2 * ends - totals - 1
    return np.asarray(twice_middle * n_bins // (2 * int(ends[-1])), dtype=np.int64)


def midpoints(lower: Floats, upper: Floats) -> Floats:
    """Return the midpoint of each pair of neighbours, kept in [lower, upper).

    A score at the edge belongs to the lower side. Between two adjacent floats the edge is the
    lower.
    """
    middle = lower * 0.5 + upper * 0.5  # the sum itself could overflow
    return np.where(middle < upper, np.maximum(middle, lower), lower)


def hull_links(x: Weights, y: Weights) -> Ints:
    """For each point, return the index of the next corner of the convex minorant that begins there.

    The last point links to itself; points inside a straight edge are not corners. The diagram (x,
    y) has shape (k + 1,) and x increases strictly.
    """
    links = np.empty(len(x), dtype=np.int64)
    write_links = _links_of_counts if x.dtype == np.int64 else _links_of_weights
    write_links(x, y, links)
    return links


def hull_corners(links: Ints) -> Ints:
    """Return the corners on the path of links from the first point to the last."""
    corners = np.empty(len(links), dtype=np.int64)
    return corners[: _hull_corners(links, corners)]


@kernel
def _links_of_counts(x: Ints, y: Ints, links: Ints) -> None:
    """Write the links of a diagram of counts; all arrays have shape (k + 1,)."""


@kernel
def _links_of_weights(x: Floats, y: Floats, links: Ints) -> None:
    """Write the links of a diagram of weights; all arrays have shape (k + 1,)."""


@kernel
def _hull_corners(links: Ints, corners: Ints) -> int:
    """Write the corners and return their number; both arrays have shape (k + 1,)."""


def _from_zero(counts: Weights) -> Weights:
    running = np.zeros(len(counts) + 1, dtype=counts.dtype)
    np.cumsum(counts, out=running[1:])
    return running


def _differences(running: Ints) -> Ints:
    """Return the summands of a cumulative sum."""
    counts = running.copy()
    counts[1:] -= running[:-1]
    return counts
