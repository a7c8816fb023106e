"""Simple experts: the base rate of each class, and two logistic regressions.

They are ready with the first labels, long before a committee is, and keep their weight in the
ensemble while they are better. The regressions are fitted to the newest examples when 4, 5, 6, 8,
10, 12, 16, ... are learned (4, 5 and 6 times each power of two), and from 512 on at each doubling:
to `FirstExamples` until a model holds as many.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.predictor.expert import Expert, RowsToLearn
from online_svm.predictor.recent_stacks import MAX_FEATURES
from online_svm.refit.committee.ridge_logistic import Regression, fit_ridge_logistic
from online_svm.refit.feature_encoder import FeatureEncoder
from online_svm.refit.scaling import Scaling
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, ints, record
from online_svm.stream.cells import stacked, widened
from online_svm.types import Floats, Ints

PENALTIES = (10.0, 1.0)
"""Strength of the quadratic penalty of each regression, on standardised features."""

INTERCEPT_PENALTY = 0.1

BASE_RATE = "base-rate"

N_EXPERTS = 1 + len(PENALTIES)

LARGEST_VALUE = 5.0
"""Standardised features are clipped at this size: a regression must not extrapolate."""

LARGEST_INPUT = 1e100  # its square is finite

MAX_FIT_ROWS, MAX_FIT_CELLS = 1000, 60_000
"""Bounds of a fit: it takes the newest rows up to both, but at least 50."""

DOUBLINGS_FROM = 512
"""Number of learned examples from which regressions are fitted only at its doublings."""

FIT_STEPS, FIT_TOLERANCE = 6, 0.1


def next_fit(n: int) -> int:
    """Return the smallest number of learned examples above `n` at which regressions are fitted.

    >>> [next_fit(n) for n in (0, 4, 6, 8, 13, 512)]
    [4, 5, 8, 10, 16, 1024]
    """
    if n >= DOUBLINGS_FROM:
        return DOUBLINGS_FROM << (n // DOUBLINGS_FROM).bit_length()
    power = 1
    while 6 * power <= n:
        power *= 2
    return next(factor * power for factor in (4, 5, 6) if factor * power > n)


class Regressions(NamedTuple):
    """The fitted regressions: one decision for two classes, else one a class against the rest."""

    weights: Floats  # shape (len(PENALTIES), n_decisions, n_columns + 1); the last is the intercept
    fitted: Ints  # shape (n_fitted,); class columns that were fitted, ascending


class SimpleExperts(Expert):
    """Base rate and logistic regressions of a stream with `n_classes` classes."""

    outputs = (BASE_RATE, *(f"regression-{penalty:g}" for penalty in PENALTIES))
    _stored = StateSchema(
        floats("_counts", least=0.0), floats("_regressions.weights", f"{len(PENALTIES)} s p"),
        ints("_regressions.fitted", "f", below="._n_classes"),
        record("_scaling", of=Scaling, optional=True),
    )  # fmt: skip

    def __init__(self, n_classes: int) -> None:
        self._n_classes = n_classes
        self._counts = np.zeros(n_classes)
        self._scaling: Scaling | None = None
        self._regressions = _unfitted()

    def fit(self, X: Floats, columns: Ints, scaling: Scaling) -> None:
        """Fit the regressions to labelled rows; without two classes, they give base rates."""
        fitted = np.unique(columns)
        self._scaling, before = scaling, self._regressions
        if len(fitted) < 2:
            self._regressions = _unfitted()
            return
        last = slice(-max_fit_rows(len(scaling.mean)), None)
        columns, rows = columns[last], self._scaled(X[last])
        features = np.ascontiguousarray(np.vstack([rows.T, np.ones(len(rows))]))
        decisions = fitted[1:] if len(fitted) == 2 else fitted
        weights = np.zeros((len(PENALTIES), len(decisions), len(features)))
        if weights.shape == before.weights.shape and np.array_equal(fitted, before.fitted):
            weights[:] = before.weights
        for penalty, of_decisions in zip(PENALTIES, weights, strict=True):
            for column, own in zip(decisions.tolist(), of_decisions, strict=True):
                _fit(features, columns == column, penalty, own)
        self._regressions = Regressions(weights, fitted)

    def scales_like(self, scaling: Scaling) -> bool:
        """Return whether the regressions take rows scaled by `scaling`."""
        ours = {} if self._scaling is None else self._scaling.state()
        theirs = scaling.state()
        return ours.keys() == theirs.keys() and all(
            np.array_equal(part, theirs[name], equal_nan=part.dtype.kind == "f")
            for name, part in ours.items()
        )

    def answer(self, rows: RowsToLearn, _before: Mapping[str, Floats]) -> Sequence[Floats]:
        """Return the answers to rows in order; a label is counted after its answer."""
        if not len(self._regressions.fitted):
            scaled = np.empty((len(rows.X), 0))
        else:
            scaled = self._scaled(rows.X) if rows.scaled is None else _clipped(rows.scaled)
        planes = np.empty((N_EXPERTS, len(rows.X), len(self._counts)))
        _answer(self._counts, scaled, self._regressions, rows.columns, planes)
        return list(planes)

    def moved(self, places: Sequence[int], n_classes: int) -> "SimpleExperts":
        """Return the experts of other classes; the regressions are to be fitted again."""
        other = SimpleExperts(n_classes)
        np.add.at(other._counts, np.array(places, dtype=np.int64), self._counts)
        return other

    def _on_restored(self) -> None:
        (weights, fitted), scaling = self._regressions, self._scaling
        require(bool((np.diff(fitted) > 0).all()) and len(fitted) != 1, "fitted")
        require(weights.shape[1] == (1 if len(fitted) <= 2 else len(fitted)), "weights")
        width = -1 if scaling is None else len(scaling.mean)
        require(weights.shape[2] == width + 1 if len(fitted) else weights.shape[2] >= 1, "scaling")

    def _scaled(self, X: Floats) -> Floats:
        assert self._scaling is not None
        return _clipped(self._scaling.transform(bounded(X, self._scaling.encoder)))


def max_fit_rows(width: int) -> int:
    """Return the maximum number of examples of a fit of rows of this width."""
    return min(MAX_FIT_ROWS, max(50, MAX_FIT_CELLS // max(1, width)))


def bounded(X: Floats, encoder: FeatureEncoder | None) -> Floats:
    """Return rows without names, cut at a size whose square is finite; others as they are."""
    return X if encoder is not None else np.clip(X, -LARGEST_INPUT, LARGEST_INPUT)


def _unfitted() -> Regressions:
    return Regressions(np.zeros((len(PENALTIES), 1, 1)), np.empty(0, dtype=np.int64))


def _clipped(rows: Floats) -> Floats:
    return np.minimum(np.maximum(rows, -LARGEST_VALUE), LARGEST_VALUE)


def _fit(features: Floats, hits: Ints, penalty: float, weights: Floats) -> None:
    """Fit one decision in place, from the given weights."""
    p, n = features.shape
    ridge = np.full(p, penalty)
    ridge[-1] = INTERCEPT_PENALTY
    problem = Regression(features, hits.astype(np.float64), np.ones(n), np.zeros(p), ridge)
    fit_ridge_logistic(problem, weights, FIT_STEPS, FIT_TOLERANCE)


@kernel
def _answer(
    counts: Floats,
    rows: Floats,
    regressions: Regressions,
    columns: Ints,
    experts: Floats,
) -> None:
    """Write the answers of the experts, and count each label after the answer to its row.

    `experts`, shape (N_EXPERTS, m, n_classes): base rates, then each regression.
    """


MAX_FIRST_EXAMPLES = 500
"""Newest rows that are kept; fewer if a row has so many features that a fit takes fewer."""


class KeptRows(NamedTuple):
    """The rows as they are stored."""

    X: Floats
    columns: Ints


class FirstExamples(StoredArrays):
    """The newest labelled rows and their class columns."""

    _stored = StateSchema(floats("_kept.X", "n f", optional=True), ints("_kept.columns", "n"))

    def __init__(self) -> None:
        self._rows: deque[tuple[Floats, int]] = deque()
        self._width = 0  # features of the widest row so far

    def keep(self, X: Floats, columns: Ints, recent: int) -> None:
        """Keep labelled rows, until the recent stacks hold enough: `recent` examples."""
        if recent >= MAX_FIRST_EXAMPLES:
            self._rows.clear()
            self._width = 0
            return
        labelled = np.flatnonzero(columns >= 0)
        if not len(labelled):
            return
        self._width = max(self._width, X.shape[1])
        most = min(MAX_FIRST_EXAMPLES, max_fit_rows(self._width))
        self._rows.extend((X[row].copy(), int(columns[row])) for row in labelled[-most:].tolist())
        while len(self._rows) > most:
            self._rows.popleft()

    def joined(self) -> tuple[Floats, Ints]:
        """Return rows, shape (n, n_features), and columns, shape (n,)."""
        X = np.empty((0, 0))
        if self._rows:
            X = widened(stacked([x for x, _ in self._rows]), self._width)
        return X, np.array([column for _, column in self._rows], dtype=np.int64)

    @property
    def n_classes(self) -> int:
        """Number of class columns that occur, up to the last one."""
        return max((column + 1 for _, column in self._rows), default=0)

    def move(self, places: Ints) -> None:
        """Change to other classes: column i becomes `places[i]`."""
        self._rows = deque((x, int(places[column])) for x, column in self._rows)

    @property
    def _kept(self) -> KeptRows:
        return KeptRows(*self.joined())

    @_kept.setter
    def _kept(self, kept: KeptRows) -> None:
        require(kept.X.shape[1] <= MAX_FEATURES, "X")
        self.keep(*kept, 0)
