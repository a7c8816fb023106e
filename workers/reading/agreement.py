"""What the figures of a report's `agreement` say: off, changed, right within a bound, of use.

The thresholds are those of one look at a feed of any length. `online_svm.metrics.agreement` has the
formulas of the figures. Any program may write to `met`, so every value is checked.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from online_svm.stream.alarm import of_hundred
from workers.reading.answers import as_list, as_object, number
from workers.text import counted, share

DEFAULT_TOLERANCE = 0.02
"""The default of the setting `tolerance`."""

MIN_SCORED = 100
"""Scored examples needed for any statement."""

_EVIDENCE = 8.0  # log likelihood ratio from which a range or a class is off
_APART = math.sqrt(1.5)  # of the tolerance: a certain error of the ranges that is off
_BOUNDS = (1.0, 1.5, 2.5)  # times the tolerance: the bounds that a sentence names
_RIGHT_FACTOR, _RARE_EXAMPLES = 1.5, 60  # what a rare class must be known by
_CHANGE_FROM = 1.5  # times the labels of the last span: before, a change is only a beginning
_Z_GAIN, _NEGLIGIBLE = 2.33, 0.02  # one-sided 1 %; of the labels' entropy
_UNLABELLED_SHARE = 0.05  # of the answers: ranges that lack labels and hold more are named
_LACKING = 0.25  # of the usual share of labels: with more of them, labels have not stopped
_LOG_MILLION, _MIN_SILENT = math.log(1e6), 50.0


@dataclass(frozen=True, slots=True)
class Span:
    """The figures of a span, and its name in a sentence."""

    figures: Mapping[str, Any]
    words: str  # as "over the last 1,000"

    @property
    def labels(self) -> int:
        """Number of labels."""
        found = number(self.figures.get("labels"))
        return int(found) if found >= 0 else 0

    def __getitem__(self, name: str) -> float:
        return number(self.figures.get(name))


@dataclass(frozen=True, slots=True)
class ReportedAgreement:
    """What a report says of announced probabilities and labels."""

    last: Span
    since: Span
    tolerance: float
    event: str | None  # of which a range's probability is; None: that the predicted label is right
    is_of_score: bool  # whether the probabilities are a watched score, not those of the answers
    gone: str  # a class that no longer comes, or ""
    new: str  # a class that was never announced, or ""

    @classmethod
    def of(cls, report: Mapping[str, Any], settings: Mapping[str, Any]) -> "ReportedAgreement":
        """Return the agreement of a report; `settings` are those of the predictor."""
        found = as_object(report.get("agreement"))
        last, since = as_object(found.get("last")), as_object(found.get("since"))
        event, start = found.get("event"), number(found.get("start"))
        in_all = Span(since, "")
        words = f"over all {in_all.labels:,}" if start == 0 else f"over the last {in_all.labels:,}"
        return cls(
            last=Span(last, f"over the last {Span(last, '').labels:,}"),
            since=Span(since, words),
            tolerance=number(settings.get("tolerance", DEFAULT_TOLERANCE)),
            event=None if event is None else str(event)[:60],
            is_of_score=settings.get("score_use") == "watched",
            gone=_class_with(report, announced=True),
            new=_class_with(report, announced=False),
        )

    @property
    def spans(self) -> tuple[Span, Span]:
        """The last labels, and those since the start or the last change."""
        return self.last, self.since

    def off(self) -> tuple[str, str] | None:
        """Return where probabilities are off, and what to do; None if they are not."""
        found = [each for span in self.spans for each in self._off(span)]
        return max(found)[1:] if found else None

    def _off(self, span: Span) -> Iterator[tuple[float, str, str]]:
        """Yield evidence, sentence and advice for what is off in a span."""
        of_range, of_class = (as_object(span.figures.get(name)) for name in ("range", "mean"))
        evidence = number(of_class.get("evidence"))
        if evidence >= _EVIDENCE:
            label = str(of_class.get("label"))[:60]
            announced, came = (number(of_class.get(name)) for name in ("announced", "frequency"))
            what = of_hundred(f"class {label}", announced, came)
            yield evidence, f"{what}, {span.words}", self._advice_on(label)
        evidence = number(of_range.get("evidence"))
        if evidence >= _EVIDENCE:
            announced, came = (number(of_range.get(name)) for name in ("announced", "frequency"))
            ends = " to ".join(share(number(of_range.get(name))) for name in ("lower", "upper"))
            of = "" if self.event is None else f" for {self.event}"
            noun = "scores" if self.is_of_score else "answers"
            what = of_hundred(f"{noun} of {ends}{of}", announced, came)
            advice = f"Do not act on these {noun}. No test has raised an alarm."
            yield evidence, f"{what}, {span.words}", advice
        if span["apart"] > _APART * self.tolerance:
            what = f"probabilities differ from frequencies by {share(span['apart'])}"
            advice = "See the reliability diagram. No test has raised an alarm."
            yield 0.0, f"{what}, {span.words}", advice

    def _advice_on(self, label: str) -> str:
        if self.gone and self.new:
            return f"Class {self.gone} no longer comes, class {self.new} is new: was it renamed?"
        if self.gone == label:
            return f"Class {label} no longer comes."
        if self.new == label:
            return f"Class {label} is new."
        return f"See why class {label} comes more or less often than the features say."

    @property
    def has_changed(self) -> bool:
        """Whether the last labels differ from what was announced for them."""
        return self.last["change"] >= 1.0

    @property
    def is_lasting(self) -> bool:
        """Whether a change is of the last labels alone, and not of all there are."""
        return self.since.labels > _CHANGE_FROM * self.last.labels

    @property
    def bound(self) -> float | None:
        """Bound within which the probabilities are right, at 95 %; None if none is known yet."""
        bounds = (factor * self.tolerance for factor in _BOUNDS)
        return next((bound for bound in bounds if self.since["within"] <= bound), None)

    @property
    def rare(self) -> tuple[str, float, int] | None:
        """Name, factor, and examples that are missing, of a class announced rarely, if any."""
        of = as_object(self.since.figures.get("rare"))
        if not of:
            return None
        examples, factor = number(of.get("examples")), number(of.get("factor"))
        missing = 0 if factor <= _RIGHT_FACTOR else max(1, _RARE_EXAMPLES - int(examples or 0))
        return str(of.get("label"))[:60], factor, missing

    @property
    def words(self) -> str:
        """How well the probabilities agree, as "right within .02 over the last 3,200"."""
        bound, rare = self.bound, self.rare
        assert bound is not None
        of_rare = f", class {rare[0]} within a factor of {rare[1]:.1f}" if rare else ""
        of = "the watched score is " * self.is_of_score
        return f"{of}right within {bound:.2g}{of_rare} {self.since.words}".replace(" 0.", " .", 1)

    @property
    def needed(self) -> str:
        """About how many labels are missing, in words."""
        n, within = self.since.labels, self.since["within"]
        if self.rare is not None and self.rare[2]:
            return f"needs about {self.rare[2]:,} more examples of class {self.rare[0]}"
        more = float(MIN_SCORED - n)
        if self.has_changed:
            more = _CHANGE_FROM * self.last.labels - n
        elif within > 0.0:
            more = n * ((within / (_BOUNDS[-1] * self.tolerance)) ** 2 - 1.0)
        return f"needs about {counted(_rounded(max(more, 1.0)), 'more label')}"

    @property
    def helps(self) -> bool | None:
        """Whether the probabilities are better than the base rate; None if not known yet."""
        gain, reach = self.since["gain"], _Z_GAIN * self.since["gain_error"]
        if gain - reach > 0.0:
            return True
        return False if gain + reach < _NEGLIGIBLE * self.since["entropy"] else None


def _class_with(report: Mapping[str, Any], *, announced: bool) -> str:
    """Return a class of the window that was announced and did not come, or the other way round."""
    for each in map(as_object, as_list(as_object(report.get("windowed")).get("classes"))):
        stated, happened = number(each.get("probability")), number(each.get("frequency"))
        missing, present = (happened, stated) if announced else (stated, happened)
        if missing <= 0.002 and present >= 0.02 and each.get("label") is not None:
            return str(each["label"])[:60]
    return ""


def unlabelled_part(report: Mapping[str, Any]) -> str:
    """Return which answers get no labels, and which do; "" if all parts get some."""
    found = as_object(report.get("agreement"))
    ranges = [as_object(each) for each in as_list(found.get("unlabelled"))]
    answers, labelled = (
        sum(max(0.0, number(each.get(name))) for each in ranges) for name in ("answers", "labelled")
    )
    if not answers >= _UNLABELLED_SHARE * number(found.get("answers")) or not ranges:
        return ""
    lower = min(number(each.get("lower")) for each in ranges)
    upper = max(number(each.get("upper")) for each in ranges)
    event = found.get("event")
    of = "" if event is None else f" for {str(event)[:60]}"
    return (
        f"answers of {share(lower)} to {share(upper)}{of} get no labels: {labelled:,.0f} of the "
        f"last {answers:,.0f} have one"
    )


def silent(answers: int, learned: int, usual: float, delay: float) -> bool:
    """Return whether labels have stopped, or nearly so.

    `answers` were given since a report and `learned` labels came; `usual` is the share of answers
    with a label, and `delay` the answers that a label usually takes. The test is a likelihood ratio
    at a level of one in a million.

    Examples
    --------
    >>> silent(40, 0, 1.0, 0), silent(60, 0, 1.0, 0), silent(60, 0, 0.1, 0), silent(900, 2, 0.1, 0)
    (False, True, False, True)
    """
    waited, rate = answers - delay, min(usual, 0.9999)
    if waited < _MIN_SILENT or not rate > 0.0 or learned >= _LACKING * rate * waited:
        return False
    f = learned / waited
    distance = (1.0 - f) * math.log((1.0 - f) / (1.0 - rate))
    distance += f * math.log(f / rate) if f else 0.0
    return waited * distance >= _LOG_MILLION


def _rounded(count: float) -> int:
    """Return a count rounded up to two digits; at most a billion."""
    count = min(count, 1e9)
    unit = float(10 ** max(0, int(math.log10(max(count, 1.0))) - 1))
    return int(math.ceil(count / unit) * unit)
