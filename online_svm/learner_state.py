"""What must hold of a learner's state before anything is computed from it.

Compiled code does not check its indices, and memory is allocated by the sizes that a state names.
So a state whose parts contradict each other, or the configuration, is refused here, whole.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from online_svm import frames
from online_svm.arrays import Arrays, under
from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.svm.held import largest_ring
from online_svm.svm.rows import (
    CLOCK,
    SEEN_HEAD,
    SEEN_SIZE,
    SEEN_TAIL,
    TRAIN_HEAD,
    TRAIN_SIZE,
    TRAIN_TAIL,
)
from online_svm.venn.split import window_parts

Header = dict[str, Any]

_FLOATS, _INTS = "<f8", "<i8"
_COUNTS = ("start", "n_classes", "refits", "fitted_on")
_MACHINE_COUNTS = ("max_steps", "steps", "refreshed_at")


def opened(config: PredictorConfig, state: bytes) -> tuple[Header, Arrays]:
    """Return header and arrays of what `Learner.state` returned under `config`.

    Raises
    ------
    InvalidSnapshot
        If the bytes are damaged, or the parts do not fit one another or the configuration.
    """
    try:
        own, parts = frames.split(state)
        _check(config, own, parts)
    except (
        ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise InvalidSnapshot(f"the state of the learner cannot be read: {error}") from error
    return own, parts


def _check(config: PredictorConfig, own: Header, parts: Arrays) -> None:
    _check_counts(own, _COUNTS)
    _require(math.isfinite(own["gamma"]) and own["gamma"] >= 0.0, "gamma")
    n, d = parts["rows"].shape
    _require(config.window is None or n <= config.window, "rows")
    _check_array(parts, "rows", _FLOATS, (n, d), finite=False)  # NaN is a missing value
    scaling = under("scaling", parts)
    for name in ("mean", "width", "fill"):
        _check_array(scaling, name, _FLOATS, (d,))
    _check_array(scaling, "limit", _FLOATS, (1,), finite=False)
    if "machine" in own:
        check = _check_folds if config.split == "crossfit" else _check_machine
        check(config, own["n_classes"], own["machine"], under("machine", parts), (n, d))
    if config.learner == "linear":
        trains = window_parts(
            config.split, own["start"], own["start"] + n, config.train_fraction, config.seed
        )[0]
        shape = (int(trains.sum()), d)
        _check_linear(config, own["n_classes"], under("linear", parts), shape)


def _check_linear(
    config: PredictorConfig, classes: int, arrays: Arrays, shape: tuple[int, int]
) -> None:
    """Check a map and the machines on it, over training rows of that shape."""
    n, d = shape
    _check_array(arrays, "is_settled", "|b1", (1,))
    if not under("map", arrays):  # as long as nothing was there to fit one on
        _require(not under("machine", arrays) and not arrays["is_settled"][0], "machine")
        return
    if config.feature_map == "fourier":
        size = config.n_components
        _check_array(arrays, "map.weights", _FLOATS, (d, size))
        _check_array(arrays, "map.offset", _FLOATS, (size,))
    else:
        size = len(arrays["map.landmarks"])
        _require(0 < size <= config.n_components, "map.landmarks")
        _check_array(arrays, "map.landmarks", _FLOATS, (size, d))
        _check_array(arrays, "map.normalization", _FLOATS, (size, size))
    machines = 1 if classes == 2 else classes
    _require(classes >= 2, "n_classes")
    _check_array(arrays, "machine.past", _FLOATS, (machines, size + 1))
    _check_array(arrays, "machine.alpha", _FLOATS, (machines, n))
    _check_range(arrays, "machine.codes", n, classes)


def _check_folds(
    config: PredictorConfig, classes: int, header: Header, arrays: Arrays, shape: tuple[int, int]
) -> int:
    """Check the machines of a cross-fit, each of which observes one fold of the rows."""
    _check_range(arrays, "folds", shape[0], config.folds)
    _require(len(header["machines"]) == config.folds, "folds")
    for f, machine in enumerate(header["machines"]):
        training = _check_machine(config, classes, machine, under(str(f), arrays), shape)
        _require(training == np.count_nonzero(arrays["folds"] != f), "folds")
    return shape[0]


def _check_machine(
    config: PredictorConfig, classes: int, header: Header, arrays: Arrays, shape: tuple[int, int]
) -> int:
    """Check a machine over the rows, whose shape it must have; return how many train it."""
    n, d = shape
    _check_counts(header, _MACHINE_COUNTS)
    _require(header["kernel"][0] == config.kernel, "kernel")
    _require((header["tol"], header["window"]) == (config.tol, config.window), "tol or window")
    _require(0 < header["cache_mb"] <= 1 << 20, "cache_mb")
    _require(type(header["is_solved"]) is bool, "is_solved")
    # Where all points are kept, a ring is at most half as large again as it ever had to be.
    training = _check_rings(arrays, n, largest_ring(config.window or 2 * n))
    machines = 1 if classes == 2 else classes
    _check_array(arrays, "penalties", _FLOATS, (classes,))
    _require(classes >= 2 and arrays["penalties"].min() > 0.0, "penalties")
    _check_array(arrays, "X", _FLOATS, (n, d))
    _check_array(arrays, "weights", _FLOATS, (2 * machines, training))
    _check_array(arrays, "sums", _FLOATS, (2 * machines, n))
    _check_array(arrays, "b", _FLOATS, (machines,))
    _check_array(arrays, "arrivals", _INTS, (1,))
    _check_range(arrays, "codes", n, classes)
    _check_range(arrays, "arrival", n, int(arrays["arrivals"][0]))
    return training


def _check_rings(arrays: Arrays, n: int, largest: int) -> int:
    """Check how the rings of `n` points stand; return how many of these train."""
    _check_array(arrays, "rings", _INTS, (CLOCK,))
    rings = [int(entry) for entry in arrays["rings"]]
    held = []
    for head, tail, size in (
        (TRAIN_HEAD, TRAIN_TAIL, TRAIN_SIZE),
        (SEEN_HEAD, SEEN_TAIL, SEEN_SIZE),
    ):
        held.append(rings[tail] - rings[head])
        fits = 0 <= rings[head] <= rings[tail] and held[-1] <= rings[size]
        _require(fits and 0 < rings[size] <= largest, "rings")
    _require(sum(held) == n, "rings")
    return held[0]


def _check_counts(header: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        _require(type(header[name]) is int and header[name] >= 0, name)


def _check_range(arrays: Arrays, name: str, n: int, stop: int) -> None:
    """Check n integers of 0 ... stop - 1."""
    _check_array(arrays, name, _INTS, (n,))
    values = arrays[name]
    _require(n == 0 or (values.min() >= 0 and values.max() < stop), name)


def _check_array(
    arrays: Arrays, name: str, dtype: str, shape: tuple[int, ...], finite: bool = True
) -> None:
    array: NDArray[Any] = arrays[name]
    _require(array.dtype.str == dtype and array.shape == shape, name)
    _require(not finite or bool(np.isfinite(array).all()), name)


def _require(holds: object, name: str) -> None:
    if not holds:
        raise ValueError(f"{name} does not fit")
