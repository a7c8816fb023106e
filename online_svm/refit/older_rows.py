"""Test whether rows older than the window would help, by two cheap logistic regressions.

Every thousand labelled examples, and later whenever their number has grown by a fifth, two ridge
logistic regressions are fitted: on the last `window` rows, and on the last ten windows. Both
predict the next thousand rows. Their mean loss difference over blocks of 250 rows, in standard
errors, shows whether older rows help, or harm because the stream changes. The predictor's own
machines are not used.

Columns are encoded and scaled again when the rows have doubled; until then each fit starts from the
last solution. The Newton steps use numpy, because no answer depends on these figures.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.refit.feature_encoder import FeatureEncoder
from online_svm.refit.scaling import Scaling
from online_svm.stream.available_examples import SlidingArray
from online_svm.stream.cells import widened
from online_svm.types import Floats, Ints

OLDER_WINDOWS = 10  # number of windows of rows on which the longer regression is fitted

FIT_EVERY = 1000
"""Minimum of labelled examples between two fits, and maximum of predicted examples after a fit."""

FIT_GROWTH_DIVISOR = 5
"""The examples grow from one fit to the next by at least 1 / FIT_GROWTH_DIVISOR."""

BLOCK_EXAMPLES = 250
MIN_BLOCKS_FOR_RESULT = 4

MAX_NEWTON_STEPS = 6
STEP_TOLERANCE = 1e-3  # stop after a step that changes each weight by less

MAX_PRODUCTS = 500 * 500
"""Limit on columns * columns * regressions: beyond it a step takes too long."""

MIN_PROBABILITY = 1e-6


class OlderRows(NamedTuple):
    """Effect of older rows on a logistic regression."""

    window: int
    most: int  # maximum number of rows of the longer regression
    is_all: bool  # whether that covers every row so far
    window_loss: float  # mean log loss of the regression on the window
    older_loss: float  # mean log loss of the longer regression
    errors: float  # loss difference in standard errors; older rows help if it is positive
    blocks: int  # number of compared blocks of `BLOCK_EXAMPLES` examples


class OlderRowsCheck:
    """Compares the window with a longer memory; `config` must have a window.

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
        # At least a block, because its rows are kept until it is scored.
        self._max_rows = max(OLDER_WINDOWS * config.window, BLOCK_EXAMPLES)
        self._rows = SlidingArray(np.empty((0, 0)))
        self._codes = SlidingArray(np.empty(0, dtype=np.int64))
        self._code_of: dict[str, int] = {}
        self._due = max(FIT_EVERY, self._window + self._window // 2)
        self._base: _Base | None = None
        # First example of the next block to score, and the end of the last one; equal if none is.
        self._block = self._stop = 0
        self._losses: list[tuple[float, float]] = []  # by block: with the window, with older rows

    def learn(self, X: Floats, labels: Sequence[str], *, is_named: bool) -> None:
        """Learn the next labelled examples.

        `X`, shape (m, n_features): further columns are new features, missing in earlier rows.
        `labels`, length m.
        `is_named`: whether the rows are cells of named features.
        """
        codes = [self._code_of.setdefault(label, len(self._code_of)) for label in labels]
        if self._rows.held.shape[1] < X.shape[1]:
            self._rows = SlidingArray(widened(self._rows.held, X.shape[1]), self._rows.first)
        begin = 0
        while begin < len(X):
            stop = min(len(X), begin + self._next_stop() - self._rows.stop)
            self._rows.append(widened(X[begin:stop], self._rows.held.shape[1]))
            self._codes.append(np.array(codes[begin:stop], dtype=np.int64))
            self._rows.drop_before(self._rows.stop - self._max_rows)
            self._codes.drop_before(self._rows.first)
            self._score_and_fit(is_named)
            begin = stop

    def result(self) -> OlderRows | None:
        """Return the comparison; None after too few examples."""
        losses = np.array(self._losses)
        if len(losses) < MIN_BLOCKS_FOR_RESULT:
            return None
        gains = losses[:, 0] - losses[:, 1]
        error = float(gains.std(ddof=1)) / len(gains) ** 0.5
        if not error > 0.0:
            return None
        window_loss, older_loss = losses.mean(axis=0).tolist()
        return OlderRows(
            window=self._window, most=self._max_rows, is_all=self._rows.stop <= self._max_rows,
            window_loss=window_loss, older_loss=older_loss, errors=float(gains.mean()) / error,
            blocks=len(losses),
        )  # fmt: skip

    def _next_stop(self) -> int:
        """Return the number of examples at which a score or a fit is due."""
        return self._block + BLOCK_EXAMPLES if self._block < self._stop else self._due

    def _score_and_fit(self, is_named: bool) -> None:
        """Score a complete block; fit again if due."""
        n = self._rows.stop
        if self._base is not None and self._block < self._stop and n == self._next_stop():
            X, codes = self._rows.since(n - BLOCK_EXAMPLES), self._codes.since(n - BLOCK_EXAMPLES)
            self._losses.append(self._base.losses(X, codes))
            self._block = n
        if self._block >= self._stop and n >= self._due:
            self._fit(is_named)

    def _fit(self, is_named: bool) -> None:
        """Fit both regressions on the stored rows, and schedule the next fit."""
        n, rows, codes = self._rows.stop, self._rows.held, self._codes.held
        base = self._base
        n_classes = max(2, len(self._code_of))
        if base is None or n >= 2 * base.n or n_classes > base.n_classes:
            encoder = None
            if is_named:
                config = self._config
                encoder = FeatureEncoder.fit(rows, config.declared_kinds)
            base = self._base = _Base.of(
                n, n_classes, Scaling.fit(rows, standard=True, encoder=encoder)
            )
        self._due = n + max(FIT_EVERY, n // FIT_GROWTH_DIVISOR)
        if base.older.size * base.older.shape[1] > MAX_PRODUCTS:
            return
        scaled = base.scaled(rows)
        for weights, size in ((base.window, self._window), (base.older, len(rows))):
            for k, of_class in enumerate(weights, start=len(weights) == 1):
                targets = (codes[-size:] == k).astype(np.float64)
                _fit(scaled[-size:], targets, self._config.C, of_class)
        self._block, self._stop = n, n + FIT_EVERY


class _Base(NamedTuple):
    """A scaling fitted after n examples, and the weights under it, the intercept last.

    Two classes have one row of weights; more classes have one row each.
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
        """Return scaled rows with a last column of ones."""
        return np.hstack([self.scaling.transform(rows), np.ones((len(rows), 1))])

    def losses(self, rows: Floats, codes: Ints) -> tuple[float, float]:
        """Return the mean log loss of rows under both regressions."""
        scaled = self.scaled(rows)
        return _loss(self.window, scaled, codes), _loss(self.older, scaled, codes)


def _fit(X: Floats, targets: Floats, C: float, weights: Floats) -> None:
    """Minimise C sum_i log(1 + exp(-y_i w.x_i)) + 1/2 |w|^2 from the present weights."""
    value = _objective(X, targets, C, weights)
    for _ in range(MAX_NEWTON_STEPS):
        p = _logistic(X @ weights)
        hessian = C * (X.T * (p * (1.0 - p))) @ X + np.eye(len(weights))
        step = np.linalg.solve(hessian, C * X.T @ (p - targets) + weights)
        before = value
        while (value := _objective(X, targets, C, weights - step)) > before:
            step /= 2.0
            if np.abs(step).max() < STEP_TOLERANCE:
                return
        weights -= step
        if np.abs(step).max() < STEP_TOLERANCE:
            return


def _objective(X: Floats, targets: Floats, C: float, weights: Floats) -> float:
    scores = X @ weights
    losses = np.logaddexp(0.0, scores) - targets * scores
    return float(C * losses.sum() + weights @ weights / 2.0)


def _logistic(scores: Floats) -> Floats:
    found: Floats = 1.0 / (1.0 + np.exp(-np.clip(scores, -40.0, 40.0)))
    return found


def _loss(weights: Floats, X: Floats, codes: Ints) -> float:
    """Return the mean log loss of rows; the probability of an unknown class is clipped from 0."""
    p = _logistic(X @ weights.T)
    odds = np.hstack([1.0 - p, p]) if p.shape[1] == 1 else p
    known = codes < odds.shape[1]
    of_truth = odds[np.arange(len(odds)), np.where(known, codes, 0)] / odds.sum(axis=1)
    return float(-np.log(np.maximum(np.where(known, of_truth, 0.0), MIN_PROBABILITY)).mean())
