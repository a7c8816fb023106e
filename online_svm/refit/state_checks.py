"""Checks of a learner's state, before anything is computed from it.

Compiled code does not check its indices, and memory is allocated by the sizes that a state names.
So a state whose parts contradict each other, or the configuration, is refused here, whole.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.refit.committee.members import MEMBERS
from online_svm.refit.crossfit import FOLDS
from online_svm.storage.arrays import check_floats, check_indices, require, under
from online_svm.storage.container import unpack
from online_svm.storage.state import Header, State
from online_svm.stream.split import window_parts
from online_svm.svm.exact.active_set import most_active
from online_svm.svm.exact.held_points import largest_ring
from online_svm.svm.exact.kernel_cache import (
    CLOCK,
    SEEN_HEAD,
    SEEN_SIZE,
    SEEN_TAIL,
    TRAIN_HEAD,
    TRAIN_SIZE,
    TRAIN_TAIL,
)
from online_svm.svm.exact.rolling_machine import TOLERANCE
from online_svm.types import Arrays

_COUNTS = ("start", "n_classes", "refits", "fitted_on")
_MACHINE_COUNTS = ("max_steps", "steps", "refreshed_at")


def opened(config: PredictorConfig, state: bytes) -> State:
    """Return header and arrays of what `Learner.state` returned under `config`.

    Raises
    ------
    InvalidSnapshot
        If the bytes are damaged, or the parts do not fit one another or the configuration.
    """
    try:
        own, parts = unpack(state)
        _check(config, own, parts)
    except (
        ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise InvalidSnapshot(f"the state of the learner cannot be read: {error}") from error
    return State(own, parts)


def _check(config: PredictorConfig, own: Header, parts: Arrays) -> None:
    _check_counts(own, _COUNTS)
    require(math.isfinite(own["gamma"]) and own["gamma"] >= 0.0, "gamma")
    n, d = parts["rows"].shape
    require(config.window is None or n <= config.window, "rows")
    check_floats(parts, "rows", (n, d), finite=False)  # NaN is a missing value
    scaling = under("scaling", parts)
    for name in ("mean", "width", "fill"):
        check_floats(scaling, name, (d,))
    check_floats(scaling, "limit", (1,), finite=False)
    if "machine" in own:
        check = _check_folds if config.split == "crossfit" else _check_machine
        check(config, own["n_classes"], own["machine"], under("machine", parts), (n, d))
    trains = window_parts(
        config.split, own["start"], own["start"] + n, config.training_share, config.seed
    )[0]
    training = int(trains.sum())
    if config.members:
        committee = State(own["committee"], under("committee", parts))
        _check_committee(config, own["n_classes"], committee, (n, d), training)


def _check_committee(
    config: PredictorConfig, classes: int, state: State, shape: tuple[int, int], training: int
) -> None:
    """Check the machines of a committee, over rows of that shape, `training` of which are in T."""
    header, arrays = state
    machines = 1 if classes == 2 else classes
    check_floats(arrays, "foreseen", (training, len(config.members), machines), finite=False)
    said = np.isfinite(arrays["foreseen"])
    require((said | np.isnan(arrays["foreseen"])).all(), "foreseen")
    require((said.all(axis=(1, 2)) == said.any(axis=(1, 2))).all(), "foreseen")
    require(len(header["machines"]) == len(config.members), "machines")
    for m, (name, own) in enumerate(zip(config.members, header["machines"], strict=True)):
        parts, kind = under(str(m), arrays), MEMBERS[name].kind
        if kind == "logistic":
            check_floats(parts, "weights", (machines, shape[1] + 1))
        else:
            held = _check_solver(config, classes, own, parts, (shape[0], kind))
            require(held == training, "rings")


def _check_folds(
    config: PredictorConfig, classes: int, header: Header, arrays: Arrays, shape: tuple[int, int]
) -> int:
    """Check the machines of a cross-fit, each of which observes one fold of the rows."""
    check_indices(arrays, "folds", (shape[0],), FOLDS)
    require(len(header["machines"]) == FOLDS, "folds")
    for f, machine in enumerate(header["machines"]):
        training = _check_machine(config, classes, machine, under(str(f), arrays), shape)
        require(training == np.count_nonzero(arrays["folds"] != f), "folds")
    return shape[0]


def _check_machine(
    config: PredictorConfig, classes: int, header: Header, arrays: Arrays, shape: tuple[int, int]
) -> int:
    """Check a machine over the rows, whose shape it must have; return how many train it."""
    check_floats(arrays, "X", shape)
    return _check_solver(config, classes, header, arrays, (shape[0], config.kernel))


def _check_solver(
    config: PredictorConfig, classes: int, header: Header, arrays: Arrays, kind: tuple[int, str]
) -> int:
    """Check a machine, but for its points: how many there are, and the name of their kernel."""
    n, kernel = kind
    _check_counts(header, _MACHINE_COUNTS)
    require(header["kernel"][0] == kernel, "kernel")
    require((header["tol"], header["window"]) == (TOLERANCE, config.window), "tol or window")
    require(0 < header["cache_mb"] <= 1 << 20, "cache_mb")
    require(type(header["is_solved"]) is bool, "is_solved")
    # Where all points are kept, a ring is at most half as large again as it ever had to be.
    training = _check_rings(arrays, n, largest_ring(config.window or 2 * n))
    machines = 1 if classes == 2 else classes
    check_floats(arrays, "penalties", (classes,))
    require(classes >= 2 and arrays["penalties"].min() > 0.0, "penalties")
    check_floats(arrays, "weights", (2 * machines, training))
    check_floats(arrays, "sums", (2 * machines, n))
    check_floats(arrays, "b", (machines,))
    check_indices(arrays, "arrivals", (1,), 1 << 62)
    check_indices(arrays, "codes", (n,), classes)
    check_indices(arrays, "arrival", (n,), int(arrays["arrivals"][0]))
    most = most_active(Kernel(*header["kernel"]), machines, int(arrays["rings"][TRAIN_SIZE]))
    _check_active(arrays, machines, training, most)
    return training


def _check_active(arrays: Arrays, machines: int, training: int, most: int) -> None:
    """Check the active sets: each has `most` places, that differ in who has them."""
    size = arrays["active"].shape[1]
    check_indices(arrays, "active", (machines, size), training + 1)
    check_indices(arrays, "active_counts", (machines, 3), 1 << 62)
    check_floats(arrays, "margin", (machines, 1))
    sizes, fits, checked = arrays["active_counts"].T
    require(size == sizes.max() and size <= most, "active")
    for has, used in zip(arrays["active"], sizes, strict=True):
        present = has[has > 0]
        require(len(np.unique(present)) == len(present) and not has[used:].any(), "active")
    tail = arrays["rings"][TRAIN_TAIL]
    require(fits.max() <= 1 and checked.max() <= tail, "active_counts")
    require(arrays["margin"].min() > 0.0, "margin")


def _check_rings(arrays: Arrays, n: int, largest: int) -> int:
    """Check how the rings of `n` points stand; return how many of these train."""
    check_indices(arrays, "rings", (CLOCK,), 1 << 62)
    rings = [int(entry) for entry in arrays["rings"]]
    held = []
    for head, tail, size in (
        (TRAIN_HEAD, TRAIN_TAIL, TRAIN_SIZE),
        (SEEN_HEAD, SEEN_TAIL, SEEN_SIZE),
    ):
        held.append(rings[tail] - rings[head])
        fits = 0 <= rings[head] <= rings[tail] and held[-1] <= rings[size]
        require(fits and 0 < rings[size] <= largest, "rings")
    require(sum(held) == n, "rings")
    return held[0]


def _check_counts(header: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        require(type(header[name]) is int and header[name] >= 0, name)
