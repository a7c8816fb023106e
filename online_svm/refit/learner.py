"""Learner: compute a refit, from frozen examples to a model and its calibration scores.

A `Learner` keeps the available examples, their scaling and the solver's warm start between refits.
A result depends only on the tasks so far, not on the process that computes it.
"""

from collections import deque
from typing import Any, Self

import numpy as np
from typing_extensions import override

from online_svm.compiled.kernels import Kernel
from online_svm.config import PredictorConfig
from online_svm.refit.committee.committee import Committee, Window
from online_svm.refit.committee.staleness import UNKNOWN, Staleness
from online_svm.refit.memory_trees import fitted_bytes
from online_svm.refit.scaling import Scaling, WindowScaling
from online_svm.refit.state_checks import opened
from online_svm.refit.task import Fitted, ForestFit, RefitResult, RefitTask, Refitter
from online_svm.storage.state import State, as_array, nest, pack, under
from online_svm.stream.cells import widened
from online_svm.stream.split import training_mask
from online_svm.svm.exact.rolling_machine import TOLERANCE, TOLERANCE_FACTOR, RollingMachine
from online_svm.svm.implied_bank import BankPlan, PackedBank, fit_banks
from online_svm.svm.kernel_model import balanced_weights
from online_svm.svm.probability_tube import Targets, fit_tubes
from online_svm.types import Bools, Floats, Ints

BANK_CACHE_MB = 200.0  # as in `RollingMachine`; freed after each refit
# Limit on the pair steps of a whole bank, as of one `RollingMachine`. A machine needs hundreds; one
# that cannot converge (huge C, repeated rows with both labels) must not block the stream.
MAX_BANK_STEPS = 10_000_000

BANK_MODELS = 99
"""Machines in a bank; it is odd, so that one machine weights the classes equally.

The resolution of the calibrator is 1 / (BANK_MODELS + 2).
"""


def train_banks(
    config: PredictorConfig, kernel: Kernel, X: Floats, codes: Ints, n_classes: int
) -> tuple[PackedBank, ...]:
    """Return the banks of a training set: one bank for two classes (positive means class 1).

    Every bank starts from zero, so it depends on the training set alone. The setting `class_weight`
    is not used: with it, the votes would estimate the posterior under other class frequencies.

    `X`, shape (n, n_features): scaled rows.
    `codes`, shape (n,): class index of each row; a class may be absent. Without rows every vote is
        one half.
    """
    plan = BankPlan(BANK_MODELS, tol=TOLERANCE, max_steps=MAX_BANK_STEPS // BANK_MODELS)
    penalties = np.full(n_classes, config.C)
    banks = fit_banks(kernel, X, codes, penalties, plan, BANK_CACHE_MB)
    return tuple(bank.packed() for bank in banks)


NO_CODES: Ints = np.empty(0, dtype=np.int64)

Counts = tuple[int, int, int]
"""Examples that left the last window, training examples among them, and examples that remain."""


class Learner:
    """The proper training set, its scaling and the solver's warm start."""

    def __init__(self, config: PredictorConfig) -> None:
        self.config = config
        self._held, self._scaling = HeldWindow(config), WindowScaling(config)
        self._machine: RollingMachine | None = None
        self._committee = Committee(config) if config.members else None
        self._older: RefitResult | None = None  # second-last refit, without its scores
        self._n_classes = self._refits = 0

    def refit(self, task: RefitTask) -> RefitResult:
        """Fit on the proper training set of `task` and score every available example."""
        self._refits += 1
        trains, (forgotten, forgotten_training, held) = self._held.take(task)
        # 1. After a relabelling, drop the machines that learned the old label.
        if task.relabelled:
            self._restart()
        # 2. The last machines of a committee score the new rows of T.
        staleness = UNKNOWN
        if self._committee is not None:
            new = np.flatnonzero(trains[held:]) + held
            staleness = self._score_new(self._committee, task, new, forgotten_training)
        # 3. If due, fit encoder, scaling and gamma on T; kernels are then computed again.
        cells = self._held.rows[trains] if len(task.order) else None
        if self._scaling.is_due(trains, self._refits, cells, task.order):
            self._scaling.fit(self._held.rows, trains)
            self._restart()
        # 4. Fit the model and score the available examples.
        fitted = self._fit(task, trains, forgotten)
        scaling, banks = self._scaling.scaling, self._train_banks(task, trains)
        return RefitResult(task.freeze, fitted.model, scaling, *fitted[1:], banks, staleness)

    def state(self) -> bytes:
        """Return the state from which `from_state` continues, byte for byte."""
        scaling = self._scaling
        parts = nest("scaling", scaling.scaling.state())
        own: dict[str, Any] = {
            "start": self._held.start,
            "gamma": scaling.gamma,
            "n_classes": self._n_classes,
            "refits": self._refits,
            "fitted_on": scaling.fitted_on,
            "grown_at": scaling.grown_at,
        }
        if self._machine is not None:  # a P-SVM has no warm start
            machine = self._machine.state()
            own["machine"] = machine.header
            parts |= nest("machine", machine.arrays)
        if self._committee is not None:
            committee = self._committee.state()
            own["committee"] = committee.header
            parts |= nest("committee", committee.arrays)
        if self._older is not None:
            parts["older"] = as_array(self._older.state())
        return pack(own, parts | {"rows": self._held.rows})

    @classmethod
    def from_state(cls, state: bytes, config: PredictorConfig) -> Self:
        """Return the learner described by `state`."""
        own, parts = opened(config, state)
        learner = cls(config)
        learner._n_classes, learner._refits = own["n_classes"], own["refits"]
        held = learner._held = HeldWindow(config, own["start"], parts["rows"].copy())
        fitted = Scaling.from_state(under("scaling", parts))
        counts = (own["fitted_on"], own["grown_at"])
        scaling = WindowScaling(config, fitted, own["gamma"], *counts)
        learner._scaling = scaling
        if "machine" in own:
            machine = State(own["machine"], under("machine", parts))
            learner._machine = RollingMachine.from_state(machine)
        if config.members:
            committee = State(own["committee"], under("committee", parts))
            freeze = held.start + len(held.rows)
            window = learner._window(NO_CODES, held.trains, freeze)
            learner._committee = Committee.from_state(committee, config, window, learner._n_classes)
        if "older" in parts:
            learner._older = RefitResult.from_state(parts["older"].tobytes())
        return learner

    def _restart(self) -> None:
        """Drop the machines, so that the next solve is a cold start."""
        self._machine = None
        if self._committee is not None:
            self._committee.restart()

    def _score_new(
        self, committee: Committee, task: RefitTask, new: Ints, departed: int
    ) -> Staleness:
        """Score the new rows of T by the committee, and by the older model if distances vary."""
        last, older, self._older = committee.model(), self._older, None
        has_same_classes = task.n_classes == self._n_classes
        rows = self._held.rows[new]
        scores = committee.score_new(self._scaling.transform(rows), departed, task.n_classes)
        if last is None or not has_same_classes or self.config.varies_from is None:
            return UNKNOWN
        none = np.empty((0, last.stack.slope.shape[1]))
        self._older = RefitResult(task.freeze, last, self._scaling.scaling, none, none)
        if older is None or not len(new):
            return UNKNOWN
        outputs = older.model.scores(older.scaling.transform(rows))
        return Staleness.between(outputs, last.stack.apply(scores), task.codes[new])

    def _fit(self, task: RefitTask, trains: Bools, forgotten: int) -> Fitted:
        if self.config.learner == "psvm":
            return self._fit_tubes(task, trains)
        penalties = self._penalties(task, trains)
        if self._committee is not None:
            self._n_classes = task.n_classes
            window = self._window(task.codes, trains, task.freeze)
            return self._committee.fit(window, forgotten, penalties, self._scaling.gamma)
        machine = self._advance(task, forgotten, trains)
        machine.set_penalties(penalties)
        machine.solve()
        return Fitted(machine.model(), machine.observer_values(), machine.training_values())

    def _window(self, codes: Ints, trains: Bools, freeze: int) -> Window:
        encoder, X = self._scaling.scaling.encoder, self._scaling.transform(self._held.rows)
        return Window(X, codes, trains, freeze, None if encoder is None else encoder.categories)

    def _fit_tubes(self, task: RefitTask, trains: Bools) -> Fitted:
        """Fit a P-SVM on T without a warm start, and score every available example."""
        assert task.probs is not None
        X = self._scaling.transform(self._held.rows)
        signs = np.where(task.codes < 0, 0.0, 2.0 * task.codes - 1.0)
        prices = np.append(self._penalties(task, trains), self.config.tube_penalty)[task.codes]
        targets = Targets.of(
            signs[trains],
            task.probs[trains],
            prices[trains],
            prices[trains],
            self.config.tube_half_height,
        )
        model = fit_tubes(self._scaling.kernel, X[trains], targets, TOLERANCE_FACTOR * TOLERANCE)
        scores = model.scores(X)
        return Fitted(model, scores[~trains], scores[trains])

    def _advance(self, task: RefitTask, forgotten: int, trains: Bools) -> RollingMachine:
        """Remove and add points, so that the machine holds the available examples; return it."""
        machine = self._machine
        if machine is None or task.n_classes != self._n_classes:
            machine, new = self._new_machine(task.n_classes), 0
        else:
            machine.forget(forgotten)
            new = len(machine)
        X = self._scaling.transform(self._held.rows[new:])
        if self.config.split == "oldest":
            machine.extend(X, task.codes[new:])
            machine.promote(int(trains.sum()) - machine.n_training)
        else:
            machine.extend(X, task.codes[new:], training=trains[new:])
        self._machine, self._n_classes = machine, task.n_classes
        return machine

    def _new_machine(self, n_classes: int) -> RollingMachine:
        config = self.config
        penalties = np.full(n_classes, config.C)
        return RollingMachine(self._scaling.kernel, penalties, tol=TOLERANCE, window=config.window)

    def _train_banks(self, task: RefitTask, trains: Bools) -> tuple[PackedBank, ...]:
        if "implied" not in self.config.maps:
            return ()
        labelled, kernel = trains & (task.codes >= 0), self._scaling.kernel
        X = self._scaling.transform(self._held.rows[labelled])
        return train_banks(self.config, kernel, X, task.codes[labelled], task.n_classes)

    def _penalties(self, task: RefitTask, trains: Bools) -> Floats:
        """Return the bound on the multipliers of each class: C times its weight."""
        weights = task.weights
        if self.config.class_weight == "balanced":
            labelled = task.codes[trains & (task.codes >= 0)]
            weights = balanced_weights(labelled, task.n_classes)
        return self.config.C * weights


class HeldWindow:
    """The rows of the last task, so that the next task contains only new ones.

    `start`: number of the first example.
    `rows`, shape (n, n_features).
    """

    def __init__(self, config: PredictorConfig, start: int = 0, rows: Floats | None = None) -> None:
        self._config, self.start = config, start
        self.rows: Floats = np.empty((0, 0)) if rows is None else rows

    @property
    def trains(self) -> Bools:
        """Whether each example is in T, shape (n,)."""
        return self._parts(self.start, len(self.rows))

    def take(self, task: RefitTask) -> tuple[Bools, Counts]:
        """Store the examples of a task; return which are in T, and the `Counts`."""
        forgotten = min(task.start - self.start, len(self.rows))
        forgotten_training = int(self.trains[:forgotten].sum())
        held = len(self.rows) - forgotten
        kept = self.rows[forgotten:].reshape(-1, self.rows.shape[1] or task.X.shape[1])
        self.rows = np.concatenate([widened(kept, task.X.shape[1]), task.X])
        self.start = task.start
        counts = (forgotten, forgotten_training, held)
        return self._parts(task.start, task.freeze - task.start), counts

    def _parts(self, start: int, count: int) -> Bools:
        """Return which of `count` examples from number `start` are in T."""
        config, stop = self._config, start + count
        return training_mask(config.split, start, stop, config.training_share, config.seed)


class InlineFit(ForestFit):
    """A fit of the memory's trees, computed when its result is requested."""

    def __init__(self, task: bytes) -> None:
        self._task = task

    @property
    @override
    def is_ready(self) -> bool:
        return True

    @override
    def result(self) -> bytes:
        return fitted_bytes(self._task)


class InlineRefitter(Refitter):
    """Computes a refit in this process when its result is requested.

    `rests`: whether to keep only the serialised learner between refits. This frees the kernel
        matrices, which the next refit computes again, and changes no result.
    """

    def __init__(self, config: PredictorConfig, rests: bool = False) -> None:
        self._config, self._rests = config, rests
        self._learner: Learner | bytes = Learner(config)
        self._tasks: deque[RefitTask] = deque()

    @override
    def fit(self, task: bytes) -> ForestFit:
        return InlineFit(task)

    @override
    def submit(self, task: RefitTask) -> None:
        self._tasks.append(task)

    @override
    def result(self) -> RefitResult:
        learner = self._learner
        if isinstance(learner, bytes):
            learner = Learner.from_state(learner, self._config)
        found = learner.refit(self._tasks.popleft())
        self._learner = learner.state() if self._rests else learner
        return found

    @override
    def state(self) -> bytes:
        return self._learner if isinstance(self._learner, bytes) else self._learner.state()

    @override
    def withdraw(self) -> None:
        self.reset(None)

    @override
    def reset(self, state: bytes | None) -> None:
        config = self._config
        self._learner = Learner(config) if state is None else Learner.from_state(state, config)
        self._tasks.clear()
