"""Tasks and results of refits, as plain arrays that cross process borders.

A `Learner` turns a `RefitTask` into a `RefitResult`, in this process (`InlineRefitter`) or in
another one. Only the process of the learner needs the solver.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.refit.committee.stack import CommitteeModel
from online_svm.refit.committee.staleness import UNKNOWN, Staleness
from online_svm.refit.scaling import Scaling
from online_svm.storage.state import Header, nest, pack, require, under, unpack
from online_svm.storage.state_schema import StateSchema, flag, floats, ints, number, record
from online_svm.svm.implied_bank import PackedBank
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Arrays, Floats, Ints

TASK_SCHEMA = StateSchema(
    number("start"), number("freeze"), number("first"), flag("relabelled"),
    floats("X", "new d", optional=True), ints("codes", "n", least=-1), floats("weights", "K"),
    ints("order", "names"),
)  # fmt: skip
"""Stored fields of a `RefitTask`, without the optional `probs`."""

RESULT_SCHEMA = StateSchema(
    record("scaling", of=Scaling), floats("calibration", "n S"), floats("training", "m S")
)
"""Stored fields of a `RefitResult` that the other parts must match."""


@dataclass(frozen=True, slots=True)
class RefitTask:
    """The input of a refit: labels of all available examples, and rows that the learner lacks."""

    start: int  # number of the first available example
    freeze: int  # number after the last available example
    first: int  # number of the first row of `X`; the learner holds the rows before it
    # Shape (freeze - first, n_features); unscaled rows; NaN is a missing value.
    X: Floats
    # Shape (freeze - start,); index of the class among the sorted classes; -1 for an example with a
    # probability.
    codes: Ints
    weights: Floats  # shape (n_classes,); factors of C for the examples of each class
    # Shape (freeze - start,); for a P-SVM: probability of the second class; NaN for an example with
    # a label.
    probs: Floats | None = None
    relabelled: bool = False  # whether the label of an example that the learner holds has changed
    # Shape (n_features,); indices of named features in the order of encoding; empty for features
    # without names. With names, X may have more columns than before.
    order: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def n_classes(self) -> int:
        """Number of classes known at the freeze."""
        return len(self.weights)

    def state(self) -> bytes:
        """Return the task as bytes, for another process."""
        arrays = TASK_SCHEMA.arrays_of(self)
        if self.probs is not None:
            arrays["probs"] = self.probs
        return pack(TASK_SCHEMA.header_of(self), arrays)

    @classmethod
    def from_state(cls, state: bytes) -> Self:
        """Return the task described by `state`."""
        header, arrays = unpack(state)
        return cls(**TASK_SCHEMA.values(cls, header, arrays), probs=arrays.get("probs"))


class Fitted(NamedTuple):
    """A model with its scores of the available examples; see `RefitResult`."""

    model: KernelModel | CommitteeModel
    calibration_scores: Floats
    training_scores: Floats


@dataclass(frozen=True, slots=True)
class RefitResult:
    """The output of a refit."""

    freeze: int  # as in the task
    model: KernelModel | CommitteeModel  # scores scaled rows
    scaling: Scaling  # applied to a row before the model
    # Shape (n_calibration, n_scores); scores of the calibration examples, in order; with
    # cross-fitting, out-of-fold scores of all available examples.
    calibration_scores: Floats
    # Shape (n_training, n_scores); scores of the proper training set; for a committee, stacked from
    # progressive scores.
    training_scores: Floats
    # Banks of the implied calibrator on scaled rows, with the model's kernel; empty if it is not
    # published.
    banks: tuple[PackedBank, ...] = ()
    # Of the second-last model, on the new examples of T; `UNKNOWN` if the distance between refits
    # is fixed.
    staleness: Staleness = UNKNOWN

    @property
    def n_members(self) -> int:
        """Number of members of the committee; 0 for a single machine."""
        return len(self.model.machines) if isinstance(self.model, CommitteeModel) else 0

    def state(self) -> bytes:
        """Return the result as bytes, for other processes and snapshots."""
        parts = nest("model", self.model.state()) | nest("scaling", self.scaling.state())
        parts |= {"calibration": self.calibration_scores, "training": self.training_scores}
        for k, bank in enumerate(self.banks):
            parts |= nest(f"bank.{k}", bank.state())
        header: dict[str, Any] = {"freeze": self.freeze, "banks": len(self.banks)}
        header["staleness"] = list(self.staleness)
        if isinstance(self.model, CommitteeModel):
            header["members"] = [k if k is None else asdict(k) for k in self.model.kernels]
        else:
            header["kernel"] = asdict(self.model.kernel)
        if self.banks:
            header["bank_kernel"] = asdict(self.banks[0].kernel)
        return pack(header, parts)

    @classmethod
    def from_state(cls, state: bytes, n_members: int | None = None) -> Self:
        """Return the result described by `state`.

        `n_members`: required size of the committee; 0 for a single machine.
        """
        header, parts = unpack(state)
        _check_result(parts)
        require(n_members is None or len(header.get("members", ())) == n_members, "members")
        require(header["banks"] in range(len(parts)), "banks")  # each bank has arrays of its own
        banks = [under(f"bank.{k}", parts) for k in range(header["banks"])]
        bank_kernel = Kernel(**header.get("bank_kernel", {}))
        return cls(
            freeze=header["freeze"],
            model=_model(header, under("model", parts), len(parts["scaling.mean"])),
            scaling=Scaling.from_state(under("scaling", parts)),
            calibration_scores=parts["calibration"],
            training_scores=parts["training"],
            banks=tuple(PackedBank.from_state(arrays, bank_kernel) for arrays in banks),
            staleness=Staleness.of(header["staleness"]),
        )


def _model(header: Header, state: Arrays, n_features: int) -> KernelModel | CommitteeModel:
    if "members" in header:
        kernels = [k if k is None else Kernel(**k) for k in header["members"]]
        return CommitteeModel.from_state(state, kernels, n_features)
    return KernelModel.from_state(state, Kernel(**header["kernel"]))


def _check_result(parts: Arrays) -> None:
    """Raise ValueError or LookupError unless scores, scaling and model match."""
    checked = RESULT_SCHEMA.values(RefitResult, None, parts)
    d, machines = len(checked["scaling"].mean), checked["calibration"].shape[1]
    name = "model.vectors"  # of a single machine
    require(name not in parts or len(parts[name]) == d, name)
    if "model.intercept" in parts:
        require(len(parts["model.intercept"]) == machines, "model.intercept")
    if "model.stack.slope" in parts:
        require(parts["model.stack.slope"].shape[1] == machines, "model.stack.slope")


class ForestFit(Protocol):
    """A fit of the memory's trees that was submitted."""

    @property
    def is_ready(self) -> bool:
        """Whether `result` would return at once."""

    def result(self) -> bytes:
        """Return the trees as `online_svm.refit.memory_trees.fitted_bytes` does; wait if needed."""


class Refitter(Protocol):
    """Computes refits in the order of their tasks, and fits of the memory's trees."""

    def fit(self, task: bytes) -> ForestFit:
        """Start a fit of the memory's trees, a `FitTask` as bytes; it needs no learner."""

    def submit(self, task: RefitTask) -> None:
        """Queue a task behind the earlier ones."""

    def result(self) -> RefitResult:
        """Return the next result in the order of the tasks; wait for it if needed."""

    def withdraw(self) -> None:
        """Drop all tasks and fits, computed or not, and the learner's state."""

    def state(self) -> bytes:
        """Return the learner after the last task, for a snapshot; no task may be pending."""

    def reset(self, state: bytes | None) -> None:
        """Continue from `state`, or with a new learner; pending tasks and fits are dropped.

        Raises InvalidSnapshot if the state cannot be read; the refitter is unchanged then.
        """
