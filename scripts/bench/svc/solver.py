"""The solver against scikit-learn's SVC refitted from nothing, in one run.

Two ways of use: a rolling window that adds and forgets one example a step, and the default refit of
the predictor, which adds and forgets 250.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn.svm import SVC

from online_svm.compiled.kernels import Kernel
from online_svm.config import PredictorConfig
from online_svm.predictor.active_model import ActiveModel
from online_svm.refit.learner import Learner
from online_svm.refit.task import RefitTask
from online_svm.stream.labels import ClassView
from online_svm.stream.split import training_mask
from online_svm.svm.exact.rolling_machine import RollingMachine
from online_svm.types import Bools, Floats, Ints
from scripts.bench.harness import timed
from scripts.bench.report import Result, Values
from scripts.command_line import tell

N_FEATURES = 20
WINDOWS = {1000: 1000, 5000: 300}  # size: steps timed
REFITS = 12


def run() -> Iterator[Result]:
    """Measure a rolling window and the default refit against refitting scikit-learn's SVC."""
    rows = []
    for size, steps in WINDOWS.items():
        tell(f"window of {size:,}")
        rows.append(_rolling(size, steps))
    tell("default refits")
    rows.append(_refits())
    yield Result(rows, "milliseconds, and those of SVC.fit")


def _row(name: str, ours: float, peer: float) -> Values:
    return {"name": name, "ours": 1e3 * ours, "SVC": 1e3 * peer, "times": peer / ours}


def _noisy(n: int) -> tuple[Floats, Ints]:
    """Two overlapping classes in 20 features, 3 % of the labels flipped."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, N_FEATURES))
    score = X @ rng.normal(size=N_FEATURES) / math.sqrt(N_FEATURES) + 0.3 * rng.normal(size=n)
    return X, ((score > 0) ^ (rng.random(n) < 0.03)).astype(np.int64)


def _rolling(window: int, steps: int) -> Values:
    """Add one example and forget one, the window exact after each step."""
    X, codes = _noisy(window + steps)
    kernel, seconds = Kernel("rbf", 1 / N_FEATURES), 0.0
    machine = RollingMachine(kernel, np.ones(2), window=window)
    one = np.ones(1, dtype=bool)
    machine.extend(X[:window], codes[:window], training=np.ones(window, dtype=bool))
    machine.solve()
    for i in range(window, window + steps):

        def step(i: int = i) -> None:
            machine.forget(1)
            machine.extend(X[i : i + 1], codes[i : i + 1], training=one)
            machine.solve()

        seconds += timed(step)
    peer = _svc_fit_seconds(X[-window:], codes[-window:])
    return _row(f"window {window}, one in, one out", seconds / steps, peer)


def _svc_fit_seconds(X: Floats, codes: Ints) -> float:
    """Return the least seconds of three fits: other work on the machine can only add to a time."""
    return min(timed(lambda: SVC(gamma=1 / N_FEATURES).fit(X, codes)) for _ in range(3))


def _refits() -> Values:
    """Time the work of the predictor for a refit of its default schedule."""
    config = PredictorConfig(classes=("0", "1"), features=N_FEATURES)
    assert config.window is not None
    X, codes = _noisy(config.window + (REFITS + 2) * config.distance)
    bench, times = _Refits(config, X, codes), list[tuple[float, float]]()
    bench.refit(config.window)
    for i in range(1, REFITS + 1):
        freeze = config.window + i * config.distance
        ours = timed(partial(bench.refit, freeze))
        held, trains = bench.split(freeze)
        times.append((ours, _svc_fit_seconds(X[held][trains], codes[held][trains])))
    ours, peer = (float(np.median(column)) for column in zip(*times, strict=True))
    return _row(f"refit, {config.distance} in and out of {config.window}", ours, peer)


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

    def refit(self, freeze: int) -> None:
        """Refit at `freeze`, and activate when the examples of the lag have been learned."""
        held, trains = self.split(freeze)
        codes, after = self._codes[held], slice(freeze, freeze + self._config.lag)
        new, self._sent = self._X[self._sent : freeze], freeze
        task = RefitTask(held.start, freeze, freeze - len(new), new, codes, np.ones(2))
        active = ActiveModel(self._config, self._learner.refit(task), self._view, 1, codes[trains])
        active.calibrate(np.concatenate([codes[~trains], self._codes[after]]), self._X[after], 1)
