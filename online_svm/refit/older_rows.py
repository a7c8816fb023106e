"""Would rows older than the window help? A logistic regression on both tells, at little cost.

Every thousand labelled examples, later every fifth of them, two ridge logistic regressions are
fitted: on the last `window` rows, and on the last ten windows of them. Both then predict the next
thousand rows before either has learned them. Their losses differ by block of 250 rows; the mean
difference, in standard errors of these, says whether older rows help, or harm because things
change. The machines of the predictor take no part in it.

Columns are coded and scaled anew when the rows have doubled; until then a fit goes on from the
last. A fit is of Newton steps by numpy: its figures are for people, and no answer depends on them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.refit.coding import Coding
from online_svm.refit.scaling import Scaling
from online_svm.stream.cells import widened
from online_svm.stream.tail import Tail
from online_svm.types import Floats, Ints

WINDOWS = 10
"""Windows of rows that are held, and that the longer regression learns."""

EVERY = 1000
"""Labelled examples between two fits, at least; and how many are predicted after one, at most."""

GROWTH = 5
"""One in so many of the examples so far lies between two fits, where that is more."""

BLOCK = 250
LEAST_BLOCKS = 4

STEPS = 6  # of Newton, at most
ENOUGH = 1e-3  # a step that moves no weight further is the last one

MOST_PRODUCTS = 500 * 500
"""Columns times columns times regressions, at most: beyond, a step would take too long."""

CLIP = 1e-6


class OlderRows(NamedTuple):
    """What older rows did for a logistic regression.

    Attributes
    ----------
    window : int
    most : int
        Rows that the longer one learned, at most.
    is_all : bool
        Whether that was every row so far.
    window_loss, older_loss : float
        Mean log loss of an example with the window, and with the older rows too.
    errors : float
        The first less the second, in standard errors: above zero older rows help.
    blocks : int
        Of `BLOCK` examples, over which both were compared.
    """

    window: int
    most: int
    is_all: bool
    window_loss: float
    older_loss: float
    errors: float
    blocks: int


class OlderRowsCheck:
    """Compares the window with longer memory, example by example.

    Parameters
    ----------
    config : PredictorConfig
        With a window.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 20))
    >>> labels = np.where(X[:, 0] + rng.normal(size=3000) > 0.0, "yes", "no").tolist()
    >>> check = OlderRowsCheck(PredictorConfig(window=200))
    >>> check.learn(X, labels, is_named=False)
    >>> found = check.result()
    >>> found.errors > 2.0, found.is_all, found.blocks
    (True, False, 8)
    """

    def __init__(self, config: PredictorConfig) -> None:
        assert config.window is not None
        self._config, self._window = config, config.window
        self._most = max(WINDOWS * config.window, BLOCK)  # a block is held until it is scored
        self._rows = Tail(np.empty((0, 0)))
        self._codes = Tail(np.empty(0, dtype=np.int64))
        self._code_of: dict[str, int] = {}
        self._due = max(EVERY, self._window + self._window // 2)
        self._fitted: _Fitted | None = None
        self._base: _Base | None = None
        self._losses: list[tuple[float, float]] = []  # of a block: with the window, with all

    def learn(self, X: Floats, labels: Sequence[str], *, is_named: bool) -> None:
        """Take the next labelled examples.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
            With more columns than before where features became known; these were gaps.
        labels : sequence of str, length m
        is_named : bool
            Whether the rows are cells of named features.
        """
        codes = [self._code_of.setdefault(label, len(self._code_of)) for label in labels]
        if self._rows.held.shape[1] < X.shape[1]:
            self._rows = Tail(widened(self._rows.held, X.shape[1]), self._rows.first)
        begin = 0
        while begin < len(X):
            stop = min(len(X), begin + self._next_stop() - self._rows.stop)
            self._rows.append(widened(X[begin:stop], self._rows.held.shape[1]))
            self._codes.append(np.array(codes[begin:stop], dtype=np.int64))
            self._rows.drop_before(self._rows.stop - self._most)
            self._codes.drop_before(self._rows.first)
            self._follow(is_named)
            begin = stop

    def result(self) -> OlderRows | None:
        """Return what was found; None where too few examples came to say."""
        losses = np.array(self._losses)
        if len(losses) < LEAST_BLOCKS:
            return None
        gains = losses[:, 0] - losses[:, 1]
        error = float(gains.std(ddof=1)) / len(gains) ** 0.5
        if not error > 0.0:
            return None
        window_loss, older_loss = losses.mean(axis=0).tolist()
        is_all = self._rows.stop <= self._most
        errors = float(gains.mean()) / error
        return OlderRows(
            self._window, self._most, is_all, window_loss, older_loss, errors, len(losses)
        )  # fmt: skip

    def _next_stop(self) -> int:
        """Return the number of examples at which there is something to do."""
        return self._due if self._fitted is None else self._fitted.block + BLOCK

    def _follow(self, is_named: bool) -> None:
        """Score a block that is whole; fit anew where that is due."""
        n, fitted = self._rows.stop, self._fitted
        if fitted is not None and n == fitted.block + BLOCK:
            X, codes = self._rows.since(n - BLOCK), self._codes.since(n - BLOCK)
            self._losses.append(fitted.base.losses(X, codes))
            is_done = n >= fitted.stop
            self._fitted = None if is_done else fitted._replace(block=n)
        if self._fitted is None and n >= self._due:
            self._fit(is_named)

    def _fit(self, is_named: bool) -> None:
        """Fit both regressions on the rows so far, and plan the next fit."""
        n, rows, codes = self._rows.stop, self._rows.held, self._codes.held
        base = self._base
        n_classes = max(2, len(self._code_of))
        if base is None or n >= 2 * base.n or n_classes > base.n_classes:
            coding = None
            if is_named:
                config = self._config
                coding = Coding.fit(rows, config.max_categories, config.declared_kinds)
            base = self._base = _Base.of(
                n, n_classes, Scaling.fit(rows, standard=True, coding=coding)
            )
        self._due = n + max(EVERY, n // GROWTH)
        if base.older.size * base.older.shape[1] > MOST_PRODUCTS:
            return
        scaled = base.scaled(rows)
        for weights, size in ((base.window, self._window), (base.older, len(rows))):
            for k, of_class in enumerate(weights, start=len(weights) == 1):
                targets = (codes[-size:] == k).astype(np.float64)
                _fit(scaled[-size:], targets, self._config.C, of_class)
        self._fitted = _Fitted(base, n, n + EVERY)


class _Base(NamedTuple):
    """A scaling that was fitted after n examples, and the weights under it, the intercept last.

    One row of weights for two classes, else one a class.
    """

    n: int
    n_classes: int
    scaling: Scaling
    window: Floats
    older: Floats

    @classmethod
    def of(cls, n: int, n_classes: int, scaling: Scaling) -> "_Base":
        shape = (1 if n_classes == 2 else n_classes, len(scaling.mean) + 1)
        return cls(n, n_classes, scaling, np.zeros(shape), np.zeros(shape))

    def scaled(self, rows: Floats) -> Floats:
        """Return rows scaled, with a last column of ones."""
        return np.hstack([self.scaling.transform(rows), np.ones((len(rows), 1))])

    def losses(self, rows: Floats, codes: Ints) -> tuple[float, float]:
        """Return the mean log loss of rows under each."""
        scaled = self.scaled(rows)
        return _loss(self.window, scaled, codes), _loss(self.older, scaled, codes)


def _fit(X: Floats, targets: Floats, C: float, weights: Floats) -> None:
    """Move weights towards the minimum of C sum_i log(1 + exp(-y_i w.x_i)) + 1/2 |w|^2."""
    value = _objective(X, targets, C, weights)
    for _ in range(STEPS):
        p = _logistic(X @ weights)
        hessian = C * (X.T * (p * (1.0 - p))) @ X + np.eye(len(weights))
        step = np.linalg.solve(hessian, C * X.T @ (p - targets) + weights)
        before = value
        while (value := _objective(X, targets, C, weights - step)) > before:
            step /= 2.0
            if np.abs(step).max() < ENOUGH:
                return
        weights -= step
        if np.abs(step).max() < ENOUGH:
            return


def _objective(X: Floats, targets: Floats, C: float, weights: Floats) -> float:
    scores = X @ weights
    losses = np.logaddexp(0.0, scores) - targets * scores
    return float(C * losses.sum() + weights @ weights / 2.0)


def _logistic(scores: Floats) -> Floats:
    found: Floats = 1.0 / (1.0 + np.exp(-np.clip(scores, -40.0, 40.0)))
    return found


def _loss(weights: Floats, X: Floats, codes: Ints) -> float:
    """Return the mean log loss of rows; a class that was not known costs the most."""
    said = _logistic(X @ weights.T)
    odds = np.hstack([1.0 - said, said]) if said.shape[1] == 1 else said
    known = codes < odds.shape[1]
    of_truth = odds[np.arange(len(odds)), np.where(known, codes, 0)] / odds.sum(axis=1)
    return float(-np.log(np.maximum(np.where(known, of_truth, 0.0), CLIP)).mean())


class _Fitted(NamedTuple):
    """Both regressions, the first example of the next block, and where they are done."""

    base: _Base
    block: int
    stop: int
