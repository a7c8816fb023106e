"""The solver against scikit-learn's SVC refitted from nothing, in one run.

Three ways of use: the online protocol of Lambrou et al. on Car, which refits at every step; a
rolling window that adds and forgets one example a step; and the default refit of the predictor,
which adds and forgets 250.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.svm import SVC

from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.rolling_machine import RollingMachine
from online_svm.svm.online_svc import OnlineSVC
from online_svm.types import Bools, Floats, Ints
from online_svm.venn.classifier import InductiveVennClassifier
from scripts.bench.refits import refit_rows
from scripts.bench.report import Row, Tell, silent
from scripts.bench.timing import Stopwatch, best_of
from workers.push.datasets import load

TRAIN_FRACTION = 0.7
CAR_GAMMAS = {"gamma 0.2": 0.2, "sigma 0.6": 1 / (2 * 0.6**2), "sigma 0.2": 1 / (2 * 0.2**2)}
STRIDE = 8  # SVC is timed at every eighth step of the protocol, and the sum multiplied by eight
N_FEATURES = 20
WINDOWS = {1000: 1000, 5000: 300}  # size: steps timed
REFIT_WINDOW, REFIT_EVERY, REFITS = 2000, 250, 12


def run(
    data_dir: Path | str | None = None,
    n: int | None = None,
    stride: int = STRIDE,
    windows: dict[int, int] | None = None,
    refits: int = REFITS,
    tell: Tell = silent,
) -> Iterator[Row]:
    """Measure, and yield each comparison as it is there.

    Parameters
    ----------
    data_dir : path, optional
        Where `car.data` is; see `workers.push.datasets.data_directory`.
    n : int, optional
        Examples of Car; default all 1,728.
    stride : int
        SVC is timed at every stride-th step of the protocol.
    windows : dict, optional
        Size of each rolling window, and the steps timed on it.
    refits : int
        Refits of the default schedule that are timed.
    tell : callable
        Is told what is measured next.
    """
    X, codes = _car(data_dir, n)
    for name, gamma in CAR_GAMMAS.items():
        tell(f"Car, {name}")
        yield from _protocol(f"Car, {name}", X, codes, gamma, stride)
    for size, steps in (WINDOWS if windows is None else windows).items():
        tell(f"window of {size:,}")
        yield _rolling(size, steps)
    X, codes = _noisy(REFIT_WINDOW + (refits + 2) * REFIT_EVERY)
    tell("default refits")
    yield from refit_rows(X, codes, refits, _svc_fit_seconds)


def _car(data_dir: Path | str | None, n: int | None) -> tuple[Floats, Ints]:
    data = load("car", data_dir)
    order = np.random.default_rng(0).permutation(len(data))[:n]
    return data.X[order], np.unique(data.y[order], return_inverse=True)[1].astype(np.int64)


def _protocol(name: str, X: Floats, codes: Ints, gamma: float, stride: int) -> tuple[Row, Row]:
    """Time the protocol as a user runs it, and the solver's part of it alone."""
    gram = Kernel("rbf", gamma)(X, X)
    peer = _svc_seconds(gram, codes, stride)
    whole = Stopwatch()
    _progressive(X[:50], codes[:50], gamma)  # compiles, or loads what was compiled
    with whole.running():
        _progressive(X, codes, gamma)
    machine, solver = _followed(X, codes, gamma)
    steps = f"{1e6 * solver.seconds / len(X):.0f} us and {machine.steps / len(X):.0f} pair steps"
    return (
        Row(f"{name}, progressive_interval", whole.seconds, peer, f"{len(X)} steps"),
        Row(f"{name}, solver", solver.seconds, peer, f"{steps} a step"),
    )


def _progressive(X: Floats, codes: Ints, gamma: float) -> Floats:
    venn = InductiveVennClassifier(OnlineSVC(gamma=gamma), split="oldest", refit_every=1)
    return venn.progressive_interval(X, codes)


def _training_size(n: int) -> int:
    return math.ceil(TRAIN_FRACTION * n)


def _targets(codes: Ints, q: int) -> Iterator[tuple[int, Bools]]:
    """Yield the classes that the first q examples let train, and their targets."""
    for c in range(int(codes.max()) + 1):
        target = codes[:q] == c
        if target.any() and not target.all():
            yield c, target


def _svc_seconds(gram: Floats, codes: Ints, stride: int) -> float:
    clock = Stopwatch()
    for n in range(stride // 2, len(gram), stride):
        q = _training_size(n)
        part = np.ascontiguousarray(gram[:q, :q])
        for _, target in _targets(codes, q):
            with clock.running():
                SVC(kernel="precomputed").fit(part, target)
    return clock.seconds * stride


def _followed(X: Floats, codes: Ints, gamma: float) -> tuple[RollingMachine, Stopwatch]:
    """Run the protocol's machine alone."""
    machine, clock = _machine(gamma, int(codes.max()) + 1), Stopwatch()
    with clock.running():
        for n in range(len(X)):
            machine.promote(_training_size(n) - machine.n_training)
            machine.solve()
            machine.observer_values()
            machine.extend(X[n : n + 1], codes[n : n + 1])
    return machine, clock


def _machine(gamma: float, n_classes: int = 2, window: int | None = None) -> RollingMachine:
    return RollingMachine(Kernel("rbf", gamma), np.ones(n_classes), window=window)


def _noisy(n: int) -> tuple[Floats, Ints]:
    """Two overlapping classes in 20 features, 3 % of the labels flipped."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, N_FEATURES))
    score = X @ rng.normal(size=N_FEATURES) / math.sqrt(N_FEATURES) + 0.3 * rng.normal(size=n)
    return X, ((score > 0) ^ (rng.random(n) < 0.03)).astype(np.int64)


def _rolling(window: int, steps: int) -> Row:
    """Add one example and forget one, the window exact after each step."""
    X, codes = _noisy(window + steps)
    machine, clock, one = (
        _machine(1 / N_FEATURES, window=window),
        Stopwatch(),
        np.ones(1, dtype=bool),
    )
    machine.extend(X[:window], codes[:window], training=np.ones(window, dtype=bool))
    before = machine.solve()
    for i in range(window, window + steps):
        with clock.running():
            machine.forget(1)
            machine.extend(X[i : i + 1], codes[i : i + 1], training=one)
            machine.solve()
    peer = _svc_fit_seconds(X[-window:], codes[-window:])
    pairs = (machine.steps - before) / steps
    return Row(
        f"window {window}, one in, one out", clock.seconds / steps, peer, f"{pairs:.0f} pair steps"
    )


def _svc_fit_seconds(X: Floats, codes: Ints) -> float:
    return best_of(3, lambda: SVC(gamma=1 / N_FEATURES).fit(X, codes))[0]
