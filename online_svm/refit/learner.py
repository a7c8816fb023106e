"""One refit, from the frozen examples to a model and the calibration scores.

A `Learner` keeps the proper training set, its scaling and the solver's warm start between refits;
a result is a function of the tasks so far, wherever it is computed.
"""

from typing import Any, Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.refit.committee.committee import Committee, Window
from online_svm.refit.committee.staleness import UNKNOWN, Staleness
from online_svm.refit.crossfit import FOLDS, FoldMachines
from online_svm.refit.implied_training import train_banks
from online_svm.refit.scaling import Scaling, WindowScaling
from online_svm.refit.state_checks import opened
from online_svm.refit.task import Fitted, RefitResult, RefitTask
from online_svm.storage.arrays import nest, under
from online_svm.storage.container import pack
from online_svm.storage.state import State, as_array
from online_svm.stream.cells import widened
from online_svm.stream.split import fold_numbers, window_parts
from online_svm.svm.exact.rolling_machine import STRICTNESS, TOLERANCE, RollingMachine
from online_svm.svm.hyperparameters import balanced_weights
from online_svm.svm.implied.packed_bank import PackedBank
from online_svm.svm.probabilistic.tube import Targets, fit_tubes
from online_svm.types import Bools, Floats, Ints

NO_CODES: Ints = np.empty(0, dtype=np.int64)

Counts = tuple[int, int, int]
"""Examples of the last window that are gone; how many of these trained; examples still held."""


class Learner:
    """The proper training set, its scaling and the solver's warm start.

    Parameters
    ----------
    config : PredictorConfig
    """

    def __init__(self, config: PredictorConfig) -> None:
        self.config = config
        self._held, self._scaling = HeldWindow(config), WindowScaling(config)
        self._machine: RollingMachine | FoldMachines | None = None
        self._committee = Committee(config) if config.members else None
        self._older: RefitResult | None = None  # of the refit but one, without its scores
        self._n_classes = self._refits = 0

    def refit(self, task: RefitTask) -> RefitResult:
        """Fit on the proper training set of `task` and score every available example."""
        self._refits += 1
        trains, (forgotten, left, held) = self._held.take(task)
        # 1. An example that has another label than before: the machines that learned it go.
        if task.relabelled:
            self._begin_anew()
        # 2. The machines of a committee as they are score the new rows of T.
        staleness = UNKNOWN
        if self._committee is not None:
            new = np.flatnonzero(trains[held:]) + held
            staleness = self._foresee(self._committee, task, new, left)
        # 3. Where coding, scaling and gamma are fitted anew on T, kernels are computed anew.
        cells = self._held.rows[trains] if len(task.order) else None
        if self._scaling.is_due(trains, self._refits, cells, task.order):
            self._scaling.fit(self._held.rows, trains)
            self._begin_anew()
        # 4. The model, and its scores of the available examples.
        fitted = self._fit(task, trains, forgotten)
        scaling, banks = self._scaling.scaling, self._train_banks(task, trains)
        return RefitResult(task.freeze, fitted.model, scaling, *fitted[1:], banks, staleness)

    def state(self) -> bytes:
        """Return everything that `from_state` continues from, byte for byte."""
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
        if self._machine is not None:  # a P-SVM is solved anew each time
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
        """Return the learner that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If the bytes are damaged or contradict themselves or the configuration.
        """
        own, parts = opened(config, state)
        learner = cls(config)
        learner._n_classes, learner._refits = own["n_classes"], own["refits"]
        held = learner._held = HeldWindow(config, own["start"], parts["rows"].copy())
        fitted = Scaling.from_state(under("scaling", parts))
        counts = (own["fitted_on"], own["grown_at"])
        scaling = WindowScaling(config, fitted, own["gamma"], *counts)
        learner._scaling = scaling
        if "machine" in own:
            kind = FoldMachines if config.split == "crossfit" else RollingMachine
            learner._machine = kind.from_state(State(own["machine"], under("machine", parts)))
        if config.members:
            committee = State(own["committee"], under("committee", parts))
            freeze = held.start + len(held.rows)
            window = learner._window(NO_CODES, held.trains, freeze)
            learner._committee = Committee.from_state(committee, config, window, learner._n_classes)
        if "older" in parts:
            learner._older = RefitResult.from_state(parts["older"].tobytes())
        return learner

    def _begin_anew(self) -> None:
        """Give up the machines; the next are solved from nothing."""
        self._machine = None
        if self._committee is not None:
            self._committee.begin_anew()

    def _foresee(
        self, committee: Committee, task: RefitTask, new: Ints, departed: int
    ) -> Staleness:
        """Let the committee score the new rows of T, and where distances vary an older one too."""
        last, older, self._older = committee.model(), self._older, None
        is_as_before = last is not None and task.n_classes == self._n_classes
        rows = self._held.rows[new]
        scores = committee.foresee(self._scaling.transform(rows), departed, task.n_classes)
        if last is None or not (is_as_before and self.config.varies_from is not None):
            return UNKNOWN
        none = np.empty((0, last.stack.slope.shape[1]))
        self._older = RefitResult(task.freeze, last, self._scaling.scaling, none, none)
        if older is None or not len(new):
            return UNKNOWN
        said = older.model.scores(older.scaling.transform(rows))
        return Staleness.between(said, last.stack.apply(scores), task.codes[new])

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
        """Return the available examples as a committee takes them."""
        coding, X = self._scaling.scaling.coding, self._scaling.transform(self._held.rows)
        return Window(X, codes, trains, freeze, None if coding is None else coding.categories)

    def _fit_tubes(self, task: RefitTask, trains: Bools) -> Fitted:
        """Fit a P-SVM on T, from nothing, and score every available example by it."""
        assert task.probs is not None
        X = self._scaling.transform(self._held.rows)
        signs = np.where(task.codes < 0, 0.0, 2.0 * task.codes - 1.0)
        prices = np.append(self._penalties(task, trains), self.config.C_prob)[task.codes]
        targets = Targets.of(
            signs[trains], task.probs[trains], prices[trains], prices[trains], self.config.eta
        )
        model = fit_tubes(self._scaling.kernel, X[trains], targets, STRICTNESS * TOLERANCE)
        scores = model.scores(X)
        return Fitted(model, scores[~trains], scores[trains])

    def _advance(
        self, task: RefitTask, forgotten: int, trains: Bools
    ) -> RollingMachine | FoldMachines:
        """Return the machine over the available examples, old ones gone and new ones added."""
        machine = self._machine
        if machine is None or task.n_classes != self._n_classes:
            machine, new = self._new_machine(task.n_classes), 0
        else:
            machine.forget(forgotten)
            new = len(machine)
        X = self._scaling.transform(self._held.rows[new:])
        if isinstance(machine, FoldMachines):
            folds = fold_numbers(task.start, task.freeze, machine.folds, self.config.seed)
            machine.extend(X, task.codes[new:], folds[new:])
        elif self.config.split == "oldest":
            machine.extend(X, task.codes[new:])
            machine.promote(int(trains.sum()) - machine.n_training)
        else:
            machine.extend(X, task.codes[new:], training=trains[new:])
        self._machine, self._n_classes = machine, task.n_classes
        return machine

    def _new_machine(self, n_classes: int) -> RollingMachine | FoldMachines:
        config = self.config
        penalties = np.full(n_classes, config.C)
        if config.split == "crossfit":
            return FoldMachines(self._scaling.kernel, penalties, TOLERANCE, config.window, FOLDS)
        return RollingMachine(self._scaling.kernel, penalties, tol=TOLERANCE, window=config.window)

    def _train_banks(self, task: RefitTask, trains: Bools) -> tuple[PackedBank, ...]:
        """Train the banks of the implied map anew, where it is published."""
        if "implied" not in self.config.maps:
            return ()
        labelled = trains & (task.codes >= 0)
        X = self._scaling.transform(self._held.rows[labelled])
        return train_banks(
            self.config, self._scaling.kernel, X, task.codes[labelled], task.n_classes
        )

    def _penalties(self, task: RefitTask, trains: Bools) -> Floats:
        """Return the bound on the multipliers of each class: C times its weight."""
        weights = task.weights
        if self.config.class_weight == "balanced":
            labelled = task.codes[trains & (task.codes >= 0)]
            weights = balanced_weights(labelled, task.n_classes)
        return self.config.C * weights


class HeldWindow:
    """The rows of the last task, by which the next one says only what is new.

    Parameters
    ----------
    config : PredictorConfig
    start : int
        Number of the first example.
    rows : ndarray of shape (n, n_features), optional

    Attributes
    ----------
    start, rows
        The same, now.

    Examples
    --------
    >>> window = HeldWindow(PredictorConfig(split="oldest", train_fraction=0.5))
    >>> task = RefitTask(0, 2, 0, np.array([[1.0], [2.0]]), np.array([0, 1]), np.ones(2))
    >>> window.take(task)
    (array([ True, False]), (0, 0, 0))
    >>> task = RefitTask(1, 3, 2, np.array([[3.0]]), np.array([1, 0]), np.ones(2))
    >>> window.take(task)[1], window.rows.ravel().tolist()
    ((1, 1, 1), [2.0, 3.0])
    """

    def __init__(self, config: PredictorConfig, start: int = 0, rows: Floats | None = None) -> None:
        self._config, self.start = config, start
        self.rows: Floats = np.empty((0, 0)) if rows is None else rows

    @property
    def trains(self) -> Bools:
        """Which of the examples are in T, shape (n,)."""
        return self._parts(self.start, len(self.rows))

    def take(self, task: RefitTask) -> tuple[Bools, Counts]:
        """Hold the examples of a task; return which of them are in T, and what became of others."""
        forgotten = min(task.start - self.start, len(self.rows))
        left = int(self.trains[:forgotten].sum())
        held = len(self.rows) - forgotten
        kept = self.rows[forgotten:].reshape(-1, self.rows.shape[1] or task.X.shape[1])
        self.rows = np.concatenate([widened(kept, task.X.shape[1]), task.X])
        self.start = task.start
        return self._parts(task.start, task.freeze - task.start), (forgotten, left, held)

    def _parts(self, start: int, count: int) -> Bools:
        """Return which of `count` examples from number `start` on are in T."""
        config, stop = self._config, start + count
        return window_parts(config.split, start, stop, config.training_share, config.seed)[0]
