"""Committee: the members over one window, and what they said of its training examples before.

A refit goes through these calls, in this order:

    committee.foresee(X, left, n_classes)   the machines as they are score the new rows of T
    committee.begin_anew()                  only where the scaling is fitted anew: new machines
    committee.fit(window, ...)              examples leave and join; each machine at its optimum;
                                            sigmoids and stack of those scores, frozen in a model

No label but those of T is looked at, so a model is independent of the calibration set.
"""

from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.config import PredictorConfig
from online_svm.refit.committee.members import MEMBERS, LogisticMachine, Member
from online_svm.refit.committee.model import CommitteeModel, Scorer, member_scores
from online_svm.refit.committee.stack import Stack
from online_svm.refit.committee.trees import TreeMachine
from online_svm.refit.task import Fitted
from online_svm.storage.arrays import nest, under
from online_svm.storage.state import Header, State
from online_svm.svm.exact.rolling_machine import TOLERANCE, RollingMachine
from online_svm.types import Arrays, Bools, Floats, Ints

SIGMOIDS_FROM = 2000  # the newest examples, of whose scores in T the sigmoids are fitted
STACK_FROM = 1000  # and the weights
CACHE_MB = 200.0  # for the kernel rows of all members

Machine = RollingMachine | TreeMachine | LogisticMachine


class Window(NamedTuple):
    """The available examples.

    Attributes
    ----------
    X : ndarray of shape (n, n_features)
        Scaled rows.
    codes : ndarray of shape (n,)
    trains : ndarray of shape (n,)
        Which are in T.
    freeze : int
        Number of the example after the last.
    categories : ndarray of shape (n_features,), optional
        Number of the category that a column is of, ascending; -1 for a number. None of all numbers.
    """

    X: Floats
    codes: Ints
    trains: Bools
    freeze: int
    categories: Ints | None = None


class Committee:
    """The machines of a committee, and their progressive scores.

    Parameters
    ----------
    config : PredictorConfig
        With members.
    """

    def __init__(self, config: PredictorConfig) -> None:
        self.config = config
        self._members: list[Member] = [MEMBERS[name] for name in config.members]
        self._machines: list[Machine] = []
        self._models: tuple[Scorer, ...] = ()  # of the machines as they are, once made
        self._stack: Stack | None = None  # of the last refit
        self._n_classes = 0
        # Of each row of T, in order; NaN where no machine was there to score it.
        self._foreseen: Floats = np.empty((0, len(self._members), 1))

    def model(self) -> CommitteeModel | None:
        """Return the model of the last refit; None where its machines were given up."""
        if not self._machines or self._stack is None:
            return None
        return CommitteeModel(self._made(), self._stack)

    def foresee(self, X: Floats, departed: int, n_classes: int) -> Floats:
        """Let the machines of the last refit score the new rows of T, before they learn them.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
            Under the scaling of that refit.
        departed : int
            Rows of the last T that have left the window.
        n_classes : int
            Where it is not that of the last refit, all scores and machines are given up.

        Returns
        -------
        ndarray of shape (m, M, S)
            NaN where there are no machines.
        """
        kept = self._foreseen[departed:]
        if n_classes != self._n_classes:
            self._n_classes = n_classes
            self.begin_anew()
            kept = np.full((len(kept), len(self._members), _decisions(n_classes)), np.nan)
        scores = np.full((len(X), *kept.shape[1:]), np.nan)
        if self._machines and len(X):
            scores = member_scores(self._made(), X)
        self._foreseen = np.concatenate([kept, scores])
        return scores

    def begin_anew(self) -> None:
        """Give up the machines, whose rows are scaled otherwise from now on; keep the scores."""
        self._machines, self._models = [], ()

    def fit(self, window: Window, forgotten: int, penalties: Floats, gamma: float) -> Fitted:
        """Return the model of all members, at their optimum over the rows of T, and its scores.

        Parameters
        ----------
        window : Window
        forgotten : int
            Examples of the last window that are gone.
        penalties : ndarray of shape (n_classes,)
            C of each class, by the settings.
        gamma : float
            That of the settings.
        """
        self._advance(window, forgotten, penalties, gamma)
        return self._stacked(window)

    def _advance(self, window: Window, forgotten: int, penalties: Floats, gamma: float) -> None:
        """Bring every machine to its optimum over the rows of T."""
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
        """Return the model of all members with its sigmoids and stack, and its scores."""
        # 1. What the members say of the examples now, and said before they learned them.
        models = self._made()
        calibration = self._values(models, window.X[~window.trains], is_training=False)
        training = self._foreseen.copy()
        unsaid = np.isnan(self._foreseen[:, 0, 0])
        if unsaid.any():
            own = self._values(models, window.X[window.trains], is_training=True)
            training[unsaid] = own[unsaid]
        # 2. Sigmoids and weights of what was said before, of the newest examples.
        age = len(window.X) - np.flatnonzero(window.trains)
        taken = ~unsaid & (age <= SIGMOIDS_FROM)
        codes = window.codes[window.trains][taken]
        stack = Stack.fit(self._foreseen[taken], codes, age[taken] <= STACK_FROM)
        self._stack = stack
        # 3. What it makes of the scores of the examples.
        return Fitted(
            CommitteeModel(models, stack), stack.apply(calibration), stack.apply(training)
        )

    def state(self) -> State:
        """Return header and arrays; the rows are left out, since whoever continues holds them.

        The arrays of a machine are named after the number of its member.
        """
        arrays: Arrays = {"foreseen": self._foreseen}
        if self._stack is not None and self.config.varies_from is not None:
            arrays |= nest("stack", self._stack.state())
        headers: list[Header] = []
        for m, machine in enumerate(self._machines):
            if isinstance(machine, LogisticMachine):
                headers.append({})
                arrays |= nest(str(m), {"weights": machine.weights})
            elif isinstance(machine, TreeMachine):
                headers.append({})
                arrays |= nest(str(m), machine.state())
            else:
                header, parts = machine.state()
                headers.append(header)
                del parts["X"]
                arrays |= nest(str(m), parts)
        return State({"machines": headers}, arrays)

    @classmethod
    def from_state(
        cls,
        state: State,
        config: PredictorConfig,
        window: Window,
        n_classes: int,
    ) -> Self:
        """Return the committee that `state` describes; of the window, the codes are not needed."""
        header, arrays = state
        committee = cls(config)
        committee._n_classes = n_classes
        committee._foreseen = np.ascontiguousarray(arrays["foreseen"])
        if config.varies_from is not None:
            committee._stack = Stack.from_state(under("stack", arrays))
        X, trains = window.X, window.trains
        points = np.concatenate([X[trains], X[~trains]])  # in the order a machine gives its own
        for m, member in enumerate(committee._members):
            own, parts = header["machines"][m], under(str(m), arrays)
            if member.kind == "logistic":
                machine = LogisticMachine(n_classes, X.shape[1])
                machine.weights = parts["weights"].copy()
                committee._machines.append(machine)
            elif member.kind == "trees":
                trees = TreeMachine.from_state(parts, n_classes, config.seed, window.categories)
                committee._machines.append(trees)
            else:
                whole = State(own, parts | {"X": points})
                committee._machines.append(RollingMachine.from_state(whole))
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
        """Return the machines as scorers: made at a refit, and needed once more at the next."""
        if not self._models:
            self._models = tuple(machine.model() for machine in self._machines)
        return self._models

    def _values(self, models: tuple[Scorer, ...], X: Floats, *, is_training: bool) -> Floats:
        """Return the scores of rows held, (n, M, S): the solver has those of its own machines."""
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
