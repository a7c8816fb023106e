"""ProximalMachine: linear support vector machines that learn a stream in bounded memory.

The machine holds some training points, the newest ones, and a vector r of all that came before.
Its weights are at all times the solution of

    minimise over w   1/2 |w - r|^2 + sum_i C_i max(0, 1 - y_i w.x_i)    (i: the points held),

the linear machine of the points held that stays close to r instead of to zero. In the dual
w = r + sum_i alpha_i y_i x_i with 0 <= alpha_i <= C_i; when a point leaves, its term of the sum is
added to r and never changes again. So no point is forgotten with the window, and one step costs
the same however many there were. For each point that leaves, what is in r already fades by a
constant factor, so that a stream that drifts is followed; with the factor 1 it stays for good.

A last feature of constant value 1 carries the intercept, which is therefore regularised as the
other weights are.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np

from online_svm.svm.linear.coordinate_ascent import ascend
from online_svm.svm.linear.feature_maps import product
from online_svm.types import Arrays, Floats, Ints

# Full passes over the points held, each followed by at most SWEEPS passes over those that it moved.
ROUNDS, SWEEPS = 5, 20


class ProximalMachine:
    """One linear machine for two classes (positive means class 1), else one a class.

    Parameters
    ----------
    n_classes : int
    n_features : int
        Of the points, without the constant one.
    tol : float
        A round that finds no larger violation of optimality is the last one.
    fading : float
        What r counts for after a point has left, in (0, 1].
    rounds : int
        Limit on the rounds of one `solve`.

    Examples
    --------
    >>> machine = ProximalMachine(2, 1, rounds=1000, tol=1e-9)
    >>> machine.extend(np.array([[-2.0], [-1.0], [1.0], [3.0]]), np.array([0, 0, 1, 1]))
    >>> machine.solve([10.0, 10.0]).round(6) + 0.0
    array([[1., 0.]])
    """

    def __init__(
        self,
        n_classes: int,
        n_features: int,
        tol: float = 1e-3,
        fading: float = 1.0,
        rounds: int = ROUNDS,
    ) -> None:
        self.n_classes = n_classes
        self.tol = tol
        self.fading = fading
        self.rounds = rounds
        self._past = np.zeros((self.n_machines, n_features + 1))
        self._points = np.empty((0, n_features + 1))
        self._codes: Ints = np.empty(0, dtype=np.int64)
        self._alpha = np.empty((self.n_machines, 0))

    @property
    def n_machines(self) -> int:
        """S: one machine for two classes, else one a class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def codes(self) -> Ints:
        """Classes of the points held, oldest first."""
        return self._codes

    def __len__(self) -> int:
        return len(self._codes)

    def extend(self, X: Floats, codes: Ints) -> None:
        """Add training points, shape (m, n_features), and their classes; `solve` learns them."""
        self._points = np.concatenate([self._points, _with_constant(X)])
        self._codes = np.concatenate([self._codes, codes])
        self._alpha = np.concatenate([self._alpha, np.zeros((self.n_machines, len(X)))], axis=1)

    def release(self, count: int, steps: int | None = None) -> None:
        """Let the oldest `count` points leave; what they taught stays, and the past fades.

        Parameters
        ----------
        count : int
        steps : int, optional
            Points of the stream that left, where not all of them were training points.
        """
        fade = self.fading ** (count if steps is None else steps)
        terms = self._alpha[:, :count] * self._signs()[:, :count]
        self._past = fade * self._past + product(terms, self._points[:count])
        self._points, self._codes = self._points[count:], self._codes[count:]
        self._alpha = self._alpha[:, count:]

    def solve(self, penalties: Sequence[float] | Floats) -> Floats:
        """Return the weights with the intercept last, shape (S, n_features + 1).

        Parameters
        ----------
        penalties : sequence of float, one a class
            C_i of the points of each class.
        """
        upper = np.asarray(penalties, dtype=np.float64)[self._codes]
        signs = self._signs()
        alpha = np.minimum(self._alpha, upper)
        weights = self._past + product(alpha * signs, self._points)
        for s in range(self.n_machines):
            if not self._past[s].any() and len(np.unique(signs[s])) < 2:
                alpha[s], weights[s] = 0.0, 0.0
                weights[s, -1] = 1.0 if (signs[s] > 0.0).any() else -1.0
            else:
                ascend(
                    self._points, signs[s], upper, alpha[s], weights[s],
                    self.rounds, SWEEPS, self.tol,
                )  # fmt: skip
        self._alpha = alpha
        return weights

    def state(self) -> Arrays:
        """Return the state; the points are left out, since they are features of rows kept."""
        return {"past": self._past, "alpha": self._alpha, "codes": self._codes}

    @classmethod
    def from_state(
        cls, state: Arrays, X: Floats, n_classes: int, tol: float = 1e-3, fading: float = 1.0
    ) -> Self:
        """Return the machine that `state` describes, which held the points X, (n, n_features)."""
        machine = cls(n_classes, X.shape[1], tol, fading)
        machine._past, machine._alpha = state["past"], state["alpha"]
        machine._codes, machine._points = state["codes"], _with_constant(X)
        return machine

    def _signs(self) -> Floats:
        """Return the target of each machine for each point held, shape (S, n)."""
        positive = [1] if self.n_classes == 2 else range(self.n_classes)
        return np.where(self._codes == np.array(positive)[:, np.newaxis], 1.0, -1.0)


def _with_constant(X: Floats) -> Floats:
    return np.concatenate([X, np.ones((len(X), 1))], axis=1)
