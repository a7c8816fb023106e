"""CommitteeModel: the members of a committee, their sigmoids and their stack, as one scorer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.refit.committee.stack import Stack
from online_svm.refit.committee.trees import TreeModel
from online_svm.storage.arrays import nest, require, under
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Arrays, Floats

Scorer = KernelModel | TreeModel


@dataclass(frozen=True, slots=True)
class CommitteeModel:
    """Log-odds of a class: sum_m w_m clip(a_m f_m(x) + b_m) + c, over the members m.

    For two classes these are the log-odds of class 1; for more, the logits of a softmax. The score
    of a row has the same bits whatever rows it is scored with.

    Attributes
    ----------
    machines : tuple of KernelModel or TreeModel
        One a member, each with the same number S of decision functions.
    stack : Stack

    Examples
    --------
    >>> vector, one = np.array([[1.0]]), np.array([[1.0]])
    >>> machine = KernelModel.build(Kernel("linear"), vector, one, np.zeros(1))
    >>> stack = Stack(np.array([[2.0]]), np.array([[1.0]]), np.array([0.5]), np.array([0.25]))
    >>> CommitteeModel((machine,), stack).scores(np.array([[3.0], [100.0]]))
    array([[3.75],
           [4.25]])
    """

    machines: tuple[Scorer, ...]
    stack: Stack

    @property
    def kernels(self) -> tuple[Kernel | None, ...]:
        """Kernels of the machines; trees have none."""
        return tuple(getattr(machine, "kernel", None) for machine in self.machines)

    def scores(self, X: Floats) -> Floats:
        """Return the stacked log-odds of the rows of X, shape (m, S)."""
        return self.stack.apply(member_scores(self.machines, X))

    def said(self, X: Floats) -> tuple[Floats, Floats]:
        """Return what `scores` does, and the log-odds of each machine, shape (m, M, S)."""
        scores = member_scores(self.machines, X)
        return self.stack.apply(scores), self.stack.log_odds(scores)

    def state(self) -> Arrays:
        """Return the parts by name, but for the kernels."""
        arrays = nest("stack", self.stack.state())
        for m, machine in enumerate(self.machines):
            arrays |= nest(str(m), machine.state())
        return arrays

    @classmethod
    def from_state(cls, state: Arrays, kernels: Sequence[Kernel | None], n_features: int) -> Self:
        """Return the model that `state` describes, of rows with so many features.

        Raises
        ------
        LookupError, ValueError
            If parts are missing, or do not fit one another.
        """
        stack = Stack.from_state(under("stack", state))
        members, decisions = stack.slope.shape
        require(len(kernels) == members, "kernels")
        machines: list[Scorer] = []
        for m, kernel in enumerate(kernels):
            parts = under(str(m), state)
            if kernel is None:
                trees = TreeModel.from_state(parts, n_features)
                require(trees.leaves.shape[2] == decisions, "leaves")
                machines.append(trees)
                continue
            machine = KernelModel.from_state(parts, kernel)
            require(len(machine.intercept) == decisions, "intercept")
            require(len(machine.vectors) == n_features, "vectors")
            machines.append(machine)
        return cls(tuple(machines), stack)


def member_scores(machines: Sequence[Scorer], X: Floats) -> Floats:
    """Return the scores of each of M machines for the rows of X, shape (m, M, S).

    Examples
    --------
    >>> machine = KernelModel.build(Kernel(), np.empty((0, 1)), np.empty((1, 0)), np.array([2.0]))
    >>> member_scores([machine, machine], np.zeros((1, 1))).tolist()
    [[[2.0], [2.0]]]
    """
    first = machines[0].scores(X)
    scores = np.empty((len(X), len(machines), first.shape[1]))
    scores[:, 0] = first
    for m, machine in enumerate(machines[1:], 1):
        scores[:, m] = machine.scores(X)
    return scores
