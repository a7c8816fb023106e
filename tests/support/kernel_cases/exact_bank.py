"""Inputs of `online_svm.svm.exact`: histories of machines; all arrays of the bank after them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernel_cases._inputs import flag, pick, whole
from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact import machine_state
from online_svm.svm.exact.machine_state import count_training
from online_svm.svm.exact.rolling_machine import RollingMachine

History = list[Any]
SCRATCH = {"sums", "row"}, {"work"}, {"bounds", "slacks", "typed", "chosen"}
PENALTIES = (0.01, 1.0, 1.0, 1.0, 10.0, 1000.0)
TOLERANCES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


def kernel_of(rng: np.random.Generator, name: str) -> Kernel:
    """Return a kernel of this name, narrow or wide."""
    gamma = pick(rng, [0.05, 0.3, 1.0, 12.5])
    if name == "poly":
        return Kernel("poly", min(gamma, 1.0), whole(rng, 1, 5), float(rng.integers(0, 3)))
    return Kernel(name.removeprefix("wide "), gamma, wide=name.startswith("wide "))


def any_kernel(rng: np.random.Generator) -> Kernel:
    return kernel_of(rng, pick(rng, ["linear", "poly", "rbf", "wide rbf"]))


def points_of(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Return points: of any distance, on a grid (many are equal), all equal, or far from zero."""
    kind = rng.integers(0, 6)
    if kind == 0:
        return rng.integers(0, 4, (n, d)).astype(np.float64)
    if kind == 1:
        return np.zeros((n, d)) + rng.normal(size=d)
    if kind == 2:
        return 100.0 + 30.0 * rng.normal(size=(n, d))
    X = rng.normal(size=(n, d))
    return X.round(1) if kind == 3 else X


def labels_of(rng: np.random.Generator, X: np.ndarray, classes: int) -> np.ndarray:
    """Return classes that follow the first feature, loosely; some of them may be missing."""
    rank = np.searchsorted(np.sort(X[:, 0]), X[:, 0]) / len(X)
    noisy = rank * classes + rng.choice([0.0, 0.2, 0.2, 1.0]) * rng.normal(size=len(X))
    return np.clip(noisy.astype(np.int64), 0, rng.choice([0, 1, *[classes - 1] * 8]))


def arrays_of(machine: RollingMachine) -> History:
    """Return the arrays of a bank that are the state of a machine, without scratch arrays."""
    bank = machine._held.bank
    in_rows, in_bank, in_active = SCRATCH
    return [
        *(v for k, v in bank.rows._asdict().items() if k not in in_rows and k != "shape"),
        *(v for k, v in bank._asdict().items() if k not in in_bank | {"rows", "active"}),
        *(v for k, v in bank.active._asdict().items() if k not in in_active),
    ]


class Historian:
    """A machine, the points that it is given, and what it returns."""

    def __init__(
        self, rng: np.random.Generator, kernel: Kernel, points: int, few_rows: bool
    ) -> None:
        self.rng, self.d = rng, whole(rng, 1, 7)
        self.classes = whole(rng, 2, 6)
        self.machine = RollingMachine(
            kernel,
            self.penalties(),
            tol=pick(rng, TOLERANCES),
            window=None if rng.random() < 0.3 else points,
            cache_mb=pick(rng, [0.001, 0.004, 0.012]) if few_rows else 20.0,
        )
        steps = [3, 40, 200] if few_rows else [3, 40, 1000, 1000, 1000]
        self.machine.max_steps = pick(rng, steps)
        self.X = points_of(rng, 1000, self.d)
        self.codes = labels_of(rng, self.X, self.classes)
        self.next, self.found = 0, []

    def penalties(self) -> np.ndarray:
        return self.rng.choice(PENALTIES) * self.rng.uniform(0.5, 2.0, self.classes)

    def extend(self, count: int, training: float) -> None:
        new = slice(self.next, self.next + count)
        self.next += count
        trains = self.rng.random(count) < training
        self.found.append(self.machine.extend(self.X[new], self.codes[new], trains))

    def promote(self, count: int) -> None:
        """Promote observers, unless a younger point trains."""
        held = self.machine._held
        mask = np.isin(held.slots(), held.training_slots())
        oldest = int(np.argmin(mask)) if not mask.all() else len(mask)
        if not mask[oldest:].any():
            self.machine.promote(min(count, self.machine.n_observers))

    def forget(self, count: int) -> None:
        self.machine.forget(min(count, len(self.machine)))

    def solve(self) -> None:
        machine = self.machine
        self.found += [machine.solve(), machine.observer_values(), machine.training_values()]

    def reweight(self) -> None:
        self.machine.set_penalties(self.penalties())

    def restore(self) -> None:
        self.machine = RollingMachine.from_state(self.machine.state())

    def afresh(self) -> None:
        machine_state.sum_afresh(self.machine._held.bank)

    def step(self, count: int) -> None:
        self.forget(count)
        self.extend(count, 1.0)
        self.solve()

    def all(self) -> History:
        return [*self.found, self.machine.decision_values(), *arrays_of(self.machine)]


def history(
    name: str | None = None, *, few_rows: bool = False
) -> Callable[[np.random.Generator], Any]:
    """Return the case of a history of any events."""

    def case(rng: np.random.Generator) -> Any:
        kernel = any_kernel(rng) if name is None else kernel_of(rng, name)
        most = pick(rng, [12, 40, 100])
        told = Historian(rng, kernel, most, few_rows)
        mixed = rng.random() < 0.5
        for _ in range(rng.integers(3, 9)):
            count = whole(rng, 1, most)
            match rng.integers(0, 9):
                case 0 | 1 | 2:
                    told.extend(count, float(rng.random() if mixed else rng.random() < 0.4))
                case 3:
                    told.promote(count)
                case 4:
                    told.forget(count)
                case 5:
                    told.reweight()
                case 6:
                    told.restore()
                case 7:
                    told.afresh()
                case _:
                    told.step(whole(rng, 1, 12))
            if rng.random() < 0.6:
                told.solve()
        return told.all()

    return case


def window(
    first: int, steps: int, *, few_rows: bool = False
) -> Callable[[np.random.Generator], Any]:
    """Return the case of a window that rolls: its rings wrap, its active set is kept warm."""

    def case(rng: np.random.Generator) -> Any:
        told = Historian(rng, any_kernel(rng), first, few_rows)
        told.extend(first + whole(rng, 0, 20), 1.0)
        told.solve()
        for _ in range(steps):
            told.step(pick(rng, [1, 1, 1, 5, 10, 20]))
            if rng.random() < 0.1:
                told.reweight()
                told.solve()
        return told.all()

    return case


def promoted(rng: np.random.Generator) -> Any:
    """Return what a history gives in which observers wait and are promoted."""
    told = Historian(rng, any_kernel(rng), 50, False)
    told.extend(40, 0.0)
    for _ in range(12):
        told.promote(whole(rng, 1, 8))
        told.solve()
        told.extend(whole(rng, 1, 12), 0.0)
        told.forget(whole(rng, 0, 12))
    return told.all()


def shifted(rng: np.random.Generator) -> Any:
    """Return what a history gives where most variables are free: common shifts, no active set."""
    told = Historian(
        rng, Kernel("rbf", pick(rng, [3.0, 12.5, 50.0]), wide=flag(rng, 0, 2)), 150, False
    )
    told.X = rng.integers(0, 4, (1000, 5)).astype(np.float64)
    told.codes = (rng.random(1000) < 0.2).astype(np.int64)
    told.machine.set_penalties(np.full(told.classes, pick(rng, [0.3, 1.0, 10.0])))
    told.extend(whole(rng, 20, 150), 1.0)
    told.extend(whole(rng, 0, 9), 0.0)
    told.solve()
    for _ in range(rng.integers(1, 5)):
        told.extend(whole(rng, 1, 4), 1.0)
        told.solve()
        told.forget(pick(rng, [0, 1, 60]))
        if rng.random() < 0.2:
            told.reweight()
        told.solve()
    return told.all()


def values(rng: np.random.Generator) -> Any:
    """Return the values of points in any slots, some of them more than once."""
    machines, n = rng.integers(1, 6), rng.integers(1, 200)
    F, b = rng.normal(size=(machines, n)), rng.normal(size=machines)
    return machine_state.values_of(F, b, rng.integers(0, n, rng.integers(0, 50)))


def counted(rng: np.random.Generator) -> Any:
    """Return how many train, where a code may be no class."""
    codes = rng.integers(0, 3, rng.integers(0, 9)) - (rng.random() < 0.1)
    return count_training(codes, rng.random(len(codes)) < 0.5, whole(rng, 2, 4))


CASES = {
    "arrive": window(50, 4, few_rows=True),
    "clip": shifted,
    "count_training": counted,
    "forget_training": history(few_rows=True),
    "promote": promoted,
    "restore_active": history(),
    "solve": window(140, 5),
    "solve linear": history("linear"),
    "solve poly": history("poly"),
    "solve rbf": history("rbf"),
    "solve wide rbf": history("wide rbf"),
    "values_of": values,
}
