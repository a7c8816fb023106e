"""The solver against scikit-learn's SVC refitted from nothing, in one run.

Three ways of use: the online protocol of Lambrou et al. on Car, which refits at every step; a
rolling window that adds and forgets one example a step; and the default refit of the predictor,
which adds and forgets 250.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Annotated

import numpy as np
import typer
from sklearn.svm import SVC

from online_svm.compiled.kernels import Kernel
from online_svm.config import PredictorConfig
from online_svm.predictor.active_model import ActiveModel
from online_svm.refit.learner import Learner
from online_svm.refit.task import RefitTask
from online_svm.stream.labels import ClassView
from online_svm.stream.split import training_mask
from online_svm.svm.exact.rolling_machine import RollingMachine
from online_svm.svm.online_svc import OnlineSVC
from online_svm.types import Bools, Floats, Ints
from online_svm.venn.classifier import InductiveVennClassifier
from scripts.bench.harness import timed
from scripts.bench.report import Result, beside
from scripts.command_line import tell
from workers.push.datasets import load

TRAIN_FRACTION = 0.7
CAR_GAMMAS = {"gamma 0.2": 0.2, "sigma 0.6": 1 / (2 * 0.6**2), "sigma 0.2": 1 / (2 * 0.2**2)}
STRIDE = 8  # SVC is timed at every eighth step of the protocol, and the sum multiplied by eight
N_FEATURES = 20
WINDOWS = {1000: 1000, 5000: 300}  # size: steps timed
REFITS = 12


def run(
    examples: Annotated[
        int | None, typer.Option(min=100, help="Of Car; default all 1,728.")
    ] = None,
) -> Iterator[Result]:
    """Measure the exact protocol on Car against refitting scikit-learn's SVC at each step."""
    data = load("car")
    order = np.random.default_rng(0).permutation(len(data))[:examples]
    codes = np.unique(data.y[order], return_inverse=True)[1].astype(np.int64)
    for name, gamma in CAR_GAMMAS.items():
        tell(f"Car, {name}")
        yield from _protocol(f"Car, {name}", data.X[order], codes, gamma)
    for size, steps in WINDOWS.items():
        tell(f"window of {size:,}")
        yield _rolling(size, steps)
    tell("default refits")
    yield from _refits()


def _protocol(name: str, X: Floats, codes: Ints, gamma: float) -> Iterator[Result]:
    """Time the protocol as a user runs it, and the solver's part of it alone."""
    peer = _svc_seconds(Kernel("rbf", gamma)(X, X), codes)

    def progressive(count: int) -> Floats:
        venn = InductiveVennClassifier(OnlineSVC(gamma=gamma), split="oldest", refit_every=1)
        return venn.progressive_interval(X[:count], codes[:count])

    progressive(50)  # imports what is loaded at first use
    whole, _ = timed(lambda: progressive(len(X)))
    yield beside(f"{name}, progressive_interval", whole, peer, f"{len(X)} steps")
    machine = _machine(gamma, int(codes.max()) + 1)

    def follow() -> None:
        for n in range(len(X)):
            machine.promote(math.ceil(TRAIN_FRACTION * n) - machine.n_training)
            machine.solve()
            machine.observer_values()
            machine.extend(X[n : n + 1], codes[n : n + 1])

    alone, _ = timed(follow)
    steps = f"{1e6 * alone / len(X):.0f} us and {machine.steps / len(X):.0f} pair steps"
    yield beside(f"{name}, solver", alone, peer, f"{steps} a step")


def _svc_seconds(gram: Floats, codes: Ints) -> float:
    """Return the seconds of refits from nothing, of each class that has both targets."""
    seconds = 0.0
    for n in range(STRIDE // 2, len(gram), STRIDE):
        q = math.ceil(TRAIN_FRACTION * n)
        part = np.ascontiguousarray(gram[:q, :q])
        for c in range(int(codes.max()) + 1):
            target = codes[:q] == c
            if target.any() and not target.all():
                fit = partial(SVC(kernel="precomputed").fit, part, target)
                seconds += timed(fit)[0]
    return seconds * STRIDE


def _machine(gamma: float, n_classes: int = 2, window: int | None = None) -> RollingMachine:
    return RollingMachine(Kernel("rbf", gamma), np.ones(n_classes), window=window)


def _noisy(n: int) -> tuple[Floats, Ints]:
    """Two overlapping classes in 20 features, 3 % of the labels flipped."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, N_FEATURES))
    score = X @ rng.normal(size=N_FEATURES) / math.sqrt(N_FEATURES) + 0.3 * rng.normal(size=n)
    return X, ((score > 0) ^ (rng.random(n) < 0.03)).astype(np.int64)


def _rolling(window: int, steps: int) -> Result:
    """Add one example and forget one, the window exact after each step."""
    X, codes = _noisy(window + steps)
    machine, seconds = _machine(1 / N_FEATURES, window=window), 0.0
    one = np.ones(1, dtype=bool)
    machine.extend(X[:window], codes[:window], training=np.ones(window, dtype=bool))
    before = machine.solve()

    for i in range(window, window + steps):

        def step(i: int = i) -> None:
            machine.forget(1)
            machine.extend(X[i : i + 1], codes[i : i + 1], training=one)
            machine.solve()

        seconds += timed(step)[0]
    peer = _svc_fit_seconds(X[-window:], codes[-window:])
    note = f"{(machine.steps - before) / steps:.0f} pair steps"
    return beside(f"window {window}, one in, one out", seconds / steps, peer, note)


def _svc_fit_seconds(X: Floats, codes: Ints) -> float:
    """Return the least seconds of three fits: other work on the machine can only add to a time."""
    return min(timed(lambda: SVC(gamma=1 / N_FEATURES).fit(X, codes))[0] for _ in range(3))


def _refits() -> Iterator[Result]:
    """Time the work of the predictor for a refit of its default schedule."""
    config = PredictorConfig(classes=("0", "1"), features=N_FEATURES)
    assert config.window is not None
    X, codes = _noisy(config.window + (REFITS + 2) * config.distance)
    for since in (0, config.lag):
        bench, times = _Refits(config, X, codes), list[tuple[float, float]]()
        bench.refit(config.window, since)
        for i in range(1, REFITS + 1):
            freeze = config.window + i * config.distance
            ours, _ = timed(lambda: bench.refit(freeze, since))  # noqa: B023 - called at once
            held, trains = bench.split(freeze)
            times.append((ours, _svc_fit_seconds(X[held][trains], codes[held][trains])))
        ours, peer = (float(np.median(column)) for column in zip(*times, strict=True))
        name = f"refit, {config.distance} in and out of {config.window}, {since} since"
        yield beside(name, ours, peer, "medians, beside SVC.fit alone")


class _Refits:
    """Refits over a window that rolls along a stream, by the predictor's own classes.

    `Learner.refit` scales, adds points, solves and scores the calibration part; the activation of
    an `ActiveModel` scores what was learned since the freeze, counts and fits the maps.
    """

    def __init__(self, config: PredictorConfig, X: Floats, codes: Ints) -> None:
        self._config, self._X, self._codes = config, X, codes
        self._view = ClassView(config.classes or (), declared=True)
        self._learner, self._sent = Learner(config), 0

    def split(self, freeze: int) -> tuple[slice, Bools]:
        """Return the window before `freeze`, and which of it trains."""
        config, start = self._config, freeze - (self._config.window or 0)
        mask = training_mask(config.split, start, freeze, config.training_share, config.seed)
        return slice(start, freeze), mask

    def refit(self, freeze: int, since: int) -> None:
        """Refit at `freeze`, and activate when that many more examples have been learned."""
        held, trains = self.split(freeze)
        codes, after = self._codes[held], slice(freeze, freeze + since)
        new, self._sent = self._X[self._sent : freeze], freeze
        task = RefitTask(held.start, freeze, freeze - len(new), new, codes, np.ones(2))
        active = ActiveModel(self._config, self._learner.refit(task), self._view, 1, codes[trains])
        active.calibrate(np.concatenate([codes[~trains], self._codes[after]]), self._X[after], 1)
