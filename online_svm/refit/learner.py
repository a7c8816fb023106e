"""One refit, from the frozen examples to a model and the calibration scores.

A `Learner` keeps the proper training set, its scaling and the solver's warm start between refits;
a result is a function of the tasks so far, wherever it is computed.
"""

from typing import Any, Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.refit.committee.committee import Committee, Window
from online_svm.refit.crossfit import FOLDS, FoldMachines
from online_svm.refit.held_window import Counts, HeldWindow
from online_svm.refit.implied_training import train_banks
from online_svm.refit.scaling import Scaling
from online_svm.refit.state_checks import opened
from online_svm.refit.task import RefitResult, RefitTask
from online_svm.refit.window_scaling import WindowScaling
from online_svm.storage.arrays import nest, under
from online_svm.storage.container import pack
from online_svm.storage.state import State
from online_svm.stream.split import fold_numbers
from online_svm.svm.exact.rolling_machine import STRICTNESS, TOLERANCE, RollingMachine
from online_svm.svm.hyperparameters import balanced_weights
from online_svm.svm.implied.packed_bank import PackedBank
from online_svm.svm.probabilistic.tube import fit_tubes
from online_svm.types import Bools, Floats, Ints

NO_CODES: Ints = np.empty(0, dtype=np.int64)


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
        self._n_classes = self._refits = 0

    def refit(self, task: RefitTask) -> RefitResult:
        """Fit on the proper training set of `task` and score every available example."""
        trains, counts = self._take(task)
        if self._committee is not None:
            return self._fit_committee(self._committee, task, trains, counts)
        if self._scaling.is_due(trains, self._refits):
            self._rescale(trains)
        if self.config.learner == "psvm":
            return self._fit_tubes(task, trains)
        machine = self._advance(task, counts[0], trains)
        machine.set_penalties(self._penalties(task, trains))
        machine.solve()
        return RefitResult(
            freeze=task.freeze,
            model=machine.model(),
            scaling=self._scaling.scaling,
            calibration_scores=machine.observer_values(),
            training_scores=machine.training_values(),
            banks=self._train_banks(task, trains),
        )

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
        }
        if self._machine is not None:  # a P-SVM is solved anew each time
            machine = self._machine.state()
            own["machine"] = machine.header
            parts |= nest("machine", machine.arrays)
        if self._committee is not None:
            committee = self._committee.state()
            own["committee"] = committee.header
            parts |= nest("committee", committee.arrays)
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
        scaling = WindowScaling(config, fitted, own["gamma"], own["fitted_on"])
        learner._scaling = scaling
        if "machine" in own:
            kind = FoldMachines if config.split == "crossfit" else RollingMachine
            learner._machine = kind.from_state(State(own["machine"], under("machine", parts)))
        if config.members:
            committee = State(own["committee"], under("committee", parts))
            window = Window(scaling.transform(held.rows), NO_CODES, held.trains)
            learner._committee = Committee.from_state(committee, config, window, learner._n_classes)
        return learner

    def _begin_anew(self) -> None:
        """Give up machines that learned an example with a label that it no longer has."""
        self._machine = None
        if self._committee is not None:
            self._committee.begin_anew()

    def _rescale(self, trains: Bools) -> None:
        """Fit the scaling and gamma on T; the kernel is computed anew."""
        self._scaling.fit(self._held.rows, trains)
        self._machine = None

    def _take(self, task: RefitTask) -> tuple[Bools, Counts]:
        """Hold the examples of a task; return which of them are in T, and what became of others."""
        self._refits += 1
        taken = self._held.take(task)
        if task.relabelled:
            self._begin_anew()
        return taken

    def _fit_committee(
        self, committee: Committee, task: RefitTask, trains: Bools, counts: Counts
    ) -> RefitResult:
        """Fit the committee on T, and score every available example by it."""
        forgotten, left, held = counts
        # 1. The machines as they are score the new rows of T.
        new = self._held.rows[held:][trains[held:]]
        committee.foresee(self._scaling.transform(new), left, task.n_classes)
        # 2. They learn them.
        if self._scaling.is_due(trains, self._refits):
            self._rescale(trains)
            committee.begin_anew()
        window = Window(self._scaling.transform(self._held.rows), task.codes, trains)
        committee.advance(window, forgotten, self._penalties(task, trains), self._scaling.gamma)
        self._n_classes = task.n_classes
        banks = self._train_banks(task, trains)
        # 3. Sigmoids and stack are frozen with them.
        model, calibration, training = committee.fitted(window)
        scaling = self._scaling.scaling
        return RefitResult(task.freeze, model, scaling, calibration, training, banks)

    def _fit_tubes(self, task: RefitTask, trains: Bools) -> RefitResult:
        """Fit a P-SVM on T, from nothing, and score every available example by it."""
        assert task.probs is not None
        X = self._scaling.transform(self._held.rows)
        signs = np.where(task.codes < 0, 0.0, 2.0 * task.codes - 1.0)
        prices = np.append(self._penalties(task, trains), self.config.C_prob)[task.codes]
        model = fit_tubes(
            self._scaling.kernel, X[trains], signs[trains], task.probs[trains], prices[trains],
            self.config.eta, STRICTNESS * TOLERANCE,
        )  # fmt: skip
        scores = model.scores(X)
        return RefitResult(
            freeze=task.freeze,
            model=model,
            scaling=self._scaling.scaling,
            calibration_scores=scores[~trains],
            training_scores=scores[trains],
            banks=self._train_banks(task, trains),
        )

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
