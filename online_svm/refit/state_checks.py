"""Checks of a learner's state, before anything is computed from it.

Compiled code does not check its indices, and memory is allocated by the sizes that a state names.
So a state whose parts contradict each other, or the configuration, is refused here, whole.
"""

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.refit.coding import Coding
from online_svm.refit.committee.members import MEMBERS, LogisticMachine
from online_svm.refit.committee.model import CommitteeModel
from online_svm.refit.committee.stack import Stack
from online_svm.refit.committee.trees import TreeMachine
from online_svm.refit.crossfit import FOLDS, FoldMachines
from online_svm.refit.task import RefitResult
from online_svm.storage.arrays import require, under
from online_svm.storage.container import unpack
from online_svm.storage.fields import Fields, floats, ints, number, one, real
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
from online_svm.svm.exact.rolling_machine import FIELDS, TOLERANCE, RollingMachine
from online_svm.types import Arrays, Ints

LEARNER = Fields(
    number("start"), number("n_classes"), number("refits"), number("fitted_on"), number("grown_at"),
    real("gamma"),
    floats("rows", "n f", optional=True),  # NaN is a missing value
    floats("scaling.mean", "d"), floats("scaling.width", "d"), floats("scaling.fill", "d"),
    floats("scaling.limit", "1", optional=True),
)  # fmt: skip
"""What a learner stores, whatever its machines are."""


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
    checked = LEARNER.values("Learner", own, parts)
    require(checked["gamma"] >= 0.0, "gamma")
    n, d = len(checked["rows"]), len(checked["scaling.mean"])
    require(config.window is None or n <= config.window, "rows")
    coding = _coding(parts)
    require(d == (checked["rows"].shape[1] if coding is None else coding.width), "scaling")
    if "machine" in own:
        check = _check_folds if config.split == "crossfit" else _check_machine
        check(config, own["n_classes"], own["machine"], under("machine", parts), (n, d))
    trains = window_parts(
        config.split, own["start"], own["start"] + n, config.training_share, config.seed
    )[0]
    training = int(trains.sum())
    if config.members:
        committee = State(own["committee"], under("committee", parts))
        categories = None if coding is None else coding.categories
        _check_committee(config, own["n_classes"], committee, (n, d), training, categories)
    if "older" in parts:
        _check_older(config, own["n_classes"], parts)


def _coding(parts: Arrays) -> Coding | None:
    """Return the coding of the rows; None where they are numbers without names."""
    coding = under("scaling.coding", parts)
    return Coding.from_state(coding) if coding else None


def _check_committee(
    config: PredictorConfig,
    classes: int,
    state: State,
    shape: tuple[int, int],
    training: int,
    categories: Ints | None,
) -> None:
    """Check the machines of a committee, over rows of that shape, `training` of which are in T."""
    header, arrays = state
    machines = 1 if classes == 2 else classes
    table = Fields(
        floats("foreseen", f"{training} {len(config.members)} {machines}", optional=True)
    )
    foreseen = table.values("Committee", None, arrays)["foreseen"]
    said = np.isfinite(foreseen)
    require((said | np.isnan(foreseen)).all(), "foreseen")
    require((said.all(axis=(1, 2)) == said.any(axis=(1, 2))).all(), "foreseen")
    if config.varies_from is not None:
        shape_of_stack = Stack.from_state(under("stack", arrays)).slope.shape
        require(shape_of_stack == (len(config.members), machines), "stack")
    require(len(header["machines"]) == len(config.members), "machines")
    for m, (name, own) in enumerate(zip(config.members, header["machines"], strict=True)):
        parts, kind = under(str(m), arrays), MEMBERS[name].kind
        if kind == "logistic":
            table = Fields(floats("weights", f"{machines} {shape[1] + 1}"))
            table.values(LogisticMachine, None, parts)
        elif kind == "trees":
            TreeMachine.check(parts, classes, shape[1], categories)
        else:
            held = _check_solver(config, classes, own, parts, (shape[0], kind))
            require(held == training, "rings")


def _check_older(config: PredictorConfig, classes: int, parts: Arrays) -> None:
    """Check the model of the refit before the last one, which is to score rows to come."""
    older = RefitResult.from_state(parts["older"].tobytes(), len(config.members))
    decisions = 1 if classes == 2 else classes
    require(config.varies_from is not None and isinstance(older.model, CommitteeModel), "older")
    require(older.training_scores.shape == (0, decisions), "older")
    coding, width = older.scaling.coding, older.scaling.mean.size
    require((coding is None) == ("scaling.coding.kinds" not in parts), "older")
    require(coding is not None or width == parts["rows"].shape[1], "older")


def _check_folds(
    config: PredictorConfig, classes: int, header: Header, arrays: Arrays, shape: tuple[int, int]
) -> int:
    """Check the machines of a cross-fit, each of which observes one fold of the rows."""
    table = Fields(ints("folds", f"{shape[0]}", below=FOLDS))
    folds = table.values(FoldMachines, None, arrays)["folds"]
    require(len(header["machines"]) == FOLDS, "folds")
    for f, machine in enumerate(header["machines"]):
        training = _check_machine(config, classes, machine, under(str(f), arrays), shape)
        require(training == np.count_nonzero(folds != f), "folds")
    return shape[0]


def _check_machine(
    config: PredictorConfig, classes: int, header: Header, arrays: Arrays, shape: tuple[int, int]
) -> int:
    """Check a machine over the rows, whose shape it must have; return how many train it."""
    Fields(floats("X", f"{shape[0]} {shape[1]}")).values(RollingMachine, None, arrays)
    return _check_solver(config, classes, header, arrays, (shape[0], config.kernel))


def _check_solver(
    config: PredictorConfig, classes: int, header: Header, arrays: Arrays, kind: tuple[int, str]
) -> int:
    """Check a machine, but for its points: how many there are, and the name of their kernel."""
    n, kernel = kind
    FIELDS.values(RollingMachine, header, {})
    require(header["kernel"][0] == kernel, "kernel")
    require((header["tol"], header["window"]) == (TOLERANCE, config.window), "tol or window")
    require(0 < header["cache_mb"] <= 1 << 20, "cache_mb")
    # Where all points are kept, a ring is at most half as large again as it ever had to be.
    training = _check_rings(arrays, n, largest_ring(config.window or 2 * n))
    machines = 1 if classes == 2 else classes
    arrivals = Fields(one("arrivals")).values(RollingMachine, None, arrays)["arrivals"]
    checked = Fields(
        floats("penalties", f"{classes}"), floats("b", f"{machines}"),
        floats("weights", f"{2 * machines} {training}"), floats("sums", f"{2 * machines} {n}"),
        ints("codes", f"{n}", below=classes), ints("arrival", f"{n}", below=arrivals),
    ).values(RollingMachine, None, arrays)  # fmt: skip
    require(classes >= 2 and checked["penalties"].min() > 0.0, "penalties")
    most = most_active(Kernel(*header["kernel"]), machines, int(arrays["rings"][TRAIN_SIZE]))
    _check_active(arrays, machines, training, most)
    return training


def _check_active(arrays: Arrays, machines: int, training: int, most: int) -> None:
    """Check the active sets: each has `most` places, that differ in who has them."""
    checked = Fields(
        ints("active", f"{machines} size", below=training + 1),
        ints("active_counts", f"{machines} 3"), floats("margin", f"{machines} 1"),
    ).values(RollingMachine, None, arrays)  # fmt: skip
    active = checked["active"]
    sizes, fits, checked_at = checked["active_counts"].T
    require(active.shape[1] == sizes.max() and active.shape[1] <= most, "active")
    for has, used in zip(active, sizes, strict=True):
        present = has[has > 0]
        require(len(np.unique(present)) == len(present) and not has[used:].any(), "active")
    tail = arrays["rings"][TRAIN_TAIL]
    require(fits.max() <= 1 and checked_at.max() <= tail, "active_counts")
    require(checked["margin"].min() > 0.0, "margin")


def _check_rings(arrays: Arrays, n: int, largest: int) -> int:
    """Check how the rings of `n` points stand; return how many of these train."""
    table = Fields(ints("rings", f"{CLOCK}"))
    rings: list[int] = table.values(RollingMachine, None, arrays)["rings"].tolist()
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
