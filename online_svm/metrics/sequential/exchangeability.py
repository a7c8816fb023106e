"""Conformal test martingales: whether the examples still come as from one distribution.

A scorer is fitted to the first `FIRST_FIT` rows, and to each `every` rows for the next as
many. The `PLACED` rows after that fix the cells of its scores. Then each row has a rank among all
rows of that scorer; wealth goes on from one scorer to the next. After a finding all begins anew:
later rows are compared with later rows.

A change that comes just when a scorer does is missed by these tests, since nothing before it is
compared with: the reason to keep a scorer for long.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from online_svm.errors import InvalidInput
from online_svm.metrics.sequential.bet_processes import BetProcesses
from online_svm.metrics.sequential.families import Family, Finding, Subject
from online_svm.metrics.sequential.frozen_scorer import (
    CLASSES,
    FEATURES,
    MEMORY,
    FrozenScorer,
    Moments,
    frozen,
    overall,
)
from online_svm.metrics.sequential.row_ranks import CELLS, RANKED, RankState, rank_rows
from online_svm.storage.arrays import nest, under
from online_svm.storage.fields import Fields, floats, ints
from online_svm.stream.alarm import AlarmScope
from online_svm.stream.scored_rows import ScoredRows
from online_svm.types import Arrays, Floats, Ints

FIRST_FIT = 500

SHARES: dict[AlarmScope, float] = {"overall": 0.3, "class": 0.3, "scores": 0.4}
"""Shares of the level."""

SCORES = ("density", "density-spread", "odds", "odds-spread")
"""Tests of the features alone: of the density of a row, and of the odds of the commonest class."""

TOLD = 3  # features that moved most, in a report

_BY_CLASS = f"{CLASSES} d"
_FIELDS = Fields(
    floats("_counts", _BY_CLASS),
    floats("_means", _BY_CLASS),
    floats("_squares", _BY_CLASS),
    floats("_constants", str(CLASSES)),
    floats("_centres", _BY_CLASS),
    floats("_precisions", _BY_CLASS),
    floats("_places", f"{RANKED} 3"),
    floats("_recent", "d"),
    floats("_usual", "2 d"),
    ints("_trees"),
)
_OF_FEATURES = tuple(f.attribute for f in _FIELDS if f.axes.endswith("d"))
"""What has a last axis of the features."""


class ExchangeabilityMonitor:
    """Tests whether rows, in their order, are exchangeable: i.i.d., for all one can tell.

    - "overall": how improbable the scorer finds the label, given the features.
    - "class": where a row lies between its class and the others, one test a class.
    - "scores": the same without labels; these find a shift of the features alone.

    A finding says that something moved. Calibration may hold all the same.

    Parameters
    ----------
    level : float
        Of all tests together, for ever.
    every : int
        Rows for which a scorer is kept.
    seed : int
        Of the ranks of equal scores.

    Examples
    --------
    >>> monitor, rng = ExchangeabilityMonitor(level=0.01, every=10_000), np.random.default_rng(0)
    >>> x, label = rng.normal(size=(3000, 2)), np.arange(3000) % 2
    >>> x[:, 0] += label
    >>> x[2000:, 1] += 2.0
    >>> none = np.zeros((3000, 2))
    >>> rows = ScoredRows(np.arange(3000), ("a", "b"), label, none, none, none, none, none, label,
    ...                   model=1, X=x)
    >>> found = monitor.update(rows)
    >>> found[0].scope, found[0].name, 2000 <= found[0].row < 2100
    ('scores', 'density', True)
    """

    def __init__(self, level: float, every: int, seed: int = 0) -> None:
        self._level, self._every, self._seed = level, every, seed
        self._family = Family({scope: share * level for scope, share in SHARES.items()})
        for part in (
            Subject("overall", None),
            *(Subject("scores", name) for name in SCORES),
        ):
            self._family.add(part)
        m = len(self._family.parts)
        self._bets = BetProcesses([0.0] * m, self._family.levels)
        self._since = [-1] * m
        self._labels: tuple[str | None, ...] = ()
        self._classes = self._tests = np.full(CLASSES, -1, dtype=np.int64)
        self._n_classes = 0  # with a test
        self._rows = np.zeros(1, dtype=np.int64)
        self._left = self._first_fit
        self._has_scorer = False
        self._trees = np.zeros((RANKED, 2 * CELLS), dtype=np.int64)
        self._with_features(0)

    @property
    def _first_fit(self) -> int:
        return min(FIRST_FIT, max(1, self._every // 2))

    def _with_features(self, d: int) -> None:
        self._counts, self._means, self._squares = (np.zeros((CLASSES, d)) for _ in range(3))
        self._constants = np.full(CLASSES, -np.inf)
        self._centres, self._precisions = np.zeros((CLASSES, d)), np.zeros((CLASSES, d))
        self._usual, self._recent = np.zeros((2, d)), np.zeros(d)  # mean and deviation; mean now
        self._places = np.zeros((RANKED, 3))  # count, mean, sum of squares: of what is ranked

    def _with_more_features(self, more: int) -> None:
        """Take up features that no row had so far."""
        for name in _OF_FEATURES:
            held = getattr(self, name)
            setattr(self, name, np.concatenate([held, np.zeros((*held.shape[:-1], more))], axis=-1))

    def _add(self, part: Subject) -> None:
        level = self._family.add(part)
        if level is not None:
            self._bets.add(0.0, level)
            self._since.append(-1)

    def update(self, rows: ScoredRows) -> list[Finding]:
        """Add rows, in order; return what was found, in order.

        Rows without features are skipped. Features that come later, at the end, say nothing before
        the next scorer, which is fitted to their values too.

        Raises
        ------
        InvalidInput
            If rows have fewer features than those before.
        """
        count = len(rows)
        if rows.X is None or not count:
            return []
        X = np.ascontiguousarray(rows.X[:, :FEATURES])
        known = self._counts.shape[1]
        if not known:
            self._with_features(X.shape[1])
        elif X.shape[1] > known:
            self._with_more_features(X.shape[1] - known)
        elif X.shape[1] < known:
            raise InvalidInput(f"X: {X.shape[1]} features, but {known} in the rows before")
        self._know(rows.classes)
        found: list[Finding] = []
        begin = 0
        while begin < count:
            part = slice(begin, min(count, begin + self._left))
            recent = self._recent.copy()
            values = self._values(X[part], self._classes[rows.columns[part]])
            used, new = self._bet(values, rows.n[part], begin)
            if new:  # the means as of this row, however rows are cut into calls
                self._recent = _followed(recent, X[begin : begin + used])
                moved = tuple((one["feature"], one["shift"]) for one in self.moved())
                found += [replace(one, moved=moved) for one in new]
            begin, self._left = begin + used, self._left - used
            if new:
                self._rows[0] -= len(values) - used
                self._compare_later_rows()
            elif not self._left:
                self._freeze()
        return found

    def _know(self, labels: tuple[str | None, ...]) -> None:
        """Begin a test of each new class; note the number of each, and where its test stands."""
        if labels == self._labels:
            return
        self._labels = labels
        for label in labels:
            if label is not None:
                self._add(Subject("class", label))
        tests = [j for j, part in enumerate(self._family.parts) if part.scope == "class"][:CLASSES]
        self._n_classes = len(tests)
        numbers = {self._family.parts[j].name: c for c, j in enumerate(tests)}
        self._tests = np.array(tests + [-1] * (CLASSES - len(tests)), dtype=np.int64)
        self._classes = np.array([numbers.get(label, -1) for label in labels], dtype=np.int64)

    def _values(self, X: Floats, labels: Ints) -> Floats:
        values = np.empty((len(X), len(self._family.parts)))
        scorer = FrozenScorer(self._constants, self._centres, self._precisions)
        held = (self._rows, self._moments, scorer, self._recent, self._places, self._trees)
        watched = self._tests[: self._n_classes if self._has_scorer else 0]
        rank_rows(X, labels, self._seed, RankState(*held), watched, values)
        return values

    @property
    def _moments(self) -> Moments:
        return Moments(self._counts, self._means, self._squares)

    def _bet(self, values: Floats, n: Ints, first: int) -> tuple[int, list[Finding]]:
        """Bet on rows until something is found; return how many were used, and what was found."""
        if -1 in self._since:
            self._since = [int(n[0]) if since < 0 else since for since in self._since]
        used, found = self._bets.update(values), list[Finding]()
        if not self._bets.has_rejected:
            return used, found
        for j in np.flatnonzero(self._bets.rejected).tolist():
            found.append(
                Finding(
                    first + used - 1,
                    "exchangeability",
                    *self._family.parts[j],
                    "conformal-martingale",
                    float(self._bets.log_wealth[j]),
                    float(self._bets.thresholds[j]),
                    self._since[j],
                )
            )
            self._bets.restart(j)
            self._since[j] = -1
        return used, found

    def begin_anew(self) -> None:
        """Give up what was seen so far: later rows are compared with later rows alone.

        Each test goes on to its next level.
        """
        self._bets.begin_anew()
        self._since = [-1] * len(self._since)
        self._compare_later_rows()

    def _compare_later_rows(self) -> None:
        """Forget the scorer and all ranks: what comes is compared with what comes now."""
        self._forget()
        self._usual, self._recent = np.zeros_like(self._usual), np.zeros_like(self._recent)
        self._has_scorer, self._left = False, self._first_fit

    def _freeze(self) -> None:
        """Begin the next scorer: fitted to the rows since the last, which are then forgotten."""
        scorer = frozen(self._moments)
        self._usual = overall(self._moments)
        self._recent = self._usual[0].copy()
        self._constants, self._centres, self._precisions = scorer
        self._forget()
        self._has_scorer, self._left = True, self._every

    def _forget(self) -> None:
        """Forget the rows of this scorer: their moments, and their ranks."""
        for moments in (self._counts, self._means, self._squares, self._places, self._trees):
            moments[...] = 0

    def report(self) -> list[dict[str, Any]]:
        """Return the test nearest to a finding of each scope, with its wealth, as JSON has it."""
        logs, limits = self._bets.log_wealth, self._bets.thresholds
        order = np.argsort(limits - logs, kind="stable").tolist()
        nearest: dict[str, int] = {}
        for j in order:
            nearest.setdefault(self._family.parts[j].scope, j)
        return [
            {
                "kind": "exchangeability",
                "scope": self._family.parts[j].scope,
                "name": self._family.parts[j].name,
                "log_wealth": float(logs[j]),
                "threshold": float(limits[j]),
                "alarms": int(self._bets.found[j]),
                "since": None if self._since[j] < 0 else self._since[j],
            }
            | ({"moved": self.moved()} if self._family.parts[j].scope == "scores" else {})
            for j in sorted(nearest.values())
        ]

    def moved(self) -> list[dict[str, Any]]:
        """Return the features that moved most since the scorer was fitted; descriptive, no test.

        `shift` is the recent mean less that of the scorer's rows, in their standard deviations. The
        first `FEATURES` features are looked at, by index.
        """
        mean, deviation = self._usual
        varies = deviation > 0.0
        shifts = np.where(varies, (self._recent - mean) / np.where(varies, deviation, 1.0), 0.0)
        most = np.argsort(-np.abs(shifts), kind="stable")[:TOLD].tolist()
        return [{"feature": f, "shift": float(shifts[f])} for f in most if shifts[f]]

    def state(self) -> Arrays:
        """Return the tests, their wealth, the scorer and the ranks."""
        numbers = [int(self._rows[0]), self._left, int(self._has_scorer)]
        arrays = _FIELDS.arrays_of(self)
        arrays["constants"] = np.nan_to_num(self._constants, neginf=-1e300)
        return arrays | {
            **nest("bets", self._bets.state()),
            **self._family.state(),
            "numbers": np.array(numbers, dtype=np.int64),
            "since": np.array(self._since, dtype=np.int64),
        }

    @classmethod
    def from_state(cls, state: Arrays, level: float, every: int, seed: int = 0) -> Self:
        """Return the monitor that `state` describes.

        Raises
        ------
        InvalidSnapshot, LookupError
            If an array is absent or does not fit.
        """
        restored = cls(level, every, seed)
        levels = {scope: share * level for scope, share in SHARES.items()}
        family = restored._family = Family.from_state(state, levels)
        zeros = [0.0] * len(family.parts)
        restored._bets = BetProcesses.from_state(under("bets", state), zeros, family.levels)
        _FIELDS.fill(restored, None, state)
        restored._constants[restored._constants <= -1e300] = -np.inf
        parts = Fields(ints("numbers", "3"), ints("since", f"{len(family.parts)}", least=-1))
        stored = parts.values(cls, None, state)
        # Rows of this scorer, rows until the next one, and whether there is one.
        restored._rows[0], restored._left, has_scorer = stored["numbers"].tolist()
        restored._has_scorer = bool(has_scorer)
        restored._since = stored["since"].tolist()
        return restored


def _followed(recent: Floats, X: Floats) -> Floats:
    """Return what recent means become with some more rows, as `frozen_scorer.take` moves them."""
    for x in X:
        recent = recent + np.where(np.isfinite(x), x - recent, 0.0) / MEMORY
    return recent
