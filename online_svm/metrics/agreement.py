"""Whether announced probabilities and labels agree, over the last labels and since the last change.

The verdict on a feed is made from these figures. An *event* is the second of two classes, or with
more classes that the predicted label is right. Its probability falls into one of ten ranges.

With w the number of examples for which a label stands (1 without a label budget), in a range:
P = sum w p, Y = sum w y, V = sum w^2 p (1 - p), W = sum w. Then

- ((Y - P)^2 - V) / W, summed over the ranges and divided by all W, estimates the mean squared
  difference of frequency and probability, without what chance adds (debiased);
- n KL(Y / W, e) with n = W^2 / sum w^2 and e the nearest edge of the tolerance around P / W is the
  log likelihood ratio that the range is outside its tolerance;
- the gain is the mean of ln(p / b) at the true label, with b the running base rate of that label.

A span is also tested for a change: the mean of the predicted label, of each class, the squares of
y - p (Spiegelhalter 1986) and the ranges, each in its own standard deviations.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from online_svm.compiled.elementary import log
from online_svm.compiled.kernel import kernel
from online_svm.storage.state import require
from online_svm.storage.state_schema import (
    StateSchema,
    Stored,
    floats,
    ints,
    number,
    texts,
)
from online_svm.stream.labels import sorted_labels
from online_svm.stream.prediction import ScoredRows
from online_svm.stream.validity_report import (
    AgreementReport,
    ClassAgreement,
    RangeAgreement,
    SpanAgreement,
    UnlabelledRange,
)
from online_svm.types import Floats, Ints

ENDS = (0.0, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 1.0)
"""Ends of the ranges of an event's probability."""

CHUNK_LABELS = 100
LAST_CHUNKS = 10  # finished chunks of the last labels: 1,000 labels, and those under way
ASKED_ANSWERS = 1_000  # answers of a chunk in which those with a label are counted
ASKED_CHUNKS = 5

MIN_LABELS = 100
"""Labels without which a span says nothing."""

_OF_RANGE, _OF_ALL = 5, 12  # sums of a range and of all answers; see `agreement.c`
_FLOOR, _ODDS, _ERRORS = 0.002, 1.5, 1.5  # of the tolerance around a probability
_Z_SQUARES = 1.65  # one-sided 5 %
_Z_APART = 3.3  # one-sided .05 %
_Z_MEAN = 1.96  # two-sided 5 %
_CHANGED_MEAN, _CHANGED_RANGES, _CHANGED_SQUARES = 3.6, 6.0, 3.4  # standard deviations
_LACKING = 0.25  # of the usual share of labels: a range with less lacks them
_MIN_ANSWERS, _MIN_SHARE = 50, 0.02  # of a range whose labels are looked at
_SMALLEST = 1e-9
_RARE = 2.0  # times the tolerance: a class announced less often is compared by a factor


class Agreement(Stored):
    """Sums over labelled answers, for an `AgreementReport`.

    `tolerance`: difference of frequency and probability that does not matter.
    `counts_asked`: whether answers without a label count; with a label budget they do not.

    Examples
    --------
    >>> agreement, rng = Agreement(0.02), np.random.default_rng(0)
    >>> p = rng.random(2_000)
    >>> agreement.add(np.stack([1 - p, p], axis=1), (rng.random(2_000) < p).astype(np.int64), "ab")
    >>> report = agreement.report()
    >>> report.since.labels, report.since.within < 0.05, report.since.gain > 0.2
    (2000, True, True)
    """

    _stored = StateSchema(
        texts("_labels", stored_as="classes", optional=True), number("labels"), number("_since"),
        number("_learned"), number("_answers"), floats("_spans"), floats("_by_class", "spans c 3"),
        floats("_seen", "c"), ints("_asked"),
    )  # fmt: skip

    def __init__(self, tolerance: float, *, counts_asked: bool = True) -> None:
        self._tolerance, self._counts_asked = tolerance, counts_asked
        self._classes: tuple[str | None, ...] = ()
        self.labels = 0  # since the start of the span
        self._since = self._learned = self._answers = 0
        spans = LAST_CHUNKS + 2  # the chunks, the one under way, and all since the start
        self._spans = np.zeros((spans, _OF_RANGE * (len(ENDS) - 1) + _OF_ALL))
        self._by_class = np.zeros((spans, 0, 3))
        self._seen = np.zeros(0)  # labels of each class since the feed began
        self._asked: Ints = np.zeros((ASKED_CHUNKS, 2, len(ENDS) - 1), dtype=np.int64)

    def update(self, rows: ScoredRows, learned: Ints) -> None:
        """Add labelled answers; `learned`, shape (m,): examples learned up to each."""
        self.add(rows.point, rows.columns, rows.classes, learned, rows.weights)

    def add(
        self,
        point: Floats,
        columns: Ints,
        classes: Sequence[str | None],
        learned: Ints | None = None,
        weights: Floats | None = None,
    ) -> None:
        """Add probabilities, shape (m, K), and the columns of the labels in `classes`."""
        m = len(columns)
        if not m:
            return
        if learned is None:
            learned = np.arange(self._learned + 1, self._learned + m + 1)
        self.labels = _add(
            np.ascontiguousarray(point), np.ascontiguousarray(columns),
            np.ones(m) if weights is None else np.ascontiguousarray(weights),
            np.ascontiguousarray(learned), self._places(tuple(classes)), self._spans,
            self._by_class, self._seen, self.labels,
        )  # fmt: skip
        self._learned = int(learned[-1])

    def count(self, point: Floats, columns: Ints) -> None:
        """Count answers, shape (m, K), by range; `columns`, shape (m,): -1 without a label."""
        begin = 0
        while begin < len(point):
            at = self._answers // ASKED_ANSWERS % ASKED_CHUNKS
            if self._answers % ASKED_ANSWERS == 0:
                self._asked[at] = 0
            stop = min(len(point), begin + ASKED_ANSWERS - self._answers % ASKED_ANSWERS)
            part = slice(begin, stop)
            _count(
                np.ascontiguousarray(point[part]), np.ascontiguousarray(columns[part]),
                self._asked[at],
            )  # fmt: skip
            self._answers += stop - begin
            begin = stop

    def restart(self, n: int | None = None) -> None:
        """Begin the spans anew after `n` learned examples, or after the last that was added."""
        self._since = self._learned if n is None else n
        self.labels = 0
        self._spans[:], self._by_class[:] = 0.0, 0.0

    def report(self) -> AgreementReport:
        """Return the figures of the last labels and of those since the start."""
        counts = self._asked.sum(axis=0)
        known = sorted_labels([label for label in self._classes if label is not None])
        return AgreementReport(
            event=known[1] if len(known) == 2 else None,
            last=self._span(slice(0, -1)),
            since=self._span(slice(-1, None)),
            start=self._since,
            answers=int(counts[0].sum()),
            unlabelled=_unlabelled(counts) if self._counts_asked else [],
        )

    def _on_restored(self) -> None:
        require(len(self._classes) == len(self._seen), "classes")
        require(self._by_class.shape[0] == len(self._spans), "by_class")

    @property
    def _labels(self) -> list[str | None]:
        return list(self._classes)

    @_labels.setter
    def _labels(self, labels: list[str | None]) -> None:
        require(len(set(labels)) == len(labels), "classes")
        self._classes = tuple(labels)

    def _places(self, classes: tuple[str | None, ...]) -> Ints:
        """Return the index of each class among those of all rows; new ones are added."""
        new = [label for label in classes if label not in self._classes]
        if new:
            self._classes += tuple(new)
            more = np.zeros((len(self._by_class), len(new), 3))
            self._by_class = np.concatenate([self._by_class, more], axis=1)
            self._seen = np.concatenate([self._seen, np.zeros(len(new))])
        return np.array([self._classes.index(label) for label in classes], dtype=np.int64)

    def _span(self, spans: slice) -> SpanAgreement | None:
        """Return the figures of a span; None with too few labels."""
        sums = self._spans[spans].sum(axis=0).tolist()
        n_ranges = len(ENDS) - 1
        ranges = [RangeSums(*sums[_OF_RANGE * k : _OF_RANGE * (k + 1)]) for k in range(n_ranges)]
        whole = SpanSums(*sums[_OF_RANGE * n_ranges :])
        if whole.labels < MIN_LABELS:
            return None
        total = RangeSums(*(math.fsum(column) for column in zip(*ranges, strict=True)))
        by_class = self._by_class[spans].sum(axis=0).tolist()
        classes = [
            (label, RangeSums(total.weight, of[0], of[1], of[2], total.square))
            for label, of in zip(self._classes, by_class, strict=True)
            if of[0] or of[1]
        ]
        return span_agreement(whole, ranges, total, classes, self._tolerance)


class RangeSums(NamedTuple):
    """Sums over the answers in a range, or over all answers for one class."""

    weight: float
    announced: float
    happened: float
    variance: float  # sum of w^2 p (1 - p)
    square: float  # sum of w^2

    @property
    def size(self) -> float:
        """Number of answers of equal weight that say as much."""
        return self.weight * self.weight / self.square

    def evidence(self, tolerance: float, error: float = 0.0) -> float:
        """Return n KL(frequency, nearest edge of the tolerance); 0 inside.

        `error`: reciprocal of the number of examples from which probabilities were learned.
        """
        p, frequency = self.announced / self.weight, self.happened / self.weight
        lower, upper = _edges(p, tolerance, _ERRORS * math.sqrt(p * (1.0 - p) * error))
        edge = upper if frequency > upper else lower
        if lower <= frequency <= upper:
            return 0.0
        return self.size * (_part(frequency, edge) + _part(1.0 - frequency, 1.0 - edge))


class SpanSums(NamedTuple):
    """Sums over all answers of a span; see `agreement.c`."""

    labels: float
    learned: float
    hits: float
    squared_excess: float
    squared_variance: float
    top: float
    top_variance: float
    gain_weight: float
    gain_square: float
    gain: float
    gain_cross: float
    gain_squared: float


def _edges(p: float, tolerance: float, least: float) -> tuple[float, float]:
    """Return the ends of the tolerance around a probability, within (0, 1)."""
    odds = p / (1.0 - p) if p < 1.0 else math.inf
    up = 1.0 - 1.0 / (1.0 + odds * _ODDS) if p < 1.0 else 1.0
    down = 1.0 - 1.0 / (1.0 + odds / _ODDS) if p < 1.0 else 1.0
    least = max(least, _FLOOR)
    lower = p - max(min(tolerance, p - down), least)
    upper = p + max(min(tolerance, up - p), least)
    return max(lower, _SMALLEST), min(upper, 1.0 - _SMALLEST)


def _part(share: float, expected: float) -> float:
    return share * log(share / expected) if share > 0.0 else 0.0


def span_agreement(
    whole: SpanSums,
    ranges: Sequence[RangeSums],
    total: RangeSums,
    classes: Sequence[tuple[str | None, RangeSums]],
    tolerance: float,
) -> SpanAgreement:
    """Return the figures of a span with labels."""
    error = whole.labels / whole.learned if whole.learned else 1.0
    square, noise, chance = _squared_error(ranges, total.weight)
    top = (whole.hits - whole.top, whole.top_variance)
    means = [top, *((of.happened - of.announced, of.variance) for _, of in classes)]
    bounds = [(abs(excess) + _Z_MEAN * math.sqrt(v)) / total.weight for excess, v in means]
    spread = math.sqrt(max(0.0, square + _Z_SQUARES * noise)) / _ODDS
    # More classes need more evidence: the largest of K normal deviations grows as sqrt(2 ln K).
    more = log(float(max(1, len(classes) - 1)))
    bound = math.sqrt(_CHANGED_MEAN * _CHANGED_MEAN + 2.0 * more)
    changes = [_standardised(*one) / bound for one in means]
    changes.append(_standardised(whole.squared_excess, whole.squared_variance) / _CHANGED_SQUARES)
    changes.append(max(0.0, square) / (chance * _CHANGED_RANGES) if chance else 0.0)
    found = [(of.evidence(tolerance, error), k) for k, of in enumerate(ranges) if of.weight]
    evidence, worst = max(found, key=lambda one: one[0])
    gain, gain_error = _gain(whole)
    return SpanAgreement(
        labels=int(whole.labels),
        accuracy=min(1.0, whole.hits / total.weight),
        announced=min(1.0, whole.top / total.weight),
        within=max(*bounds, spread),
        apart=math.sqrt(max(0.0, square - _Z_APART * noise)),
        change=max(changes),
        range=_of_range(worst, ranges[worst], evidence) if evidence else None,
        mean=max(
            (_of_class(label, of, tolerance, more) for label, of in _named(classes)),
            key=lambda one: one.evidence,
        ),
        rare=_rarest(classes, tolerance),
        gain=gain,
        gain_error=gain_error,
        entropy=-math.fsum(_entropy(of.happened / total.weight) for _, of in classes),
    )


def _squared_error(ranges: Sequence[RangeSums], weight: float) -> tuple[float, float, float]:
    """Return the debiased mean squared error, its standard error, and that by chance alone."""
    square = noise = chance = 0.0
    for of in ranges:
        if not of.weight:
            continue
        miss, part = of.happened - of.announced, of.variance / of.weight
        excess = miss * miss - of.variance
        square += excess / of.weight
        chance += 2.0 * part * part
        noise += 2.0 * part * part + 4.0 * max(excess, 0.0) / of.weight * part
    return square / weight, math.sqrt(noise) / weight, math.sqrt(chance) / weight


def _gain(whole: SpanSums) -> tuple[float | None, float | None]:
    """Return the mean gain and its standard error; None with too few labels."""
    if (
        whole.gain_square == 0.0
        or 2.0 * whole.gain_weight * whole.gain_weight < MIN_LABELS * whole.gain_square
    ):
        return None, None
    mean = whole.gain / whole.gain_weight
    square = whole.gain_squared - 2.0 * mean * whole.gain_cross + mean * mean * whole.gain_square
    return mean, math.sqrt(max(0.0, square)) / whole.gain_weight


def _of_range(k: int, of: RangeSums, evidence: float) -> RangeAgreement:
    return RangeAgreement(
        lower=ENDS[k],
        upper=ENDS[k + 1],
        announced=min(1.0, of.announced / of.weight),
        frequency=min(1.0, of.happened / of.weight),
        answers=int(of.weight),
        evidence=evidence,
    )


def _of_class(
    label: str | None, of: RangeSums, tolerance: float, more: float = 0.0
) -> ClassAgreement:
    reach = abs(of.happened - of.announced) + _Z_MEAN * math.sqrt(of.variance)
    return ClassAgreement(
        label=label,
        announced=min(1.0, of.announced / of.weight),
        frequency=min(1.0, of.happened / of.weight),
        examples=int(of.happened),
        evidence=max(0.0, of.evidence(tolerance) - more),
        factor=1.0 + reach / of.announced if of.announced else None,
    )


def _named(
    classes: Sequence[tuple[str | None, RangeSums]],
) -> Sequence[tuple[str | None, RangeSums]]:
    """Return the classes of which a sentence may be: of two, which err alike, the rarer one."""
    return classes if len(classes) != 2 else [min(classes, key=lambda one: one[1].announced)]


def _rarest(
    classes: Sequence[tuple[str | None, RangeSums]], tolerance: float
) -> ClassAgreement | None:
    rare = [
        (label, of) for label, of in classes
        if label is not None and of.announced < _RARE * tolerance * of.weight
    ]  # fmt: skip
    if not rare:
        return None
    return _of_class(*min(rare, key=lambda one: one[1].announced), tolerance)


def _unlabelled(counts: Ints) -> list[UnlabelledRange]:
    """Return the ranges with less than a quarter of the usual share of labels."""
    answers, labelled = counts.tolist()
    usual = sum(labelled) / max(1, sum(answers))
    return [
        UnlabelledRange(ENDS[k], ENDS[k + 1], n, found)
        for k, (n, found) in enumerate(zip(answers, labelled, strict=True))
        if n >= max(_MIN_ANSWERS, _MIN_SHARE * sum(answers)) and found < _LACKING * usual * n
    ]


def _standardised(excess: float, variance: float) -> float:
    return abs(excess) / math.sqrt(variance) if variance else 0.0


def _entropy(share: float) -> float:
    return share * log(share) if share > 0.0 else 0.0


@kernel
def _add(
    point: Floats,
    truth: Ints,
    weights: Floats,
    learned: Ints,
    places: Ints,
    spans: Floats,
    by_class: Floats,
    seen: Floats,
    labels: int,
) -> int:
    """Add labelled rows to the chunk under way and to the span since the start.

    `places`, shape (K,): the class of each column. `labels`: those added so far, which is returned.
    Rows whose probabilities are NaN are left out.
    """


@kernel
def _count(point: Floats, truth: Ints, counts: Ints) -> None:
    """Count answers, and those with a label, by range."""
