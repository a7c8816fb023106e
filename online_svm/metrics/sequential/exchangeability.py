"""Conformal test martingales that test whether the examples are exchangeable.

The models of a feed are refitted too often for these tests, which need many examples scored by one
model. Their scorer, one-pass Gaussian naive Bayes, is cheap, stores no examples, and treats
features independently: means and variances by class. Its quality affects the power of the tests,
not their validity. It is fitted to the first `FIRST_FIT_ROWS` rows; later, each scorer is fitted to
the last `every` rows and used for the next `every`. The first 100 rows of a scorer fix the cells of
its scores. Each further row is ranked among all rows of the same scorer; wealth carries over from
one scorer to the next. After a finding everything restarts. A change that coincides with a new
scorer is missed, because its rows are not compared with earlier rows; a scorer is therefore kept
for long.

The p-value of a score is (number above it + U (number equal to it)) / (number of all), where the
counts include the score itself and U is uniform on (0, 1). While scores are exchangeable, these
p-values are independent and uniform (Vovk, Gammerman & Shafer 2022, "Algorithmic Learning in a
Random World", chapter 8). Scores are rounded to `N_CELLS` cells fixed in advance, which is valid
because any function of a score is.

The share of a class is tested without features: the score is 1 for a row of the class and 0 for
another. Such a p-value is below the share of the class so far if and only if the row is of the
class. The bet is on p-values below this share, as estimated from the rows of the scorer before; it
may not depend on the ranked rows.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from online_svm.compiled.elementary import logs
from online_svm.compiled.kernel import kernel
from online_svm.compiled.ordered_sums import sum_rows
from online_svm.errors import InvalidInput
from online_svm.metrics.sequential.calibration_monitor import INTERVAL_LEVEL, NoticeChange
from online_svm.metrics.sequential.confidence_sequence import DeviationSums
from online_svm.metrics.sequential.wealth import (
    ALARM,
    NO_SIZES,
    NOTICE,
    Finding,
    Wealth,
    bet_on_means,
)
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, ints, one, part
from online_svm.stream.alarm import AlarmScope
from online_svm.stream.notice import Notice
from online_svm.stream.prediction import ScoredRows
from online_svm.types import Floats, Ints

MAX_FEATURES = 64  # only the first features of a row are used, to bound its cost
MAX_CLASSES = 16

_TINY = 1e-300

RECENT_MEAN_MEMORY = 250.0  # rows, for the mean of a feature; as in `exchangeability.c`


class Moments(NamedTuple):
    """Counts, means and sums of squares, each of shape (MAX_CLASSES, n_features)."""

    counts: Floats
    means: Floats
    squares: Floats


class FrozenScorer(NamedTuple):
    """Gaussian densities by class."""

    constants: Floats  # shape (MAX_CLASSES,); -inf for a class without examples
    means: Floats  # shape (MAX_CLASSES, n_features)
    precisions: Floats  # like `means`; 0 for a constant feature, which has no influence


def frozen(moments: Moments) -> FrozenScorer:
    """Return the scorer fitted to the collected moments.

    Variances are shrunk: two extra examples have the variance pooled over all classes.
    """
    counts, means, squares = moments
    rows = counts.max(axis=1, initial=0.0)
    pooled = sum_rows(squares) / np.maximum(sum_rows(counts), 1.0)
    variances = (squares + 2.0 * pooled) / (counts + 2.0)
    varies = variances > _TINY
    precisions = np.where(varies, 1.0 / np.where(varies, variances, 1.0), 0.0)
    widths = np.where(varies, logs(np.where(varies, variances, 1.0)), 0.0)
    shares = logs(np.maximum(rows, 1.0) / max(math.fsum(rows), 1.0))
    constants = np.where(rows > 0.0, shares - 0.5 * sum_rows(widths.T), -np.inf)
    return FrozenScorer(constants, means.copy(), precisions)


def overall(moments: Moments) -> Floats:
    """Return mean and standard deviation of each feature overall, shape (2, n_features)."""
    counts, means, squares = moments
    rows = np.maximum(sum_rows(counts), 1.0)
    mean = sum_rows(counts * means) / rows
    apart = means - mean
    variance = sum_rows(squares + counts * (apart * apart)) / rows
    return np.stack([mean, np.sqrt(variance)])


N_CELLS = 256

N_RANKED = 3 + MAX_CLASSES
"""Number of ranked quantities: label given features, density, odds, and one a class."""


class RankState(NamedTuple):
    """State of the ranks; everything except the scorer is updated in place."""

    rows: Ints  # number of rows, shape (1,)
    moments: Moments  # of the rows, for the next scorer
    scorer: FrozenScorer
    recent: Floats  # recent feature means, shape (n_features,)
    places: Floats  # count, mean, sum of squares over the first 100 rows, shape (N_RANKED, 3)
    trees: Ints  # sum tree of each ranked quantity, shape (N_RANKED, 2 * N_CELLS)


@kernel
def rank_rows(
    X: Floats, labels: Ints, seed: int, held: RankState, of_class: Ints, heights: Floats
) -> None:
    """Score and rank rows, fill the heights bet on, and collect moments for the next scorer.

    `X` has shape (m, n_features), `labels` the class number of each row (-1 for none), `of_class`
    the column of heights of each class (empty without a scorer), and `heights` the shape (m,
    n_parts): NaN without a bet. `seed` ranks equal scores.
    """


class LabelState(NamedTuple):
    """State of the ranks of labels; the counts are updated in place."""

    columns: Ints  # shape (n_classes,); the column of heights of each class, -1 for none
    counts: Ints  # rows of each class, and rows since it is known, shape (MAX_CLASSES, 2)
    zones: Floats  # p-values between which a height falls from 1 to 0, shape (MAX_CLASSES, 2)


@kernel
def rank_labels(
    labels: Ints, seed: int, before: int, has_scorer: bool, held: LabelState, heights: Floats
) -> None:
    """Rank labels by class and fill the heights bet on; `before` rows were ranked earlier.

    The first column of `heights`, shape (m, n_parts), has 1 - p of the label given the features. It
    becomes (1 + (min(1, t / p) - a) / (1 - a)) / 2 with t = 0.05 and a = t (1 + ln(1 / t)), the
    mean of the minimum: a bet on few, very improbable labels, such as wrong ones.
    """


@kernel
def cell_of(score: float, centre: float, spread: float) -> int:
    """Return the cell of a score, from 0; half of the cells lie within `spread` of the centre."""


FIRST_FIT_ROWS = 500

SCOPES: tuple[AlarmScope, ...] = ("overall", "scores", "class", "labels")
"""Partitions of the tests; a row is of one class, and of each of the other scopes."""

LEVEL_SHARES = (0.25, 0.2, 0.2, 0.35)
"""Share of the level for the tests of each scope."""

ZONE_BELOW, ZONE_ABOVE = 1.0, 4.0
"""Standard errors from the estimated share of a rare class to the edges of its zone.

A share of 1 % is estimated from 5 rows of 500. With edges at -1 and +1 a change to 5 % after 2,500
examples is found in 84 of 100 streams, with these in 99.
"""

SCORES = ("density", "density-spread", "odds", "odds-spread")
"""Tests of the features alone: by the density of a row, and by the odds of the commonest class."""

N_REPORTED_FEATURES = 3  # the features whose means moved most

_BY_CLASS = f"{MAX_CLASSES} d"
_OF_FEATURES = (
    floats("_counts", _BY_CLASS), floats("_means", _BY_CLASS), floats("_squares", _BY_CLASS),
    floats("_centres", _BY_CLASS), floats("_precisions", _BY_CLASS), floats("_recent", "d"),
    floats("_usual", "2 d"),
)  # fmt: skip
"""Arrays whose last axis is the features."""


def zones_of(counts: Ints) -> Floats:
    """Return the zone of p-values of each class, from the counts of its rows and of all rows.

    A height falls from 1 to 0 between the edges, so errors of an estimated share
    cost little. For a share above one half the zone is that of all other classes, mirrored. The
    share of a class that was unknown is estimated as for a class without rows. Standard errors
    count one more row, because a share of 0 has one, too.
    """
    rows = np.where(counts[:, 1] > 0, counts[:, 1], counts[:, 1].max()) + 1.0
    shares = (counts[:, 0] + 0.5) / rows
    errors = np.sqrt((shares + 1.0 / rows) * (1.0 - shares + 1.0 / rows) / rows)
    is_rare = shares <= 0.5
    below = np.where(is_rare, ZONE_BELOW, ZONE_ABOVE) * errors
    above = np.where(is_rare, ZONE_ABOVE, ZONE_BELOW) * errors
    return np.stack([np.maximum(shares - below, 0.0), np.minimum(shares + above, 1.0)], axis=1)


class ExchangeabilityMonitor(StoredArrays):
    """Tests whether rows, in their order, are exchangeable.

    - "overall": how improbable the scorer finds the label, given the features.
    - "class": where a row lies between its class and the others; one test a class.
    - "labels": how often a class comes, without the features; one test a class.
    - "scores": the densities and odds without labels; these find a shift of the features alone.

    A finding means that the distribution changed. Calibration can still hold. `level` covers all
    tests together over an unlimited run, a scorer is kept for `every` rows, and `seed` ranks equal
    scores. `notice_every` is the least mean number of rows to a false notice of the labels. Such a
    notice ends when its class comes as often as before, or with the ranks that it is from.
    """

    _stored = StateSchema(
        *_OF_FEATURES, floats("_constants", optional=True), floats("_places"), ints("_trees"),
        ints("_label_counts"), floats("_zones"), ints("_usual_counts"), ints("_rows"), one("_left"),
        one("_has_scorer"), part("_bets"), part("_sums", of="_new_sums"),
    )  # fmt: skip

    def __init__(
        self, level: float, every: int, seed: int = 0, notice_every: float = np.inf
    ) -> None:
        self._every, self._seed = every, seed
        levels = [share * level for share in LEVEL_SHARES]
        run_lengths = [notice_every if scope == "labels" else np.inf for scope in SCOPES]
        self._bets = Wealth("exchangeability", levels, run_lengths)
        self._sums = self._new_sums()  # of the labels, less their shares
        for name in (None, *SCORES):
            self._add("scores" if name else "overall", name)
        self._labels: tuple[str | None, ...] = ()
        self._classes = self._tests = np.full(MAX_CLASSES, -1, dtype=np.int64)
        self._n_classes = 0  # with a test
        self._label_columns = self._tests[:0]
        self._label_counts = np.zeros((MAX_CLASSES, 2), dtype=np.int64)
        self._usual_counts = np.zeros_like(self._label_counts)  # of the rows of the last scorer
        self._zones = np.zeros((MAX_CLASSES, 2))
        self._rows = np.zeros(1, dtype=np.int64)
        self._left = self._first_fit
        self._has_scorer = False
        self._trees = np.zeros((N_RANKED, 2 * N_CELLS), dtype=np.int64)
        self._with_features(0)

    def _add(self, scope: AlarmScope, name: str | None) -> None:
        self._bets.add(scope, name, SCOPES.index(scope))
        if scope == "labels":
            self._sums.add()

    def _new_sums(self) -> DeviationSums:
        return DeviationSums(len(self._label_parts), INTERVAL_LEVEL)

    @property
    def _label_parts(self) -> list[int]:
        return [j for j, part in enumerate(self._bets.parts) if part.scope == "labels"]

    @property
    def _first_fit(self) -> int:
        return min(FIRST_FIT_ROWS, max(1, self._every // 2))

    def _with_features(self, d: int) -> None:
        self._counts, self._means, self._squares = (np.zeros((MAX_CLASSES, d)) for _ in range(3))
        self._constants = np.full(MAX_CLASSES, -np.inf)
        self._centres, self._precisions = np.zeros((MAX_CLASSES, d)), np.zeros((MAX_CLASSES, d))
        self._usual, self._recent = np.zeros((2, d)), np.zeros(d)  # mean and deviation; mean now
        self._places = np.zeros((N_RANKED, 3))  # count, mean, sum of squares of ranked quantities

    def _with_more_features(self, more: int) -> None:
        """Append features that no earlier row had."""
        for name in (field.attribute for field in _OF_FEATURES):
            held = getattr(self, name)
            setattr(self, name, np.concatenate([held, np.zeros((*held.shape[:-1], more))], axis=-1))

    def update(self, rows: ScoredRows) -> list[Finding | NoticeChange]:
        """Add rows, in order; return findings and changes of the open notices, in order.

        Rows without features are skipped. New features, appended at the end, have no effect until
        the next scorer is fitted. Raises InvalidInput if rows have fewer features than earlier
        rows.
        """
        count = len(rows)
        if rows.X is None or not count:
            return []
        X = np.ascontiguousarray(rows.X[:, :MAX_FEATURES])
        known = self._counts.shape[1]
        if not known:
            self._with_features(X.shape[1])
        elif X.shape[1] > known:
            self._with_more_features(X.shape[1] - known)
        elif X.shape[1] < known:
            raise InvalidInput(f"X: {X.shape[1]} features, but {known} in the rows before")
        self._know(rows.classes)
        found: list[Finding | NoticeChange] = []
        begin = 0
        while begin < count:
            part = slice(begin, min(count, begin + self._left))
            recent = self._recent.copy()
            labels = self._classes[rows.columns[part]]
            shares = self._label_shares(labels)
            heights = self._heights(X[part], labels)
            used, alarms = 0, list[Finding]()
            while used < len(heights) and not alarms:
                first = used
                used, reached = self._bet(heights, rows.n[part], first)
                if self._has_scorer:
                    tests, own, usual = shares
                    new = slice(first, used)
                    self._sums.update(tests[new], own[new], usual[new], rows.n[part][new], NO_SIZES)
                if reached & ALARM:
                    name = "conformal-martingale"
                    alarms = [one for _, one in self._bets.take_findings(begin + used - 1, name)]
                if reached & NOTICE:
                    notices = self.notices()
                    found.append(NoticeChange(begin + used - 1, notices, of_labels=True))
                    if not notices:  # the next one is about later rows
                        self._sums = self._new_sums()
            if alarms:  # the means at this row, however rows are split into calls
                self._recent = _followed(recent, X[begin : begin + used])
                moved = tuple((one["feature"], one["shift"]) for one in self.moved())
                found += [replace(one, moved=moved) for one in alarms]
            begin, self._left = begin + used, self._left - used
            was_open = bool(self._bets.open_notices())
            if alarms:
                self._rows[0] -= len(heights) - used
                self._compare_later_rows()
            elif not self._left:
                self._freeze()
            if was_open and not self._bets.open_notices():
                found.append(NoticeChange(begin - 1, (), of_labels=True))
        return found

    def _know(self, labels: tuple[str | None, ...]) -> None:
        """Start a test for each new class; map labels to classes and classes to tests."""
        if labels == self._labels:
            return
        self._labels = labels
        of_labels = labels[1:] if len(labels) == 2 else labels  # one of two shares says both
        parts = self._bets.parts
        known = {part.name: j for j, part in enumerate(parts) if part.scope == "class"}
        for label in labels:
            if label is not None and label not in known and len(known) < MAX_CLASSES:
                known[label] = len(parts)
                self._add("class", label)
                if label in of_labels:
                    self._add("labels", label)
        self._n_classes = len(known)
        numbers = {name: c for c, name in enumerate(known)}
        self._tests = np.array([*known.values(), *[-1] * (MAX_CLASSES - len(known))])
        self._classes = np.array([numbers.get(label, -1) for label in labels], dtype=np.int64)
        of = {parts[j].name: j for j in self._label_parts}
        self._label_columns = np.array([of.get(name, -1) for name in known], dtype=np.int64)
        partitions = self._bets.held.partition
        self._order = np.argsort(partitions, kind="stable")
        widths = np.bincount(partitions, minlength=len(SCOPES)).astype(np.float64)
        widths[SCOPES.index("class")] = 1.0
        self._widths = widths[partitions[self._order]]

    def _heights(self, X: Floats, labels: Ints) -> Floats:
        heights = np.empty((len(X), len(self._bets.parts)))
        scorer = FrozenScorer(self._constants, self._centres, self._precisions)
        held = (self._rows, self._moments, scorer, self._recent, self._places, self._trees)
        watched = self._tests[: self._n_classes if self._has_scorer else 0]
        rank_rows(X, labels, self._seed, RankState(*held), watched, heights)
        before = int(self._rows[0]) - len(X)
        ranks = LabelState(self._label_columns, self._label_counts, self._zones)
        rank_labels(labels, self._seed, before, self._has_scorer, ranks, heights)
        return heights

    @property
    def _moments(self) -> Moments:
        return Moments(self._counts, self._means, self._squares)

    def _label_shares(self, labels: Ints) -> tuple[Ints, Floats, Floats]:
        """Return test, event and usual share of each row, for each class with a test of labels.

        Each of shape (m, n_tests). The share is of all rows before, those of the scorer included.
        """
        chosen = np.flatnonzero(self._label_columns >= 0)
        own = (labels[:, None] == chosen).astype(np.float64)
        counts = (self._usual_counts + self._label_counts)[chosen]
        before = counts[:, 0] + np.cumsum(own, axis=0) - own
        rows = counts[:, 1] + np.arange(len(labels))[:, None]
        tests = np.tile(np.arange(len(chosen)), (len(labels), 1))
        return tests, own, (before + 0.5) / (rows + 1.0)

    def _bet(self, heights: Floats, n: Ints, begin: int) -> tuple[int, int]:
        """Bet on rows from `begin` on; return the row after the last one and what was reached."""
        chosen = np.flatnonzero(self._label_columns >= 0)
        lower, upper = self._zones[chosen].T
        means = np.full(heights.shape[1], 0.5)
        means[self._label_columns[chosen]] = 0.5 * (lower + upper)
        return bet_on_means(
            self._order, heights, means, NO_SIZES, self._widths, n, begin, self._bets.held
        )

    def notices(self) -> tuple[Notice, ...]:
        """Return the open notices of classes that come more or less often, the oldest first."""
        parts = self._label_parts
        found = []
        for j, opened, low in self._bets.open_notices():
            mean = self._sums.strongest(parts.index(j))
            assert mean is not None
            found.append(Notice(
                opened, "labels", self._bets.parts[j].name, "risen" if low == "low" else "fallen",
                mean.since, mean.rows, mean.announced,
                *(min(max(mean.announced + off, 0.0), 1.0)
                  for off in (mean.estimate, mean.lower, mean.upper)),
            ))  # fmt: skip
        return tuple(sorted(found, key=lambda notice: notice.n))

    def restart(self) -> None:
        """Discard past evidence and compare later rows with each other only."""
        self._bets.restart()
        self._compare_later_rows()

    def _compare_later_rows(self) -> None:
        """Discard the scorer and all ranks."""
        self._forget()
        self._usual, self._recent = np.zeros_like(self._usual), np.zeros_like(self._recent)
        self._has_scorer, self._left = False, self._first_fit

    def _freeze(self) -> None:
        """Fit the next scorer to the rows since the last one, then discard those rows."""
        scorer = frozen(self._moments)
        self._usual = overall(self._moments)
        self._recent = self._usual[0].copy()
        self._constants, self._centres, self._precisions = scorer
        self._zones = zones_of(self._label_counts)
        self._usual_counts = self._label_counts.copy()
        self._forget()
        self._has_scorer, self._left = True, self._every

    def _forget(self) -> None:
        """Discard the moments and ranks of the rows of this scorer, and close their notices."""
        self._bets.close_notices(np.ones(len(self._bets.parts), dtype=np.bool_))
        self._sums = self._new_sums()
        for moments in (self._counts, self._means, self._squares, self._places, self._trees):
            moments[...] = 0
        self._label_counts[...] = 0

    def report(self) -> list[dict[str, Any]]:
        """Return the test closest to a finding in each scope, ready for JSON."""
        parts = self._bets.parts
        margins = self._bets.thresholds - self._bets.log_wealth
        order = np.argsort(margins, kind="stable").tolist()
        nearest: dict[str, int] = {}
        for j in order:
            nearest.setdefault(parts[j].scope, j)
        return [
            self._bets.report(j) | ({"moved": self.moved()} if parts[j].scope == "scores" else {})
            for j in sorted(nearest.values())
        ]

    def moved(self) -> list[dict[str, Any]]:
        """Return the features that moved most since the scorer was fitted; descriptive.

        `shift` is the recent mean minus the mean of the scorer's rows, in standard deviations of
        those rows. Only the first `MAX_FEATURES` features are considered, by index.
        """
        mean, deviation = self._usual
        varies = deviation > 0.0
        shifts = np.where(varies, (self._recent - mean) / np.where(varies, deviation, 1.0), 0.0)
        most = np.argsort(-np.abs(shifts), kind="stable")[:N_REPORTED_FEATURES].tolist()
        return [{"feature": f, "shift": float(shifts[f])} for f in most if shifts[f]]

    def _on_restored(self) -> None:
        # -inf is the constant of a class without examples.
        require(bool((self._constants < np.inf).all()), "constants")


def _followed(recent: Floats, X: Floats) -> Floats:
    """Return the recent means after more rows, as `take_row` updates them."""
    for x in X:
        recent = recent + np.where(np.isfinite(x), x - recent, 0.0) / RECENT_MEAN_MEMORY
    return recent
