"""Inputs of the batch solver and the implied banks: programmes over a fixed set of points."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernel_cases._inputs import pick, powers_of_ten, whole
from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.batch_solver import (
    Programme,
    advance,
    factorise,
    fixed_rows,
    free_step,
    free_variables,
    maximise,
    solve_factorised,
    sum_rows,
)
from online_svm.svm.exact.machine_state import Rows
from online_svm.svm.implied_bank import PackedBank, Packing, class_weights, follow_path

SIZES = (1, 2, 3, 4, 7, 8, 9, 15, 31, 33, 63, 64, 65, 66, 100, 127, 128, 129, 190)
CACHE_MB = (1e-6, 0.002, 0.02, 1.0)  # the first holds two rows only


def kernel_of(rng: np.random.Generator) -> Kernel:
    gamma = pick(rng, [0.02, 0.5, 1.0, 20.0])
    name = pick(rng, ["rbf", "rbf", "wide", "linear", "poly"])
    if name == "poly":
        return Kernel("poly", min(gamma, 1.0), whole(rng, 1, 4), float(rng.integers(0, 2)))
    return Kernel("linear") if name == "linear" else Kernel("rbf", gamma, wide=name == "wide")


def points_of(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return points: of any distance, on a grid (many are equal), all equal, or far apart."""
    d, kind = whole(rng, 1, 7), rng.integers(0, 6)
    if kind == 0:
        return rng.integers(0, 3, (n, d)).astype(np.float64)
    if kind == 1:
        return np.zeros((n, d)) + rng.normal(size=d)
    return rng.normal(size=(n, d)) * (1e3 if kind == 2 else 1.0)


def bounds_of(rng: np.random.Generator, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of a classifier or of a tube; some variables may take no part."""
    C = 10.0 ** rng.integers(-3, 5) * (
        rng.random(len(z)) if rng.random() < 0.3 else np.ones(len(z))
    )
    lower, upper = np.where(z > 0.0, 0.0, -C), np.where(z > 0.0, C, 0.0)
    if rng.random() < 0.3:
        lower, upper = -C, C * rng.choice([0.5, 1.0])
    absent = rng.random(len(z)) < rng.choice([0.0, 0.0, 0.2])
    return np.where(absent, 0.0, lower), np.where(absent, 0.0, upper)


def rows_of(rng: np.random.Generator, n: int) -> Rows:
    rows = fixed_rows(kernel_of(rng), points_of(rng, n), pick(rng, CACHE_MB))
    weights = np.where(rng.random(n) < rng.choice([0.0, 0.1, 1.0]), 1.0, 0.0)
    sum_rows(rows, weights, np.empty(n))
    return rows


def problem_of(rng: np.random.Generator) -> tuple[Rows, Programme]:
    """Return a programme where it may stand: at zero, at its bounds, or between them."""
    n = pick(rng, SIZES)
    rows = rows_of(rng, n)
    z = np.where(rng.random(n) < rng.choice([0.0, 0.3, 0.5, 1.0]), 1.0, -1.0)
    if rng.random() < 0.3:
        z = rng.normal(size=n).round(pick(rng, [0, 17]))
    lower, upper = bounds_of(rng, z)
    share = rng.random(n) if rng.random() < 0.5 else rng.choice([0.0, 0.5, 1.0], n)
    beta = lower + share * (upper - lower) if rng.random() < 0.7 else np.zeros(n)
    F = np.empty(n)
    sum_rows(rows, beta, F)
    return rows, Programme(z, lower, upper, beta, F)


def arrays_of(rows: Rows) -> list[np.ndarray]:
    return [rows.diagonal, rows.values, rows.row_of, rows.owner, rows.used, rows.known, rows.rings]


def _fixed_rows(rng: np.random.Generator) -> Any:
    rows = rows_of(rng, pick(rng, SIZES))
    return rows.X, rows.points, arrays_of(rows)


def _maximise(rng: np.random.Generator) -> Any:
    rows, problem = problem_of(rng)
    tol, limit = 10.0 ** rng.integers(-9, 0), pick(rng, [0, 1, 10, 100, 500])
    found = maximise(rows, problem, tol, limit, np.empty((3, len(problem.z))))
    return found, problem.beta, problem.F, arrays_of(rows)


def _sum_rows(rng: np.random.Generator) -> Any:
    rows, problem = problem_of(rng)
    weights = rng.normal(size=len(problem.z)) * (rng.random(len(problem.z)) < rng.random())
    sum_rows(rows, weights, problem.F)
    return problem.F, arrays_of(rows)


def _advance(rng: np.random.Generator) -> Any:
    rows, problem = problem_of(rng)
    tol, limit = 10.0 ** rng.integers(-9, 0), pick(rng, [1, 20, 100, 1000])
    work = np.empty((3, len(problem.z)))
    found = [advance(rows, problem, tol, limit, work) for _ in range(3)]
    return found, problem.beta, problem.F, arrays_of(rows)


def _free_step(rng: np.random.Generator) -> Any:
    rows, problem = problem_of(rng)
    free = free_variables(problem.lower, problem.upper, problem.beta)
    if rng.random() < 0.3:
        free = free[rng.random(len(free)) < 0.7]
    blocked = free_step(rows, problem, free) if len(free) else False
    return free, blocked, problem.beta, problem.F, arrays_of(rows)


def _free_variables(rng: np.random.Generator) -> Any:
    n = whole(rng, 0, 40)
    lower, beta, upper = (rng.integers(-2, 3, n).astype(np.float64) for _ in range(3))
    beta[rng.random(n) < 0.05] = np.nan
    return free_variables(lower, upper, beta)


def matrix_of(rng: np.random.Generator) -> np.ndarray:
    """Return a symmetric matrix, mostly positive definite."""
    n = whole(rng, 0, 40)
    # Whole numbers: their products and sums are exact in any order.
    A = rng.integers(-1000, 1001, (n, pick(rng, [n + 1, max(n // 2, 1)]))).astype(np.float64)
    A = np.ldexp(A @ A.T, -18)
    A[np.diag_indices(n)] += powers_of_ten(rng.integers(-17, 2))
    return np.ascontiguousarray(np.round(A, pick(rng, [1, 17])))


def _factorise(rng: np.random.Generator) -> Any:
    A = matrix_of(rng)
    return factorise(A), A


def _solve_factorised(rng: np.random.Generator) -> Any:
    U = np.triu(matrix_of(rng))
    x = rng.normal(size=len(U))
    solve_factorised(U, x)
    return x


def _path(rng: np.random.Generator, sizes: tuple[int, ...]) -> Any:
    n = pick(rng, sizes)
    rows = rows_of(rng, n)
    positive = rng.random(n) < rng.choice([0.2, 0.5])
    penalties = np.where(positive, *(10.0 ** rng.integers(-2, 3, 2)))
    z, z_rest = class_weights(whole(rng, 1, 9), float(rng.uniform(0.1, 2.0)), "prior")
    tol, limit = 10.0 ** rng.integers(-6, -1), pick(rng, [5, 100, 400])
    betas, Fs, most = follow_path(rows, positive, penalties, (z, z_rest), (tol, limit))
    return rows, positive, penalties, z, z_rest, betas, Fs, most


def _follow_path(rng: np.random.Generator) -> Any:
    rows, *_, betas, Fs, most = _path(rng, (1, 2, 5, 8, 30, 65, 100))
    return betas, Fs, most, arrays_of(rows)


def ends_of(rng: np.random.Generator, m: int, total: int) -> np.ndarray:
    """Return where each of m runs that make up `total` ends; some are empty."""
    return np.sort(rng.integers(0, total + 1, m)).astype(np.int64)


def _decisions(rng: np.random.Generator) -> Any:
    n, m, d = pick(rng, SIZES), whole(rng, 0, 30), whole(rng, 1, 7)
    moves, free = whole(rng, 0, 2 * n), whole(rng, 0, 5 * n)
    numbers = rng.choice([-1, 1], moves) * rng.integers(1, n + 1, moves)
    coef = rng.normal(size=free) * powers_of_ten(rng.integers(-9, 9, free))
    packing = Packing(
        rng.normal(size=(d, n)),
        *rng.normal(size=(3, m)),
        *(numbers, rng.integers(0, 2, moves), ends_of(rng, m, moves)),
        *(rng.integers(0, n, free), coef, ends_of(rng, m, free)),
    )
    bank = PackedBank(kernel_of(rng), packing)
    return bank.decisions(rng.normal(size=(whole(rng, 0, 4), d)))


CASES: dict[str, Callable[[np.random.Generator], Any]] = {
    "advance": _advance,
    "decisions": _decisions,
    "factorise": _factorise,
    "fixed_rows": _fixed_rows,
    "follow_path": _follow_path,
    "free_step": _free_step,
    "free_variables": _free_variables,
    "maximise": _maximise,
    "solve_factorised": _solve_factorised,
    "sum_rows": _sum_rows,
}
