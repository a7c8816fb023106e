"""Tasks and results of refits: plain arrays, both ways.

A `RefitTask` goes one way and a `RefitResult` the other. They are computed by a `Learner`, in this
process (`InlineRefitter`) or in another, which alone then needs the solver.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.refit.committee.model import CommitteeModel
from online_svm.refit.committee.staleness import UNKNOWN, Staleness
from online_svm.refit.scaling import Scaling
from online_svm.storage.arrays import nest, require, under
from online_svm.storage.container import pack, unpack
from online_svm.storage.fields import Fields, flag, floats, ints, number
from online_svm.storage.state import Header
from online_svm.svm.implied.packed_bank import PackedBank
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Arrays, Floats, Ints

TASK = Fields(
    number("start"), number("freeze"), number("first"), flag("relabelled"),
    floats("X", "new d", optional=True), ints("codes", "n", least=-1), floats("weights", "K"),
    ints("order", "names"),
)  # fmt: skip
"""The fields of a `RefitTask`, but for `probs`, which most tasks have not."""

RESULT = Fields(
    floats("scaling.mean", "d"), floats("calibration", "n S"), floats("training", "m S")
)
"""Of a `RefitResult`: what its other parts must fit."""


@dataclass(frozen=True, slots=True)
class RefitTask:
    """What a refit needs to know beyond what the learner already holds.

    Attributes
    ----------
    start, freeze : int
        The available examples are those numbered start ... freeze - 1.
    first : int
        Number of the first row of `X`: the learner holds the ones before it.
    X : ndarray of shape (freeze - first, n_features)
        New examples, as they came; NaN is a missing value.
    codes : ndarray of shape (freeze - start,)
        Class index of every available example, in the sorted classes; -1 where it has a
        probability instead.
    weights : ndarray of shape (n_classes,)
        Multiplies C for the examples of each class.
    probs : ndarray of shape (freeze - start,), optional
        Probability of the second class, NaN where there is a label; of a P-SVM.
    relabelled : bool
        Whether an example that the learner holds has another label than before.
    order : ndarray of shape (n_features,)
        Of features with names, whose rows are cells: the order in which their columns are coded.
        Then there may be more columns than before. Empty where features have no names.
    """

    start: int
    freeze: int
    first: int
    X: Floats
    codes: Ints
    weights: Floats
    probs: Floats | None = None
    relabelled: bool = False
    order: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def n_classes(self) -> int:
        """Classes known at the freeze."""
        return len(self.weights)

    def state(self) -> bytes:
        """Return the task as bytes, for the pipe."""
        arrays = TASK.arrays_of(self)
        if self.probs is not None:
            arrays["probs"] = self.probs
        return pack(TASK.header_of(self), arrays)

    @classmethod
    def from_state(cls, state: bytes) -> Self:
        """Return the task that `state` describes."""
        header, arrays = unpack(state)
        return cls(**TASK.values(cls, header, arrays), probs=arrays.get("probs"))


class Fitted(NamedTuple):
    """A model, and its scores of the available examples; see `RefitResult`.

    Attributes
    ----------
    model : KernelModel or CommitteeModel
    calibration_scores, training_scores : ndarray
    """

    model: KernelModel | CommitteeModel
    calibration_scores: Floats
    training_scores: Floats


@dataclass(frozen=True, slots=True)
class RefitResult:
    """What a refit gives back.

    Attributes
    ----------
    freeze : int
        As in the task.
    model : KernelModel or CommitteeModel
        The fitted machine or machines, over scaled features.
    scaling : Scaling
        What to apply to a row before the model.
    calibration_scores : ndarray of shape (n_calibration, n_scores)
        Of the available examples outside the proper training set, in order; of all of them, out
        of fold, where they are cross-fitted.
    training_scores : ndarray of shape (n_training, n_scores)
        Of the proper training set; of a committee, from what its members said of each example
        before they learned it.
    banks : tuple of PackedBank
        Of the implied map, over scaled features, with the model's kernel; none where it is not
        published.
    staleness : Staleness
        What the model of the refit but one before lost against the last one, on the examples of T
        that are new; of none where distances are fixed.
    """

    freeze: int
    model: KernelModel | CommitteeModel
    scaling: Scaling
    calibration_scores: Floats
    training_scores: Floats
    banks: tuple[PackedBank, ...] = ()
    staleness: Staleness = UNKNOWN

    def state(self) -> bytes:
        """Return the result as bytes, for the pipe and for snapshots."""
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
        """Return the result that `state` describes.

        Parameters
        ----------
        state : bytes
        n_members : int, optional
            How many machines the committee must have, 0 for a machine without one.

        Raises
        ------
        LookupError, TypeError, ValueError
            If parts are missing, or do not fit one another.
        """
        header, parts = unpack(state)
        _check_result(parts)
        require(n_members is None or len(header.get("members", ())) == n_members, "members")
        require(header["banks"] in range(len(parts)), "banks")  # each has arrays of its own
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
    """Return the model of a result: what its kernels are stands in the header."""
    if "members" in header:
        kernels = [k if k is None else Kernel(**k) for k in header["members"]]
        return CommitteeModel.from_state(state, kernels, n_features)
    return KernelModel.from_state(state, Kernel(**header["kernel"]))


def _check_result(parts: Arrays) -> None:
    """Raise ValueError or LookupError unless scores, scaling and model fit one another."""
    checked = RESULT.values(RefitResult, None, parts)
    d, machines = len(checked["scaling.mean"]), checked["calibration"].shape[1]
    name = "model.vectors"  # of a single machine
    require(name not in parts or len(parts[name]) == d, name)
    if "model.intercept" in parts:
        require(len(parts["model.intercept"]) == machines, "model.intercept")
    if "model.stack.slope" in parts:
        require(parts["model.stack.slope"].shape[1] == machines, "model.stack.slope")


class Refitter(Protocol):
    """Where refits are computed, in the order of their tasks."""

    def submit(self, task: RefitTask) -> None:
        """Take a task, to be computed after those before it."""

    def result(self) -> RefitResult:
        """Return the next result, in the order of the tasks; wait for it where necessary."""

    def withdraw(self) -> None:
        """Forget all tasks, computed or not, and what the learner holds: it begins anew."""

    def state(self) -> bytes:
        """Return the learner after the last finished task, for a snapshot; none is under way."""

    def reset(self, state: bytes | None) -> None:
        """Continue from `state`, or from nothing; a task under way is forgotten.

        Raises
        ------
        InvalidSnapshot
            If the state cannot be read; the refitter is as it was then.
        """
