"""Committee: the members over one window, and their progressive scores of its training examples.

A refit makes these calls, in this order:

    committee.foresee(X, left, n_classes)   the last machines score the new rows of T
    committee.restart()                     only after a new scaling: drop the machines
    committee.fit(window, ...)              update the examples and solve each machine; fit
                                            sigmoids and stack to the progressive scores

Only labels of T are used, so a model is independent of the calibration set.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.config import PredictorConfig
from online_svm.config.groups import MemberName
from online_svm.refit.committee.boosting import TreeMachine
from online_svm.refit.committee.ridge_logistic import Regression, fit_ridge_logistic
from online_svm.refit.committee.stack import CommitteeModel, Scorer, Stack, member_scores
from online_svm.refit.task import Fitted
from online_svm.storage.state import Header, State, nest, under
from online_svm.svm.exact.rolling_machine import TOLERANCE, RollingMachine
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Arrays, Bools, Floats, Ints

INTERCEPT_RIDGE = 0.1
# A fit starts from the last solution, so a few steps suffice: with twenty, and a tenth of the
# tolerance, the log loss on streams of 9, 108 and 300 features was the same to .0004, at up to 1.7
# times the time.
MAX_NEWTON_STEPS = 4
GRADIENT_TOLERANCE = 1e-2  # gradient tolerance, summed over the examples


@dataclass(frozen=True, slots=True)
class Member:
    """One kind of machine."""

    # A support vector machine with an RBF kernel, boosted trees, or a ridge logistic regression.
    kind: Literal["rbf", "trees", "logistic"]
    C: float = 1.0  # factor of the setting C
    gamma: float = 1.0  # factor of the setting gamma


# C and gamma of the default three minimise the log loss of the primary prediction on streams of
# 3,000 examples (train_fraction .8). Thirteen streams, clipped stack: .2973 with an rbf machine
# (C, gamma) = (3, 2), .2977 with the narrow one instead, .2977 with the wide one, .2976 with both
# at 1.6 times the time. Twelve streams, mixed as now: .2939 with (3, 2), .2930 with (1, 2), which
# is also solved faster.
MEMBERS: dict[MemberName, Member] = {
    "rbf": Member("rbf", gamma=2.0),
    "rbf-wide": Member("rbf", C=10.0),
    "rbf-narrow": Member("rbf", gamma=3.0),
    "trees": Member("trees"),
    "logistic": Member("logistic"),
}


class LogisticMachine:
    """One logistic regression for two classes (positive means class 1), else one a class.

    It minimises 1/2 |w|^2 + sum_i C_i log(1 + exp(-y_i f(x_i))), f(x) = w.x + b, with a weak
    penalty on b: otherwise a training set of one class would have no minimum.

    `weights`, shape (S, n_features + 1): the intercept is last.
    """

    def __init__(self, n_classes: int, n_features: int) -> None:
        self.weights: Floats = np.zeros((1 if n_classes == 2 else n_classes, n_features + 1))

    def fit(self, X: Floats, codes: Ints, penalties: Floats) -> None:
        """Fit on the rows of X, shape (n, n_features), starting from the last fit.

        `penalties`, shape (n_classes,), are the C_i of the examples of each class.
        """
        features = np.ascontiguousarray(np.vstack([X.T, np.ones(len(X))]))
        costs = np.asarray(penalties, dtype=np.float64)[codes]
        ridge = np.ones(len(features))
        ridge[-1] = INTERCEPT_RIDGE
        centre = np.zeros(len(features))
        first = 1 if len(self.weights) == 1 else 0
        for s, weights in enumerate(self.weights):
            targets = (codes == s + first).astype(np.float64)
            problem = Regression(features, targets, costs, centre, ridge)
            fit_ridge_logistic(problem, weights, MAX_NEWTON_STEPS, GRADIENT_TOLERANCE)

    def state(self) -> Arrays:
        """Return the weights."""
        return {"weights": self.weights}

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Return the machine with the weights in `state`."""
        machine = cls.__new__(cls)
        machine.weights = state["weights"].copy()
        return machine

    def model(self) -> KernelModel:
        """Return the regressions as a scorer: each is one vector of a linear kernel."""
        # A copy: the next fit changes the weights while this model may still answer.
        vectors, intercept = self.weights[:, :-1].copy(), self.weights[:, -1]
        return KernelModel.build(Kernel("linear"), vectors, np.eye(len(vectors)), intercept)


SIGMOIDS_FROM = 2000  # newest examples whose scores in T fit the sigmoids
STACK_FROM = 1000  # newest examples whose scores in T fit the stack weights
CACHE_MB = 200.0  # kernel rows of all members

Machine = RollingMachine | TreeMachine | LogisticMachine


class Window(NamedTuple):
    """The available examples."""

    X: Floats  # shape (n, n_features); scaled rows
    codes: Ints  # shape (n,)
    trains: Bools  # shape (n,); whether each example is in T
    freeze: int  # number of the example after the last
    # Shape (n_features,); category number of each column, ascending; -1 for a number. None if all
    # are numbers.
    categories: Ints | None = None


class Committee:
    """The machines of a committee, and their progressive scores.

    `config`: with members.
    """

    def __init__(self, config: PredictorConfig) -> None:
        self.config = config
        self._members: list[Member] = [MEMBERS[name] for name in config.members]
        self._machines: list[Machine] = []
        self._models: tuple[Scorer, ...] = ()  # built from the machines on demand
        self._stack: Stack | None = None  # of the last refit
        self._n_classes = 0
        # Progressive scores of each row of T, in order; NaN if no machine scored it.
        self._foreseen: Floats = np.empty((0, len(self._members), 1))

    def model(self) -> CommitteeModel | None:
        """Return the model of the last refit; None after its machines were dropped."""
        if not self._machines or self._stack is None:
            return None
        return CommitteeModel(self._made(), self._stack)

    def foresee(self, X: Floats, departed: int, n_classes: int) -> Floats:
        """Score the new rows of T by the machines of the last refit, which have not learned them.

        `X`, shape (m, n_features): under the scaling of that refit.
        `departed`: rows of the last T that have left the window.
        `n_classes`: a change drops all scores and machines.
        Returns shape (m, M, S): NaN without machines.
        """
        kept = self._foreseen[departed:]
        if n_classes != self._n_classes:
            self._n_classes = n_classes
            self.restart()
            kept = np.full((len(kept), len(self._members), _decisions(n_classes)), np.nan)
        scores = np.full((len(X), *kept.shape[1:]), np.nan)
        if self._machines and len(X):
            scores = member_scores(self._made(), X)
        self._foreseen = np.concatenate([kept, scores])
        return scores

    def restart(self) -> None:
        """Drop the machines before a new scaling; keep the scores."""
        self._machines, self._models = [], ()

    def fit(self, window: Window, forgotten: int, penalties: Floats, gamma: float) -> Fitted:
        """Return the model of all members, solved over the rows of T, and its scores.

        `forgotten`: examples of the last window that are gone.
        `penalties`, shape (n_classes,): C of each class.
        """
        self._advance(window, forgotten, penalties, gamma)
        return self._stacked(window)

    def _advance(self, window: Window, forgotten: int, penalties: Floats, gamma: float) -> None:
        """Solve every machine over the rows of T."""
        self._models = ()
        if not self._machines:
            self._machines = [self._new_machine(m, window, gamma) for m in self._members]
        X, codes = window.X[window.trains], window.codes[window.trains]
        for member, machine in zip(self._members, self._machines, strict=True):
            own = member.C * penalties
            if isinstance(machine, LogisticMachine):
                machine.fit(X, codes, own)
                continue
            if isinstance(machine, TreeMachine):
                machine.fit(X, codes, own, window.freeze)
                continue
            machine.forget(min(forgotten, len(machine)))
            new = slice(len(machine), None)
            machine.extend(window.X[new], window.codes[new], training=window.trains[new])
            machine.set_penalties(own)
            machine.solve()

    def _stacked(self, window: Window) -> Fitted:
        """Return the model of all members with sigmoids and stack, and its scores."""
        # 1. Present and progressive scores of the members.
        models = self._made()
        calibration = self._values(models, window.X[~window.trains], is_training=False)
        training = self._foreseen.copy()
        unsaid = np.isnan(self._foreseen[:, 0, 0])
        if unsaid.any():
            own = self._values(models, window.X[window.trains], is_training=True)
            training[unsaid] = own[unsaid]
        # 2. Sigmoids and weights, fitted to the progressive scores of the newest examples.
        age = len(window.X) - np.flatnonzero(window.trains)
        taken = ~unsaid & (age <= SIGMOIDS_FROM)
        codes = window.codes[window.trains][taken]
        stack = Stack.fit(self._foreseen[taken], codes, age[taken] <= STACK_FROM)
        self._stack = stack
        # 3. Stacked scores of the examples.
        return Fitted(
            CommitteeModel(models, stack), stack.apply(calibration), stack.apply(training)
        )

    def state(self) -> State:
        """Return header and arrays, without the rows, which the learner stores.

        Arrays of a machine are prefixed with the number of its member.
        """
        arrays: Arrays = {"foreseen": self._foreseen}
        if self._stack is not None and self.config.varies_from is not None:
            arrays |= nest("stack", self._stack.state())
        headers: list[Header] = []
        for m, machine in enumerate(self._machines):
            header: Header = {}
            if isinstance(machine, RollingMachine):
                header, parts = machine.state()
                del parts["X"]
            else:
                parts = machine.state()
            headers.append(header)
            arrays |= nest(str(m), parts)
        return State({"machines": headers}, arrays)

    @classmethod
    def from_state(
        cls, state: State, config: PredictorConfig, window: Window, n_classes: int
    ) -> Self:
        """Return the committee described by `state`; the codes of `window` are not used."""
        header, arrays = state
        committee = cls(config)
        committee._n_classes = n_classes
        committee._foreseen = np.ascontiguousarray(arrays["foreseen"])
        if config.varies_from is not None:
            committee._stack = Stack.from_state(under("stack", arrays))
        X, trains = window.X, window.trains
        points = np.concatenate([X[trains], X[~trains]])  # the order of `RollingMachine.state`
        for m, member in enumerate(committee._members):
            own, parts = header["machines"][m], under(str(m), arrays)
            if member.kind == "logistic":
                machine: Machine = LogisticMachine.from_state(parts)
            elif member.kind == "trees":
                machine = TreeMachine.from_state(parts, n_classes, config.seed, window.categories)
            else:
                machine = RollingMachine.from_state(State(own, parts | {"X": points}))
            committee._machines.append(machine)
        return committee

    def _new_machine(self, member: Member, window: Window, gamma: float) -> Machine:
        config = self.config
        if member.kind == "logistic":
            return LogisticMachine(self._n_classes, window.X.shape[1])
        if member.kind == "trees":
            return TreeMachine(self._n_classes, config.seed, window.categories)
        return RollingMachine(
            Kernel("rbf", member.gamma * gamma),
            np.full(self._n_classes, config.C),
            tol=TOLERANCE,
            window=config.window,
            cache_mb=CACHE_MB / len(config.members),
        )

    def _made(self) -> tuple[Scorer, ...]:
        """Return the machines as scorers: built at a refit, reused by the next `foresee`."""
        if not self._models:
            self._models = tuple(machine.model() for machine in self._machines)
        return self._models

    def _values(self, models: tuple[Scorer, ...], X: Floats, *, is_training: bool) -> Floats:
        """Return scores of stored rows, (n, M, S); the solver caches the scores of SVMs."""
        values = np.empty((len(X), len(models), _decisions(self._n_classes)))
        for m, machine in enumerate(self._machines):
            if not isinstance(machine, RollingMachine):
                values[:, m] = models[m].scores(X)
            elif is_training:
                values[:, m] = machine.training_values()
            else:
                values[:, m] = machine.observer_values()
        return values


def _decisions(n_classes: int) -> int:
    return 1 if n_classes == 2 else n_classes
