"""The facts of a feed's validity: one table, in which each figure is worded and formatted once.

`status`, page, report, card and `--json` print the sentences of this table, so they cannot differ.
The facts are computed from a `FeedStatus` without I/O. Any program may write to `met`, so every
value is checked; a figure that is missing or no number makes no fact.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from online_svm.config import SCORE
from online_svm.metrics.estimate import Estimate
from online_svm.stream.alarm import since_example
from workers.reading.agreement import MIN_SCORED, ReportedAgreement
from workers.reading.answers import as_list, as_object, number
from workers.reading.dates import Dates, date_of
from workers.reading.incidents import AnyNotice, Incident, SilencedNotice, alarm_line
from workers.reading.label_facts import budget_text, late_label_texts, pending_text, promise_text
from workers.reading.status import MAX_ALARMS, MAX_NAMED, FeedStatus
from workers.text import counted, four_digits, share

_Z = 3.29  # two-sided .1 %, as for the verdict
_MAX_CHARS = 300  # characters of a text that another program may have written
_MAX_PARTS = 2000  # classes, values of a slice and slices that are read of a report
_Z_95 = 1.96  # standard errors from the middle of an interval to its end
_SEEN = 3.0  # standard errors, below which a calibration error cannot be seen


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement about a feed.

    A figure has a value, and may have bounds: an interval at 95 %.
    """

    name: str  # at most nine characters
    sentence: str
    unit: str = ""  # such as "share", "cost", "nats"
    span: str = ""  # what it is over, such as "the last 1,000 scored"
    value: float | None = None
    lower: float | None = None
    upper: float | None = None


def facts(status: FeedStatus) -> list[Fact]:
    """Return the facts of a feed, in the order in which they are shown.

    Examples
    --------
    >>> overall = {"scored": 500, "accuracy": 0.8, "probability": 0.79, "log_loss": 0.41}
    >>> report = {"n": 600, "scored": 550, "windowed": {"overall": overall}}
    >>> for fact in facts(FeedStatus(feed="mail", report=report)):
    ...     print(f"{fact.name}: {fact.sentence}")
    accuracy: .800 (.762 to .834) right, .790 announced, over the last 500 scored
    log loss: .410
    in all: nothing scored yet
    """
    report = status.report or {}
    dates = status.dates
    found = list(_incident(status.incident, dates))
    found += _texts("notice", _listed(status.notices, "open notice", dates))
    found += _texts("silenced", _listed(status.silenced_notices, "silenced notice", dates))
    found += _texts("selective", [status.selective_labels])
    if status.report is not None:
        found += [*_windowed(report), *_cumulative(report), *_limits(report, status.settings)]
    found += [
        *_texts("score", [score_text(report)]),
        *_costs(report),
        *_texts("promise", [promise_text(as_object(report.get("promise")))]),
        *_sets(as_object(report.get("sets"))),
        *_texts("labels", _labels(status)),
        *_texts("budget", [budget_text(as_object(report.get("budget")))]),
        *_texts("features", [feature_text(as_object(report.get("features")))]),
        *_texts("guarantee", [_guarantee(status.answer)]),
    ]
    return found


def _texts(name: str, sentences: Iterable[str | None]) -> Iterator[Fact]:
    """Yield a fact for each sentence that is not empty."""
    for sentence in sentences:
        if sentence:
            yield Fact(name, sentence)


def _incident(incident: Incident | None, dates: Dates) -> Iterator[Fact]:
    if incident is None:
        return
    alarms, kinds = counted(len(incident.parts), "alarm"), ", ".join(sorted(incident.kinds))
    since = since_example(incident.since, date_of(dates, incident.since))
    yield Fact("incident", f"{since}, {alarms}, of {kinds}")
    found = incident.findings
    yield from _texts("alarm", [alarm_line(alarm, dates) for alarm in found[:MAX_ALARMS]])
    if (more := len(found) - MAX_ALARMS) > 0:
        yield Fact("alarm", f"and {counted(more, 'other test')}")


def _listed(
    notices: Sequence[AnyNotice | SilencedNotice], noun: str, dates: Dates
) -> Iterator[str]:
    for notice in notices[:MAX_NAMED]:
        yield notice.words_since(date_of(dates, notice.since))
    if (more := len(notices) - MAX_NAMED) > 0:
        yield f"and {counted(more, noun)} more"


def _windowed(report: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the figures over the last scored examples, and the parts that are farthest off."""
    windowed = as_object(report.get("windowed"))
    overall = as_object(windowed.get("overall"))
    if not windowed:
        return
    scored = number(overall.get("scored"))
    if not scored > 0:
        yield Fact("accuracy", "nothing scored yet")
        return
    span, bounds = f"the last {scored:,.0f} scored", as_object(windowed.get("bounds"))
    yield from _accuracy("accuracy", overall, scored, span, bounds.get("accuracy"))
    yield from _loss("log loss", "nats", overall.get("log_loss"), span, bounds.get("log_loss"))
    parts = [(name, number(overall.get(name))) for name in _BRIER_PARTS]
    more = " ".join(f"{_BRIER_PARTS[name]} {name} {share(value)}" for name, value in parts)
    is_known = not math.isnan(sum(value for _, value in parts))
    brier, ends = overall.get("brier"), bounds.get("brier")
    yield from _loss("Brier", "squared", brier, span, ends, f" {more}" * is_known)
    yield from _calibration_error(overall, span, bounds.get("accuracy"))
    is_equal = report.get("budget") is None
    yield from _rare_class(windowed, scored, is_equal)
    named = ("class", _classes(windowed, is_equal)), ("slice", _slices(windowed, is_equal))
    for name, of in named:
        if (worst := farthest_off(of)) is not None:
            yield Fact(name, f"worst {worst.sentence}", "share", span, worst.figure.value)


_BRIER_PARTS = {"miscalibration": "=", "discrimination": "-", "uncertainty": "+"}


def _bounded(value: Any, bounds: Any) -> Estimate:
    """Return a figure with the interval that a report gives; NaN where it gives none."""
    ends = [number(each) for each in as_list(bounds)]
    return Estimate(number(value), *(ends if len(ends) == 2 else (math.nan, math.nan)))


def _accuracy(
    name: str, own: Mapping[str, Any], scored: float, span: str, bounds: Any
) -> Iterator[Fact]:
    """Yield accuracy, with its interval, beside the probability that was announced."""
    figure = _bounded(own.get("accuracy"), bounds)
    if bounds is None:  # an exported file has no reports
        figure = share_of(own.get("accuracy"), scored)
    if math.isnan(figure.value):
        return
    lower, p, upper = (number(own.get(key)) for key in ("lower", "probability", "upper"))
    ends = "" if math.isnan(lower + upper) else f" in {share(lower)} to {share(upper)}"
    announced = "" if math.isnan(p) else f", {share(p)} announced{ends}"
    sentence = f"{figure} right{announced}, over {span}{_z(number(own.get('z')))}"
    yield Fact(name, sentence, "share", span, figure.value, figure.lower, figure.upper)


def _loss(
    name: str, unit: str, value: Any, span: str, bounds: Any, more: str = ""
) -> Iterator[Fact]:
    figure = _bounded(value, bounds)
    if not math.isnan(figure.value):
        ends = figure.value, figure.lower, figure.upper
        yield Fact(name, f"{figure}{more}", unit, span, *ends)


def _calibration_error(overall: Mapping[str, Any], span: str, bounds: Any) -> Iterator[Fact]:
    """Yield the calibration error, or the bound below which none can be seen.

    Under right probabilities the debiased square over b = 15 bins has the standard deviation
    sqrt(2 b) v / n, with v the mean of p (1 - p). 1.645 of it is `_SEEN` squared, times v / n. The
    accuracy a has the squared standard error a (1 - a) / n, also where labels have weights.
    """
    error, accuracy, brier = (
        number(overall.get(name)) for name in ("calibration_error", "accuracy", "brier")
    )
    known = _bounded(accuracy, bounds)
    if math.isnan(error + known.upper - known.lower):
        return
    spread = accuracy * (1.0 - accuracy)
    smaller = min(1.0, abs(brier) / spread) if spread > 0.0 else 1.0
    unseen = _SEEN * (known.upper - known.lower) / (2.0 * _Z_95) * math.sqrt(smaller)
    text = f"below {share(unseen)}" if error <= unseen else f"{share(error)}, less chance"
    bound = max(error, unseen)
    yield Fact("error", f"calibration error {text}", "share", span, error, None, bound)


@dataclass(frozen=True, slots=True)
class PartFigure:
    """A class, or a value of a slice, over the window: what happened and what was announced."""

    name: str
    examples: float
    figure: Estimate  # share of examples of the class, or of right answers in the slice
    announced: float  # mean announced probability of the same event
    z: float  # their difference, in the standard deviations of exact probabilities
    is_class: bool

    @property
    def sentence(self) -> str:
        """The part in one sentence."""
        what = "came in" if self.is_class else "right"
        shown = f"{what} {self.figure}" if self.is_class else f"{self.figure} {what}"
        announced = f"{share(self.announced)} announced, over {self.examples:,.0f}"
        return f"{self.name}: {shown}, {announced}{_z(self.z)}"


def parts(report: Mapping[str, Any]) -> list[PartFigure]:
    """Return the classes and slices of a report, by decreasing |z|."""
    windowed, is_equal = as_object(report.get("windowed")), report.get("budget") is None
    found = [*_classes(windowed, is_equal), *_slices(windowed, is_equal)]
    found.sort(key=lambda part: (-abs(part.z) if not math.isnan(part.z) else 0.0, part.name))
    return found


def _classes(windowed: Mapping[str, Any], is_equal: bool) -> Iterator[PartFigure]:
    scored = number(as_object(windowed.get("overall")).get("scored"))
    for given in map(as_object, as_list(windowed.get("classes"))[:_MAX_PARTS]):
        label = given.get("label")
        name = "class not seen yet" if label is None else f"class {str(label)[:200]}"
        keys = ("examples", "probability", "z")
        examples, announced, z = (number(given.get(key)) for key in keys)
        figure = share_of(given.get("frequency"), scored, is_equal)
        yield PartFigure(name, examples, figure, announced, z, is_class=True)


def _slices(windowed: Mapping[str, Any], is_equal: bool) -> Iterator[PartFigure]:
    for name, values in list(as_object(windowed.get("slices")).items())[:_MAX_PARTS]:
        for given in map(as_object, as_list(values)[:_MAX_PARTS]):
            value, scores = given.get("value"), as_object(given.get("scores"))
            title = f"{name[:200]}: all other values"
            title = title if value is None else f"{name[:200]} = {str(value)[:200]}"
            keys = ("scored", "probability", "z")
            scored, announced, z = (number(scores.get(key)) for key in keys)
            figure = share_of(scores.get("accuracy"), scored, is_equal)
            yield PartFigure(title, scored, figure, announced, z, is_class=False)


def farthest_off(given: Iterable[PartFigure]) -> PartFigure | None:
    """Return the part with the greatest |z|; of equals the last, which is the positive class."""
    known = [part for part in reversed([*given]) if not math.isnan(part.z) and part.examples > 0]
    return max(known, key=lambda part: abs(part.z), default=None)


def _rare_class(windowed: Mapping[str, Any], scored: float, is_equal: bool) -> Iterator[Fact]:
    """Yield recall and precision of the rarest class, if it has less than half an equal share."""
    found = [each for each in map(as_object, as_list(windowed.get("classes"))) if each.get("label")]
    found = [each for each in found if number(each.get("examples")) > 0]
    rarest = min(found, key=lambda each: number(each.get("examples")), default=None)
    if rarest is None or number(rarest.get("examples")) * 2 * len(found) >= scored:
        return
    examples, taken, right = (
        number(rarest.get(name)) for name in ("examples", "predicted", "accuracy")
    )
    hits = 0.0 if math.isnan(right) else round(right * taken)
    recall = share_of(hits / examples, examples, is_equal)
    precision = share_of(right, taken, is_equal)
    name = str(rarest["label"])[:200]
    text = f"class {name}: recall {recall} of {examples:,.0f}, precision {precision}"
    yield Fact("rare", text, "share", "", recall.value, recall.lower, recall.upper)


def share_of(value: Any, total: float, is_equal: bool = True) -> Estimate:
    """Return a share of so many examples with its interval; NaN where it is no share.

    Without an interval if not `is_equal`: labels that stand for several examples are fewer.
    """
    found = number(value)
    if not is_equal or not (0.0 <= found <= 1.0 and 0 < total < 2**31):
        return Estimate(found, math.nan, math.nan)
    from online_svm.metrics.binomial_interval import proportion  # loads numpy

    known = proportion(min(round(found * total), int(total)), int(total))
    return Estimate(found, known.lower, known.upper)


def _z(z: float) -> str:
    """Return a difference in standard deviations, as the end of a line."""
    return "" if math.isnan(z) else f" ({z:+.1f} standard deviations)"


def _cumulative(report: Mapping[str, Any]) -> Iterator[Fact]:
    headline, bounds = (as_object(report.get(name)) for name in ("headline", "bounds"))
    scored, n = number(report.get("scored")), number(report.get("n"))
    span = f"{scored:,.0f} scored of the first {n:,.0f} learned"
    own = as_object(headline.get("predicted"))
    found = list(_accuracy("in all", own, scored, span, bounds.get("accuracy")))
    yield from found or [Fact("in all", "nothing scored yet")]
    loss, brier = (_bounded(headline.get(name), bounds.get(name)) for name in ("log_loss", "brier"))
    if bounds and not math.isnan(loss.value + brier.value):
        text = f"log loss {loss}, Brier {brier}; these intervals hold at all times together"
        yield Fact("in all", text, "nats", span, loss.value, loss.lower, loss.upper)


def _limits(report: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the bound within which the probabilities are known to be right."""
    agreed = ReportedAgreement.of(report, as_object(settings.get("predictor")))
    if agreed.bound is not None:
        words = f"{agreed.words}, at 95 %"
        yield Fact("limits", words, "share", agreed.since.words, None, None, agreed.bound)


def cost_text(costs: Mapping[str, Any]) -> str:
    """Return the mean cost of the decisions, and of simple rules, as text; "" if there is none.

    Examples
    --------
    >>> means = {"mean": 0.41, "by_label": 0.62, "always": {"bad": 0.7, "good": 1.5}}
    >>> cost_text({"scored": 1190} | means)
    '.41 an example over 1,190; .62 by the most probable label, .7 always bad, 1.5 always good'
    """
    own, *others = cost_rules(costs) or [("", math.nan)]
    if math.isnan(own[1]):
        return "nothing scored yet" if costs else ""
    rules = ", ".join(f"{four_digits(mean)} {name}" for name, mean in others)
    lower, upper, scored = (number(costs.get(name)) for name in ("lower", "upper", "scored"))
    ends = f" ({four_digits(lower)} to {four_digits(upper)})" if lower <= upper else ""
    return f"{four_digits(own[1])}{ends} an example over {scored:,.0f}; {rules}"


def cost_rules(costs: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the mean cost of the actions taken, and then that of each simple rule, by name."""
    always = [
        (f"always {name[:40]}", number(mean))
        for name, mean in as_object(costs.get("always")).items()
    ]
    found = [("the actions taken", number(costs.get("mean")))]
    return [*found, ("by the most probable label", number(costs.get("by_label"))), *always]


def _costs(report: Mapping[str, Any]) -> Iterator[Fact]:
    costs = as_object(report.get("costs"))
    if text := cost_text(costs):
        ends = (number(costs.get(name)) for name in ("mean", "lower", "upper"))
        scored = number(costs.get("scored"))
        yield Fact("costs", text, "cost", f"{scored:,.0f} scored", *ends)


def _sets(sets: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield how often a label was in the set of its answer, and the size of the sets."""
    labels, size = number(sets.get("recent_labels")), number(sets.get("size"))
    figure = share_of(sets.get("recent_coverage"), labels)
    if math.isnan(figure.value):
        return
    classes = "" if math.isnan(size) else f"; sets have {four_digits(size)} classes on average"
    span = f"the last {labels:,.0f} labels"
    sentence = f"{figure} of {span} were in the set{classes}"
    yield Fact("sets", sentence, "share", span, figure.value, figure.lower, figure.upper)


def _labels(status: FeedStatus) -> list[str]:
    """Return the texts about delayed labels, with the present counts where they are known."""
    labels = as_object((status.report or {}).get("labels"))
    if labels:
        counts = {**as_object(labels.get("counts")), **(status.pending or {})}
        return late_label_texts(counts, labels)
    if status.pending is None:
        return []
    waits = status.pending["pending"] > status.pending["unlabelled"]
    note = "those with one are learned when their horizon has passed, unless --maturity arrival"
    return [pending_text(status.pending), note * waits]


def feature_text(features: Mapping[str, Any]) -> str:
    """Return the number of features of each kind as text; unused features are named.

    Examples
    --------
    >>> kinds = {"age": {"kind": "number"}, "note": {"kind": "text"}, "land": {"kind": "category"}}
    >>> feature_text(kinds)
    '1 number, 1 category; set aside as text: note'
    """
    plural = {"number": "numbers", "boolean": "booleans", "category": "categories", "time": "times"}
    by_kind: dict[Any, list[str]] = {}
    for name, feature in features.items():
        by_kind.setdefault(as_object(feature).get("kind"), []).append(name)
    counts = [
        counted(len(names), kind, plural[kind]) for kind in plural if (names := by_kind.get(kind))
    ]
    found = [", ".join(counts)] if counts else []
    if unused := by_kind.get("text", []):
        more = f" and {len(unused) - MAX_NAMED:,} more" if len(unused) > MAX_NAMED else ""
        named = ", ".join(name[:40] for name in unused[:MAX_NAMED])
        found.append(f"set aside as text: {named}{more}")
    return "; ".join(found)


def _guarantee(answer: Mapping[str, Any]) -> str:
    guarantee, reason = answer.get("guarantee"), answer.get("reason")
    because = f": {str(reason)[:_MAX_CHARS].rstrip('.')}" if reason else ""
    return f"{str(guarantee)[:60]}{because}" if guarantee is not None else ""


def score_text(report: Mapping[str, Any]) -> str | None:
    """Return how far the given score is off, and what calibrating it changed, in one line.

    `report` is a validity report. None without the setting `scores`, for a margin, or before there
    are enough labels.

    Examples
    --------
    >>> score = {"predicted": {"accuracy": 0.81, "probability": 0.92}, "log_loss": 0.58}
    >>> ours = {"predicted": {"accuracy": 0.87, "probability": 0.868}, "log_loss": 0.31}
    >>> score_text({"scored": 2000, "headline": ours, "maps": {"score": score}})
    'as it came .810 right where .920 was announced, off by .090 to .130; log loss .580, ours .310'
    """
    given = as_object(as_object(report.get("maps")).get(SCORE))
    predicted, scored = as_object(given.get("predicted")), number(report.get("scored"))
    right, announced = number(predicted.get("accuracy")), number(predicted.get("probability"))
    losses = [number(each.get("log_loss")) for each in (given, as_object(report.get("headline")))]
    if not scored >= MIN_SCORED or math.isnan(right + announced + sum(losses)):
        return None
    off = abs(right - announced)
    reach = _Z * math.sqrt(max(0.0, announced * (1.0 - announced)) / scored)
    states = (
        f"off by {share(off - reach)} to {share(off + reach)}" if off > reach else "not shown off"
    )
    return (
        f"as it came {share(right)} right where {share(announced)} was announced, {states}; "
        f"log loss {share(losses[0])}, ours {share(losses[1])}"
    )
