"""Checks of a learner's state before anything is computed from it.

Compiled code does not check indices stored in arrays, and a state determines how much memory is
allocated. So a state whose parts contradict each other or the configuration is refused.
"""

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.refit.committee.boosting import TreeMachine
from online_svm.refit.committee.committee import MEMBERS, LogisticMachine
from online_svm.refit.committee.stack import CommitteeModel, Stack
from online_svm.refit.scaling import Scaling
from online_svm.refit.task import RefitResult
from online_svm.storage.state import Header, State, require, under, unpack
from online_svm.storage.state_schema import StateSchema, floats, ints, number, one, real, record
from online_svm.stream.split import training_mask
from online_svm.svm.exact.held_points import largest_ring
from online_svm.svm.exact.machine_state import (
    CLOCK,
    SEEN_HEAD,
    SEEN_SIZE,
    SEEN_TAIL,
    TRAIN_HEAD,
    TRAIN_SIZE,
    TRAIN_TAIL,
    n_places,
)
from online_svm.svm.exact.rolling_machine import FIELDS, TOLERANCE, RollingMachine
from online_svm.types import Arrays, Ints

LEARNER_SCHEMA = StateSchema(
    number("start"), number("n_classes"), number("refits"), number("fitted_on"), number("grown_at"),
    real("gamma"),
    floats("rows", "n f", optional=True),  # NaN is a missing value
    record("scaling", of=Scaling),
)  # fmt: skip
"""Fields that every learner's state has, except the fields of its machines."""


def opened(config: PredictorConfig, state: bytes) -> State:
    """Return header and arrays of a state that `Learner.state` made under `config`.

    Raises InvalidSnapshot if the bytes are damaged, or contradict each other or the configuration.
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
    checked = LEARNER_SCHEMA.values("Learner", own, parts)
    require(checked["gamma"] >= 0.0, "gamma")
    scaling: Scaling = checked["scaling"]
    n, d, encoder = len(checked["rows"]), len(scaling.mean), scaling.encoder
    require(config.window is None or n <= config.window, "rows")
    require(d == (checked["rows"].shape[1] if encoder is None else encoder.width), "scaling")
    if "machine" in own:
        _check_machine(config, own["n_classes"], own["machine"], under("machine", parts), (n, d))
    trains = training_mask(
        config.split, own["start"], own["start"] + n, config.training_share, config.seed
    )
    training = int(trains.sum())
    if config.members:
        committee = State(own["committee"], under("committee", parts))
        categories = None if encoder is None else encoder.categories
        _check_committee(config, own["n_classes"], committee, (n, d), training, categories)
    if "older" in parts:
        _check_older(config, own["n_classes"], parts)


def _check_committee(
    config: PredictorConfig,
    classes: int,
    state: State,
    shape: tuple[int, int],
    training: int,
    categories: Ints | None,
) -> None:
    """Check a committee over rows of this shape, `training` of which are in T."""
    header, arrays = state
    machines = 1 if classes == 2 else classes
    table = StateSchema(
        floats("foreseen", f"{training} {len(config.members)} {machines}", optional=True)
    )
    progressive_scores = table.values("Committee", None, arrays)["foreseen"]
    is_scored = np.isfinite(progressive_scores)
    require((is_scored | np.isnan(progressive_scores)).all(), "foreseen")
    require((is_scored.all(axis=(1, 2)) == is_scored.any(axis=(1, 2))).all(), "foreseen")
    if config.varies_from is not None:
        stack = Stack.from_state(under("stack", arrays))
        require(stack.slope.shape == (len(config.members), machines), "stack")
    require(len(header["machines"]) == len(config.members), "machines")
    for m, (name, own) in enumerate(zip(config.members, header["machines"], strict=True)):
        parts, kind = under(str(m), arrays), MEMBERS[name].kind
        if kind == "logistic":
            LogisticMachine(classes, shape[1]).restore(parts)
        elif kind == "trees":
            machine = TreeMachine(classes, config.seed, categories).restore(parts)
            machine.check_width(shape[1])
        else:
            held = _check_solver(config, classes, own, parts, (shape[0], kind))
            require(held == training, "rings")


def _check_older(config: PredictorConfig, classes: int, parts: Arrays) -> None:
    """Check the second-last model, which will score new rows."""
    older = RefitResult.from_state(parts["older"].tobytes(), len(config.members))
    decisions = 1 if classes == 2 else classes
    require(config.varies_from is not None and isinstance(older.model, CommitteeModel), "older")
    require(older.training_scores.shape == (0, decisions), "older")
    encoder, width = older.scaling.encoder, older.scaling.mean.size
    require((encoder is None) == ("scaling.coding.kinds" not in parts), "older")
    require(encoder is not None or width == parts["rows"].shape[1], "older")


def _check_machine(
    config: PredictorConfig, classes: int, header: Header, arrays: Arrays, shape: tuple[int, int]
) -> int:
    """Check a machine over rows of this shape; return its number of training points."""
    StateSchema(floats("X", f"{shape[0]} {shape[1]}")).values(RollingMachine, None, arrays)
    return _check_solver(config, classes, header, arrays, (shape[0], config.kernel))


def _check_solver(
    config: PredictorConfig, classes: int, header: Header, arrays: Arrays, kind: tuple[int, str]
) -> int:
    """Check a machine without its points, given `kind`: their number and the name of the kernel."""
    n, kernel = kind
    FIELDS.values(RollingMachine, header, {})
    require(header["kernel"][0] == kernel, "kernel")
    require((header["tol"], header["window"]) == (TOLERANCE, config.window), "tol or window")
    require(0 < header["cache_mb"] <= 1 << 20, "cache_mb")
    # Without a window, a ring has at most 1.5 times as many slots as it ever held points.
    training = _check_rings(arrays, n, largest_ring(config.window or 2 * n))
    machines = 1 if classes == 2 else classes
    arrivals = StateSchema(one("arrivals")).values(RollingMachine, None, arrays)["arrivals"]
    checked = StateSchema(
        floats("penalties", f"{classes}"), floats("b", f"{machines}"),
        floats("weights", f"{2 * machines} {training}"), floats("sums", f"{2 * machines} {n}"),
        ints("codes", f"{n}", below=classes), ints("arrival", f"{n}", below=arrivals),
    ).values(RollingMachine, None, arrays)  # fmt: skip
    require(classes >= 2 and checked["penalties"].min() > 0.0, "penalties")
    places = n_places(Kernel(*header["kernel"]), machines, int(arrays["rings"][TRAIN_SIZE]))
    _check_active(arrays, machines, training, places)
    return training


def _check_active(arrays: Arrays, machines: int, training: int, places: int) -> None:
    """Check that each active set has distinct points, on at most `places` places."""
    checked = StateSchema(
        ints("active", f"{machines} size", below=training + 1),
        ints("active_counts", f"{machines} 3"), floats("margin", f"{machines} 1"),
    ).values(RollingMachine, None, arrays)  # fmt: skip
    active = checked["active"]
    sizes, fits, checked_at = checked["active_counts"].T
    require(active.shape[1] == sizes.max() and active.shape[1] <= places, "active")
    for points, size in zip(active, sizes, strict=True):
        present = points[points > 0]
        require(len(np.unique(present)) == len(present) and not points[size:].any(), "active")
    head, tail = arrays["rings"][[TRAIN_HEAD, TRAIN_TAIL]]
    require(fits.max() <= 1, "active_counts")
    require(head <= checked_at.min() and checked_at.max() <= tail, "active_counts")
    require(checked["margin"].min() > 0.0, "margin")


def _check_rings(arrays: Arrays, n: int, largest: int) -> int:
    """Check the ring buffers of `n` points; return the number of training points."""
    table = StateSchema(ints("rings", f"{CLOCK}"))
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
