"""Split the available examples into a proper training set and a calibration set."""

import math
from typing import NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.errors import InvalidInput
from online_svm.types import Bools, Floats, Ints

DENSE_REFITS = (
    *(10, 14, 20, 28, 40, 56, 80, 110, 145, 180, 215),
    *range(250, 500, 50),
    *range(500, 1001, 125),
)
"""Numbers of learned examples at the early refits of a committee.

Answers improve fastest early, and only outputs after a refit give members their weights.
"""

_SHUFFLE_SEED_OFFSET = 1 << 63
"""Added to the seed of a shuffle, so that it differs from every seed of a split."""

_FIRST_LABEL_DRAW = 1 << 62
"""Added to an example's number for its label draw, so that the draw differs from every split's."""


class Parts(NamedTuple):
    """The available examples, split into two parts."""

    training: slice | Bools  # rows of the proper training set
    calibration: slice | Bools  # rows of the calibration set
    size: int  # number of training examples


def training_mask(split: str, start: int, stop: int, train_fraction: float, seed: int = 0) -> Bools:
    """Return the mask of the proper training set among the examples start ... stop - 1.

    The split "oldest" takes the oldest ceil(train_fraction * size) examples, as in Lambrou et al.
    (2012). "interleaved" chooses by a seeded hash of the example's number: both parts are equally
    recent, and an example stays in its part. The mask has shape (stop - start,). Raises
    InvalidInput if `split` is unknown.
    """
    if split == "oldest":
        return np.arange(stop - start) < _oldest(stop - start, train_fraction)
    if split == "interleaved":
        return _uniform(seed, start, stop) < train_fraction
    raise InvalidInput(f"split: {split!r} is unknown; use 'oldest' or 'interleaved'")


def parts(split: str, start: int, stop: int, train_fraction: float) -> Parts:
    """Return the parts by `training_mask`, as slices for "oldest"."""
    if split == "oldest":
        size = _oldest(stop - start, train_fraction)
        return Parts(slice(0, size), slice(size, None), size)
    mask = training_mask(split, start, stop, train_fraction)
    return Parts(mask, ~mask, int(np.count_nonzero(mask)))


def is_refit_due(n: int, refit_every: int, dense_until: int = 0) -> bool:
    """Return whether a refit freezes after the n-th example was learned.

    Refits are due at every multiple of `refit_every`, and before the first multiple at n = 10, 20,
    40, 80, ... With `dense_until` the early refits are the members of `DENSE_REFITS` below it.
    """
    return n % refit_every == 0 or is_early_refit(n, refit_every, dense_until)


def is_early_refit(n: int, refit_every: int, dense_until: int = 0) -> bool:
    """Return whether a refit at n is an early one.

    Early refits are the members of `DENSE_REFITS` below `dense_until`; without it 10, 20, 40, ...
    below `refit_every`.
    """
    if dense_until:
        return n < dense_until and n in DENSE_REFITS
    tens, rest = divmod(n, 10)
    return n < refit_every and rest == 0 and tens > 0 and tens & (tens - 1) == 0


def next_refit(n: int, refit_every: int, dense_until: int = 0) -> int:
    """Return the smallest number above n at which a refit is due."""
    multiple = (n // refit_every + 1) * refit_every
    if dense_until:
        early = next((k for k in DENSE_REFITS if n < k < dense_until), multiple)
        return min(early, multiple)
    if n >= refit_every:
        return multiple
    early = 10
    while early <= n:
        early *= 2
    return min(early, multiple)


def shuffled(count: int, seed: int = 0) -> Ints:
    """Return 0 ... count - 1 in an order by hash that is independent of the split."""
    return np.argsort(_uniform(seed + _SHUFFLE_SEED_OFFSET, 0, count), kind="stable")


def label_draws(start: int, stop: int, seed: int = 0) -> Floats:
    """Return one number in [0, 1) for each of the examples start ... stop - 1.

    The label of an example is wanted if its number is below its probability; see `LabelBudget`. The
    numbers are independent of the split.
    """
    return _uniform(seed, _FIRST_LABEL_DRAW + start, _FIRST_LABEL_DRAW + stop)


def _oldest(n: int, train_fraction: float) -> int:
    return math.ceil(train_fraction * n)


def _uniform(seed: int, start: int, stop: int) -> Floats:
    """Return one number in [0, 1) per example, by the SplitMix64 generator (Steele et al. 2014)."""
    numbers = np.empty(stop - start)
    _fill(seed, start, numbers)
    return numbers


@kernel
def _fill(seed: int, start: int, numbers: Floats) -> None:
    """Write the numbers of the examples from `start` on."""
