"""ProgressiveScores: scores of a committee's members, before and after they learned an example."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.storage.arrays import nest, under
from online_svm.storage.container import pack, unpack
from online_svm.storage.state import Header, State
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Arrays, Floats


@dataclass(frozen=True, slots=True)
class ProgressiveScores:
    """Machines of M members, and their scores of the available examples; S decisions each.

    Attributes
    ----------
    numbers : tuple of int
        Of the members in the committee.
    models : tuple of KernelModel
    foreseen : ndarray of shape (n_training, M, S)
        What was said of an example before it was learned; NaN where no machine was there.
    training : ndarray of shape (n_training, M, S)
        The same, and there what the machines say now.
    calibration : ndarray of shape (n_calibration, M, S)
    """

    numbers: tuple[int, ...]
    models: tuple[KernelModel, ...]
    foreseen: Floats
    training: Floats
    calibration: Floats

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return what all members said, in their order, from what each few of them said."""
        if len(parts) == 1:
            return parts[0]
        numbers = [part.numbers for part in parts]
        models: dict[int, KernelModel] = {}
        for part in parts:
            models |= dict(zip(part.numbers, part.models, strict=True))
        return cls(
            tuple(sorted(models)),
            tuple(models[m] for m in sorted(models)),
            _joined(numbers, [part.foreseen for part in parts]),
            _joined(numbers, [part.training for part in parts]),
            _joined(numbers, [part.calibration for part in parts]),
        )

    def state(self) -> bytes:
        """Return it as bytes, for the pipe."""
        header = {
            "numbers": self.numbers,
            "kernels": [asdict(model.kernel) for model in self.models],
        }
        arrays: Arrays = {
            "foreseen": self.foreseen,
            "training": self.training,
            "calibration": self.calibration,
        }
        for k, model in enumerate(self.models):
            arrays |= nest(str(k), model.state())
        return pack(header, arrays)

    @classmethod
    def from_state(cls, state: bytes) -> Self:
        """Return what `state` describes.

        Raises
        ------
        LookupError, TypeError, ValueError
            If parts are missing, or do not fit one another.
        """
        header, arrays = unpack(state)
        models = tuple(
            KernelModel.from_state(under(str(k), arrays), Kernel(**kernel))
            for k, kernel in enumerate(header["kernels"])
        )
        scores = (arrays[name] for name in ("foreseen", "training", "calibration"))
        return cls(tuple(header["numbers"]), models, *scores)


def joined_states(parts: Mapping[tuple[int, ...], State]) -> State:
    """Return the state of a whole committee.

    Parameters
    ----------
    parts : mapping from the numbers of members to State
        What `Committee.state` gives of each few members.
    """
    numbers = list(parts)
    foreseen = _joined(numbers, [own.arrays["foreseen"] for own in parts.values()])
    headers: dict[int, Header] = {}
    arrays: Arrays = {"foreseen": foreseen}
    whose = {m: own for part, own in parts.items() for m in part}
    for part, own in parts.items():
        headers |= dict(zip(part, own.header["machines"], strict=True))
    for m in sorted(whose):
        arrays |= nest(str(m), under(str(m), whose[m].arrays))
    return State({"machines": [headers[m] for m in sorted(headers)]}, arrays)


def _joined(numbers: Sequence[Sequence[int]], scores: Sequence[Floats]) -> Floats:
    """Return scores of all members, each in its column, from those of parts of them."""
    n, _, decisions = scores[0].shape
    whole = np.empty((n, sum(map(len, numbers)), decisions))
    for part, own in zip(numbers, scores, strict=True):
        whole[:, list(part)] = own
    return whole
