"""Banks of machines with different class weights, whose votes estimate the posterior probability.

Machine j of m multiplies the penalty of a positive example by z_j and of a negative one by z'_j.
Its decision surface is where the posterior probability is z'_j / (z_j + z'_j), under the prior odds
r implied by the penalties (Nalbantov & Ivanov, eqs. 9-12, with the direction corrected: more weight
on the positives moves the surface to where they are rarer).

The optimum is piecewise linear in z, because the bounds are linear in z. Each machine therefore
starts by extrapolating its two predecessors. From one machine to the next, most coefficients at a
bound stay there. A packed bank therefore sums the kernel values of the points at a bound once,
corrects the sum when a point reaches or leaves its bound, and stores only free coefficients for
each machine.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from online_svm.compiled.kernel import kernel
from online_svm.compiled.kernels import Kernel, Shape
from online_svm.storage.state import require
from online_svm.storage.state_schema import INTEGER_BOUND, StateSchema, floats, ints
from online_svm.svm.exact.batch_solver import Programme, advance, constant, fixed_rows, sum_rows
from online_svm.svm.exact.machine_state import Rows
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Arrays, Bools, Floats, Ints, Values

Weighting = Literal["balanced", "prior"]


def class_weights(n_models: int, odds: float, weighting: Weighting) -> tuple[Floats, Floats]:
    """Return z and z', each of shape (n_models,), for evenly spaced posteriors P = j/(m + 1).

    `odds` is r = C+ n+ / (C- n-), the ratio of the effective numbers of examples. "prior" holds
    their sum, z r + z', fixed: z = P(1+r)/(2(1-(1-r)P)) and z' = 1/2 + (1/2 - z) r. "balanced" uses
    r = 1, that is z = P and z' = 1 - P, for any odds (the authors' advice when C+ = C-).
    """
    P = np.arange(1, n_models + 1) / (n_models + 1)
    rest = np.arange(n_models, 0, -1) / (n_models + 1)  # 1 - P, rounded like P in reverse order
    if weighting == "balanced":
        return P, rest
    scale = (1.0 + odds) / (2.0 * (rest + odds * P))
    return P * scale, rest * scale


def follow_path(
    rows: Rows,
    positive: Bools,
    penalties: Floats,
    weights: tuple[Floats, Floats],
    limits: tuple[float, int],
) -> tuple[Floats, Floats, int]:
    """Solve every machine of a bank, starting from its predecessors.

    `penalties`, shape (n,), bound each example's multiplier at z = 1. `weights` are those of
    `class_weights`; `limits` are the tolerance, and the limit on the pair steps of one machine.
    Returns the solutions `betas` and `Fs`, shape (m, n), and the largest number of pair steps of
    one machine.
    """
    (z_positive, z_negative), (tol, max_steps) = weights, limits
    n, m, largest = len(positive), len(z_positive), 0
    betas, Fs, work = np.zeros((m, n)), np.zeros((m, n)), np.empty((3, n))
    label = np.where(positive, 1.0, -1.0)
    # 1. The bounds of each machine: z C and z' C.
    bounds = np.empty((m, 2, n))
    bounds[:, 0] = np.where(positive, 0.0, -z_negative[:, None] * penalties)
    bounds[:, 1] = np.where(positive, z_positive[:, None] * penalties, 0.0)
    for j in range(m):
        # 2. Start from the last two solutions.
        if j > 0:
            _start(betas[max(j - 2, 0)], betas[j - 1], bounds[j - 1], bounds[j], betas[j])
        # 3. F of that start.
        sum_rows(rows, betas[j], Fs[j])
        # 4. SMO and Newton steps to the optimum.
        problem = Programme(label, bounds[j, 0], bounds[j, 1], betas[j], Fs[j])
        steps, done = 0, False
        while not done and steps < max_steps:
            taken, done = advance(rows, problem, tol, max_steps - steps, work)
            steps += taken
        largest = max(largest, steps)
    return betas, Fs, largest


@kernel
def _start(before: Floats, last: Floats, last_bounds: Floats, bounds: Floats, beta: Floats) -> None:
    """Write the start of a machine: the last two solutions extrapolated and clipped to its bounds.

    A coefficient at a bound stays at it, and the coefficients sum to zero. The coefficients
    `before`, `last` and `beta` have shape (n,); the bounds have shape (2, n).
    """


# A decision value up to this size counts as 0: far below the tolerance of the solver, but above the
# rounding error of a value that is 0 by symmetry.
ON_SURFACE = 1e-9

FIELDS = StateSchema(
    floats("vectors", "d n"), floats("intercept", "m"), floats("highest", "m"),
    floats("lowest", "m"), ints("moves", "moves", least=-INTEGER_BOUND),
    ints("sides", "moves", below=2),
    ints("move_ends", "m"), ints("free", "free"), floats("free_coef", "free"),
    ints("free_ends", "m"),
)  # fmt: skip
"""Stored fields of a `Packing`."""


class Packing(NamedTuple):
    """The coefficients of m machines over n vectors: plain arrays, for compiled code."""

    vectors: Floats  # shape (d, n): support vectors of any of the machines, feature-major
    intercept: Floats  # shape (m,)
    highest: Floats  # shape (m,): coefficient of a positive point at its bound
    lowest: Floats  # shape (m,): coefficient of a negative point at its bound
    # shape (n_moves,): numbers, from 1, of the points that reach their bound, machine by machine;
    # negative for points that leave it
    moves: Ints
    sides: Ints  # shape (n_moves,): 1 if the moving point is positive, else 0
    move_ends: Ints  # shape (m,): number of moves up to and including each machine
    free: Ints  # shape (n_free,): vectors with a free coefficient, machine by machine
    free_coef: Floats  # shape (n_free,): their coefficients
    free_ends: Ints  # shape (m,): number of free coefficients up to and including each machine


class PackedBank:
    """A bank in compact form, which votes on rows."""

    def __init__(self, kernel: Kernel, packing: Packing) -> None:
        self.kernel, self.packing = kernel, packing

    @classmethod
    def pack(cls, model: KernelModel, highest: Floats, lowest: Floats) -> Self:
        """Pack the m machines of `model`, whose coefficients lie between `lowest` and `highest`.

        Both have shape (m,). The coefficients of a point have the same sign in all machines.
        """
        coef = model.coef
        bound = (coef == highest[:, None]) | (coef == lowest[:, None])
        positive = coef.max(axis=0, initial=0.0) > 0.0
        before = np.concatenate([np.zeros((1, bound.shape[1]), dtype=np.bool_), bound[:-1]])
        machine, point = np.nonzero(bound != before)
        holder, free = (part.copy() for part in np.nonzero((coef != 0.0) & ~bound))
        m = np.arange(len(coef))
        return cls(
            model.kernel,
            Packing(
                model.vectors,
                model.intercept,
                highest,
                lowest,
                np.where(bound[machine, point], point + 1, -point - 1),
                positive[point].astype(np.int64),
                np.searchsorted(machine, m, side="right"),
                np.ascontiguousarray(free),
                coef[holder, free],
                np.searchsorted(holder, m, side="right"),
            ),
        )

    def decisions(self, X: Floats) -> Floats:
        """Return the decision values of rows, shape (n, m), each independent of other rows."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        out = np.empty((len(X), len(self.packing.intercept)))
        values = np.empty(self.packing.vectors.shape[1], dtype=self.kernel.dtype)
        _decide(self.kernel.shape, self.packing, X, values, out)
        return out

    def shares(self, X: Floats) -> Floats:
        """Return (positive votes + 1) / (m + 2) for each row; a vote on a surface counts half."""
        twice = (self.sides(X).astype(np.int64) + 1).sum(axis=1)
        return np.asarray((twice + 2) / (2.0 * (len(self.packing.intercept) + 2)))

    def sides(self, X: Floats) -> NDArray[np.int8]:
        """Return the side of each surface on which a row lies, shape (n, m): +1, -1, or 0 on it."""
        scores = self.decisions(X)
        return (scores > ON_SURFACE).astype(np.int8) - (scores < -ON_SURFACE).astype(np.int8)

    def crossings(self, X: Floats) -> Ints:
        """Return how often the vote changes along z, from "negative" at z = 0 to "positive" at 1.

        The regular case is 1. A larger number means that surfaces cross.
        """
        sides = self.sides(X)
        last, count = np.full(len(sides), -1, dtype=np.int8), np.zeros(len(sides), dtype=np.int64)
        for column in (*sides.T, np.ones(len(sides), dtype=np.int8)):
            count += (column != 0) & (column != last)
            last = np.where(column == 0, last, column)
        return count

    def state(self) -> Arrays:
        """Return the packing by name."""
        return FIELDS.arrays_of(self.packing)

    @classmethod
    def from_state(cls, state: Arrays, kernel: Kernel) -> Self:
        """Restore the bank from `state`.

        Raises ValueError if the arrays do not fit together.
        """
        packing = Packing(**FIELDS.values(cls, None, state))
        n = packing.vectors.shape[1]
        require(_is_below(np.abs(packing.moves) - 1, n), "moves")
        require(_is_below(packing.free, n), "free")
        for ends, moved in ((packing.move_ends, packing.moves), (packing.free_ends, packing.free)):
            require(_is_below(ends, len(moved) + 1) and (np.diff(ends) >= 0).all(), "ends")
        return cls(kernel, packing)


def _is_below(numbers: Ints, stop: int) -> bool:
    """Return whether all numbers lie in 0 ... stop - 1, which compiled code does not check."""
    return bool(((numbers >= 0) & (numbers < stop)).all())


@kernel
def _decide(shape: Shape, packing: Packing, X: Floats, values: Values, out: Floats) -> None:
    """Write the decision values of the rows of X, shape (r, d), to `out`, shape (r, m).

    `values` is scratch of shape (n,), of the type of the kernel values.
    """


@dataclass(frozen=True, slots=True)
class BankPlan:
    """The parameters of a bank."""

    n_models: int  # m
    weighting: Weighting = "balanced"  # see `class_weights`
    tol: float = 1e-3  # largest violation of optimality of a machine
    max_steps: int = 10_000_000  # limit on the pair steps of one machine


@dataclass(frozen=True, slots=True)
class ImpliedBank:
    """Fitted machines of one two-class problem, ordered by the weight of the positive class."""

    model: KernelModel  # decision functions of the m machines
    highest: Floats  # shape (m,): bound on the coefficients of the first positive point
    lowest: Floats  # shape (m,): bound on the coefficients of the first negative point
    odds: float  # r: the prior odds under which the votes estimate the posterior
    steps: int  # largest number of pair steps of one machine

    @classmethod
    def fit(
        cls, kernel: Kernel, rows: Rows, positive: Bools, penalties: Floats, plan: BankPlan
    ) -> Self:
        """Fit the bank; with examples of one class only, all machines always decide for that class.

        Several banks may share the `rows` of the examples (`fixed_rows`). `penalties`, shape (n,),
        are C times the weight of each example's class.
        """
        m = plan.n_models
        if positive.all() or not positive.any():
            return cls.unanimous(kernel, rows.points.shape[1], m, 1.0 if positive.all() else -1.0)
        odds = math.fsum(penalties[positive]) / math.fsum(penalties[~positive])
        z, z_rest = class_weights(m, odds, plan.weighting)
        limits = plan.tol, plan.max_steps
        betas, Fs, steps = follow_path(rows, positive, penalties, (z, z_rest), limits)
        b = [
            _constant(positive, z[j] * penalties, z_rest[j] * penalties, betas[j], Fs[j])
            for j in range(m)
        ]
        support = np.flatnonzero((betas != 0.0).any(axis=0))
        model = KernelModel.build(
            kernel, rows.points[support], betas[:, support], np.array(b, dtype=np.float64)
        )
        highest, lowest = z * penalties[positive][0], -z_rest * penalties[~positive][0]
        return cls(model, highest, lowest, odds, steps)

    @classmethod
    def unanimous(cls, kernel: Kernel, dimension: int, m: int, decision: float) -> Self:
        """Return a bank of m machines with the same constant decision."""
        decisions = np.full(m, decision)
        model = KernelModel.build(kernel, np.empty((0, dimension)), np.empty((m, 0)), decisions)
        return cls(model, np.ones(m), -np.ones(m), odds=1.0, steps=0)

    def packed(self) -> PackedBank:
        """Return the bank in compact form."""
        return PackedBank.pack(self.model, self.highest, self.lowest)


def _constant(positive: Bools, upper: Floats, lower: Floats, beta: Floats, F: Floats) -> float:
    """Return b; `upper` and `lower` limit |beta| of positive and of negative examples."""
    slack = np.where(positive, 1.0, -1.0) - F
    grows = beta < np.where(positive, upper, 0.0)
    shrinks = beta > np.where(positive, 0.0, -lower)
    return constant(slack[grows], slack[shrinks], slack[grows & shrinks])


def adjusted(shares: Floats, factor: float) -> Floats:
    """Return probabilities whose odds are `factor` times those of `shares`."""
    return np.asarray(factor * shares / (factor * shares + (1.0 - shares)))


def fit_banks(
    kernel: Kernel, X: Floats, codes: Ints, penalties: Floats, plan: BankPlan, cache_mb: float
) -> tuple[ImpliedBank, ...]:
    """Return one bank for two classes (positive means class 1), else one a class against the rest.

    Classes may be absent from `codes`; without any example, every vote is half. `penalties`, shape
    (n_classes,), are C times the weight of each class, in every bank.
    """
    positives = [1] if len(penalties) == 2 else range(len(penalties))
    if not len(X):
        half = ImpliedBank.unanimous(kernel, X.shape[1], plan.n_models, 0.0)
        return (half,) * len(positives)
    rows = fixed_rows(kernel, X, cache_mb)
    return tuple(
        ImpliedBank.fit(kernel, rows, codes == k, penalties[codes], plan) for k in positives
    )
