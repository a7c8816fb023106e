"""The rolling split of the available examples into proper training and calibration."""

import math
from typing import NamedTuple

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.errors import InvalidInput
from online_svm.types import Bools, Floats, Ints

DENSE = (
    *(10, 14, 20, 28, 40, 56, 80, 110, 145, 180, 215),
    *range(250, 500, 50),
    *range(500, 1001, 125),
)
"""Early refits of a committee: answers improve fastest then, and its members can be weighed only by
what they said of examples that came after a refit."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Parts(NamedTuple):
    """The available examples in two parts.

    Attributes
    ----------
    training, calibration : slice or ndarray of bool
        Index of the proper training set among them, and of the others.
    size : int
        Examples that train.
    """

    training: slice | Bools
    calibration: slice | Bools
    size: int


def training_mask(split: str, start: int, stop: int, train_fraction: float, seed: int = 0) -> Bools:
    """Return which of the examples numbered start ... stop - 1 form the proper training set.

    Parameters
    ----------
    split : {"oldest", "interleaved"}
        "oldest" takes the oldest ceil(train_fraction * size) examples, as in Lambrou et al.
        (2012); "interleaved" takes an example by a hash of its own number, blind to its label,
        so that the model is as fresh as its calibration.
    start, stop : int
        Event numbers of the available examples.
    train_fraction : float
        Share of the training part, in (0, 1).
    seed : int
        Seed of the hash.

    Returns
    -------
    ndarray of bool, shape (stop - start,)

    Raises
    ------
    InvalidInput
        If `split` is unknown.

    Examples
    --------
    >>> training_mask("oldest", 10, 14, 0.7)
    array([ True,  True,  True, False])
    >>> training_mask("interleaved", 5, 9, 0.7).tolist()  # an example keeps its part
    [True, False, False, True]
    >>> training_mask("interleaved", 0, 9, 0.7)[5:].tolist()
    [True, False, False, True]
    """
    if split == "oldest":
        return np.arange(stop - start) < _oldest(stop - start, train_fraction)
    if split == "interleaved":
        return _uniform(seed, start, stop) < train_fraction
    raise InvalidInput(f"split: {split!r} is unknown; use 'oldest' or 'interleaved'")


def parts(split: str, start: int, stop: int, train_fraction: float) -> Parts:
    """Return the parts that `training_mask` makes; slices where the oldest train.

    Raises
    ------
    InvalidInput
        If `split` is unknown.

    Examples
    --------
    >>> parts("oldest", 10, 14, 0.7)
    Parts(training=slice(0, 3, None), calibration=slice(3, None, None), size=3)
    """
    if split == "oldest":
        size = _oldest(stop - start, train_fraction)
        return Parts(slice(0, size), slice(size, None), size)
    mask = training_mask(split, start, stop, train_fraction)
    return Parts(mask, ~mask, int(np.count_nonzero(mask)))


def window_parts(
    split: str, start: int, stop: int, train_fraction: float, seed: int = 0
) -> tuple[Bools, Bools]:
    """Return which of the examples numbered start ... stop - 1 train, and which calibrate.

    Parameters and errors are those of `training_mask`; `split` may also be "crossfit", where all
    examples do both (see `fold_numbers`).

    Examples
    --------
    >>> trains, calibrates = window_parts("oldest", 0, 3, 0.6)
    >>> trains.tolist(), calibrates.tolist()
    ([True, True, False], [False, False, True])
    >>> window_parts("crossfit", 0, 2, 0.6)
    (array([ True,  True]), array([ True,  True]))
    """
    if split == "crossfit":
        return np.ones(stop - start, dtype=np.bool_), np.ones(stop - start, dtype=np.bool_)
    trains = training_mask(split, start, stop, train_fraction, seed)
    return trains, ~trains


def fold_numbers(start: int, stop: int, folds: int, seed: int = 0) -> Ints:
    """Return the fold of each of the examples numbered start ... stop - 1, from 0 to folds - 1.

    By the hash that interleaves: an example keeps its fold in every window, blind to its label.

    Examples
    --------
    >>> fold_numbers(5, 9, 5).tolist(), fold_numbers(0, 9, 5)[5:].tolist()
    ([2, 4, 3, 1], [2, 4, 3, 1])
    """
    return (_uniform(seed, start, stop) * folds).astype(np.int64)


def is_refit_due(n: int, refit_every: int, dense_until: int = 0) -> bool:
    """Return whether a refit freezes after the n-th example was learned.

    That is at every multiple of `refit_every`, and before the first at n = 10, 20, 40, 80, ...
    The early ones lie closer together where `dense_until` is given: they are those of `DENSE`
    below it.

    Examples
    --------
    >>> [n for n in range(1, 300) if is_refit_due(n, 100)]
    [10, 20, 40, 80, 100, 200]
    >>> [n for n in range(30, 300) if is_refit_due(n, 100, dense_until=200)]
    [40, 56, 80, 100, 110, 145, 180, 200]
    """
    return n % refit_every == 0 or is_early_refit(n, refit_every, dense_until)


def is_early_refit(n: int, refit_every: int, dense_until: int = 0) -> bool:
    """Return whether n is one of the early refits: of `DENSE` below `dense_until`, where given.

    Else one of 10, 20, 40, ... below the first multiple of `refit_every`.
    """
    if dense_until:
        return n < dense_until and n in DENSE
    tens, rest = divmod(n, 10)
    return n < refit_every and rest == 0 and tens > 0 and tens & (tens - 1) == 0


def next_refit(n: int, refit_every: int, dense_until: int = 0) -> int:
    """Return the smallest number above n at which a refit is due.

    Examples
    --------
    >>> next_refit(10, 100), next_refit(80, 100), next_refit(100, 100)
    (20, 100, 200)
    >>> next_refit(10, 100, 400), next_refit(300, 250, 1000), next_refit(1000, 250, 1000)
    (14, 350, 1250)
    """
    multiple = (n // refit_every + 1) * refit_every
    if dense_until:
        early = next((k for k in DENSE if n < k < dense_until), multiple)
        return min(early, multiple)
    if n >= refit_every:
        return multiple
    early = 10
    while early <= n:
        early *= 2
    return min(early, multiple)


def _oldest(n: int, train_fraction: float) -> int:
    return math.ceil(train_fraction * n)


def _uniform(seed: int, start: int, stop: int) -> Floats:
    """Return numbers in [0, 1), one an event, by the SplitMix64 generator (Steele et al. 2014)."""
    numbers = np.empty(stop - start)
    _fill(np.uint64(seed), start, numbers)
    return numbers


@jit
def _fill(seed: np.uint64, start: int, numbers: Floats) -> None:
    key = mix(seed + _GOLDEN)
    state = np.uint64(start) * _GOLDEN
    for i in range(len(numbers)):
        state += _GOLDEN
        numbers[i] = np.float64(mix(state ^ key) >> np.uint64(11)) * 2.0**-53


@jit
def mix(z: np.uint64) -> np.uint64:
    """Return 64 bits that each depend on all bits of `z` (the finalizer of SplitMix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
