"""Committee: the members over one window, and their progressive scores of its training examples.

A refit makes these calls, in this order:

    committee.score_new(X, ...)     the machines of the last refit score the new rows of T
    committee.restart()             only after a new scaling: drop the machines
    committee.fit(window, ...)      update the examples and solve each machine; fit sigmoids and
                                    stack to the progressive scores

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
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats
from online_svm.svm.exact.rolling_machine import TOLERANCE, RollingMachine
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Arrays, Bools, Floats, Ints

INTERCEPT_RIDGE = 0.1
# A fit starts from the last solution, so a few steps suffice: twenty steps and a tenth of the
# tolerance changed the log loss on streams of 9, 108 and 300 features by at most .0004, and took up
# to 1.7 times as long.
MAX_NEWTON_STEPS = 4
GRADIENT_TOLERANCE = 1e-2  # on each entry of the gradient, a sum over the examples


@dataclass(frozen=True, slots=True)
class Member:
    """An SVM with an rbf kernel, boosted trees, or a ridge logistic regression."""

    kind: Literal["rbf", "trees", "logistic"]
    C: float = 1.0  # factor of the setting C
    gamma: float = 1.0  # factor of the setting gamma


# C and gamma of "rbf" were chosen by the log loss of the primary prediction on streams of 3,000
# examples (train_fraction .8). Mean of thirteen streams: (C, gamma) = (3, 2) .2973, "rbf-narrow"
# .2977, "rbf-wide" .2977, the last two together .2976 in 1.6 times the time. Mean of twelve
# streams: (3, 2) .2939; (1, 2) .2930, and it is solved faster.
MEMBERS: dict[MemberName, Member] = {
    "rbf": Member("rbf", gamma=2.0),
    "rbf-wide": Member("rbf", C=10.0),
    "rbf-narrow": Member("rbf", gamma=3.0),
    "trees": Member("trees"),
    "logistic": Member("logistic"),
}


class LogisticMachine(StoredArrays):
    """One logistic regression for two classes (positive means class 1), else one a class.

    It minimises 1/2 |w|^2 + sum_i C_i log(1 + exp(-y_i f(x_i))), f(x) = w.x + b, with a weak
    penalty on b: without it, there would be no minimum for examples of one class.

    `weights`, shape (S, n_features + 1): the intercept is last.
    """

    _stored = StateSchema(floats("weights"))

    def __init__(self, n_classes: int, n_features: int) -> None:
        self.weights: Floats = np.zeros((1 if n_classes == 2 else n_classes, n_features + 1))

    def fit(self, X: Floats, codes: Ints, penalties: Floats) -> None:
        """Fit on the rows of X, shape (n, n_features), starting from the last solution.

        `penalties`, shape (n_classes,): C_i of the examples of each class.
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

    def model(self) -> KernelModel:
        """Return the regressions as a scorer: each is one vector of a linear kernel."""
        # A copy: the next fit changes the weights while this model may still answer.
        vectors, intercept = self.weights[:, :-1].copy(), self.weights[:, -1]
        return KernelModel.build(Kernel("linear"), vectors, np.eye(len(vectors)), intercept)


SIGMOID_EXAMPLES = 2000  # sigmoids are fitted on those of the newest so many that are in T
STACK_EXAMPLES = 1000  # likewise the stack weights
CACHE_MB = 200.0  # for kernel rows of all members

Machine = RollingMachine | TreeMachine | LogisticMachine


class Window(NamedTuple):
    """The available examples."""

    X: Floats  # shape (n, n_features); scaled rows
    codes: Ints  # shape (n,)
    trains: Bools  # shape (n,); whether each example is in T
    freeze: int  # number after the last example
    # Shape (n_features,); category number of each column, ascending; -1 for a number. None if all
    # are numbers.
    categories: Ints | None = None


class Committee:
    """The machines of a committee, and their progressive scores; `config` must have members."""

    def __init__(self, config: PredictorConfig) -> None:
        self.config = config
        self._members: list[Member] = [MEMBERS[name] for name in config.members]
        self._machines: list[Machine] = []
        self._models: tuple[Scorer, ...] = ()  # built from the machines on demand
        self._stack: Stack | None = None  # of the last refit
        self._n_classes = 0
        # Progressive scores of each row of T, in order; NaN if no machine scored it.
        self._progressive: Floats = np.empty((0, len(self._members), 1))

    def model(self) -> CommitteeModel | None:
        """Return the model of the last refit; None after its machines were dropped."""
        if not self._machines or self._stack is None:
            return None
        return CommitteeModel(self._scorers(), self._stack)

    def score_new(self, X: Floats, departed: int, n_classes: int) -> Floats:
        """Return the progressive scores of the new rows of T, shape (m, M, S).

        The machines of the last refit have not learned these rows; the scores are NaN if there are
        no machines.

        `X`, shape (m, n_features): the rows under the scaling of that refit.
        `departed`: number of rows of the last T that have left the window.
        `n_classes`: a change drops all scores and machines.
        """
        kept = self._progressive[departed:]
        if n_classes != self._n_classes:
            self._n_classes = n_classes
            self.restart()
            kept = np.full((len(kept), len(self._members), _decisions(n_classes)), np.nan)
        scores = np.full((len(X), *kept.shape[1:]), np.nan)
        if self._machines and len(X):
            scores = member_scores(self._scorers(), X)
        self._progressive = np.concatenate([kept, scores])
        return scores

    def restart(self) -> None:
        """Drop the machines, but not the progressive scores."""
        self._machines, self._models = [], ()

    def fit(self, window: Window, forgotten: int, penalties: Floats, gamma: float) -> Fitted:
        """Return the model of all members, solved over the rows of T, and its scores.

        `forgotten`: number of examples of the last window that have left.
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
            member_penalties = member.C * penalties
            if isinstance(machine, LogisticMachine):
                machine.fit(X, codes, member_penalties)
            elif isinstance(machine, TreeMachine):
                machine.fit(X, codes, member_penalties, window.freeze)
            else:
                machine.forget(min(forgotten, len(machine)))
                new = slice(len(machine), None)
                machine.extend(window.X[new], window.codes[new], training=window.trains[new])
                machine.set_penalties(member_penalties)
                machine.solve()

    def _stacked(self, window: Window) -> Fitted:
        """Return the model of all members with sigmoids and stack, and its scores."""
        # 1. Scores of the members: progressive scores in T, present ones if there is none.
        models = self._scorers()
        calibration = self._scores(models, window.X[~window.trains], is_training=False)
        training = self._progressive.copy()
        unscored = np.isnan(self._progressive[:, 0, 0])
        if unscored.any():
            own = self._scores(models, window.X[window.trains], is_training=True)
            training[unscored] = own[unscored]
        # 2. Sigmoids and weights, fitted to the progressive scores of the newest examples.
        age = len(window.X) - np.flatnonzero(window.trains)
        taken = ~unscored & (age <= SIGMOID_EXAMPLES)
        codes = window.codes[window.trains][taken]
        stack = Stack.fit(self._progressive[taken], codes, age[taken] <= STACK_EXAMPLES)
        self._stack = stack
        # 3. Stacked scores of the examples.
        return Fitted(
            CommitteeModel(models, stack), stack.apply(calibration), stack.apply(training)
        )

    def state(self) -> State:
        """Return header and arrays, without the rows, which the learner stores.

        Arrays of a machine are prefixed with the number of its member.
        """
        arrays: Arrays = {"foreseen": self._progressive}
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
        committee._progressive = np.ascontiguousarray(arrays["foreseen"])
        if config.varies_from is not None:
            committee._stack = Stack.from_state(under("stack", arrays))
        X, trains = window.X, window.trains
        points = np.concatenate([X[trains], X[~trains]])  # the order of `RollingMachine.state`
        for m, member in enumerate(committee._members):
            own, parts = header["machines"][m], under(str(m), arrays)
            if member.kind == "logistic":
                machine: Machine = LogisticMachine(n_classes, X.shape[1]).restore(parts)
            elif member.kind == "trees":
                machine = TreeMachine(n_classes, config.seed, window.categories).restore(parts)
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

    def _scorers(self) -> tuple[Scorer, ...]:
        if not self._models:
            self._models = tuple(machine.model() for machine in self._machines)
        return self._models

    def _scores(self, models: tuple[Scorer, ...], X: Floats, *, is_training: bool) -> Floats:
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
