"""The statistics behind the verdict: whether probabilities are off or hold, and decisions help.

Everything is computed from one validity report and the stored settings, without I/O. Any program
may write to `met`, so every value is checked.

- `deviation`: a mean of y - p whose interval lies outside the tolerance. A monitor's confidence
  sequence decides first; then normal intervals over the window, at `_Z_OFF` standard errors.
- `precision`: whether accuracy less announced probability lies within the tolerance, at `_Z_HOLDS`
  standard errors, while no class is off by `_Z_SUSPECT` of them: errors of several classes may
  cancel in the accuracy. The standard error is sqrt(p (1 - p) / n) at the mean probability p: at
  most this if the probabilities are right, because p (1 - p) is concave.
- `benefit`: the gain of the decisions over the best rule that ignores the features, at `_Z_GAIN`
  standard errors. Without costs the rule is "always the most frequent class"; the gain is a
  difference of two accuracies on the same examples, and only predictions of other classes enter it.
  With costs the rule is the action with the least mean cost, `review` included.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from workers.reading.answers import number
from workers.text import share

DEFAULT_TOLERANCE = 0.02
"""The default of the setting `tolerance`."""

_Z_OFF, _Z_HOLDS, _Z_GAIN = 3.29, 1.96, 2.33  # two-sided .1 %, two-sided 5 %, one-sided 1 %
_Z_SUSPECT = 3.0  # two-sided .3 %
_NEGLIGIBLE = 0.05  # share of the rule's errors, or of its cost, below which a gain does not count
_MAX_TESTS = 100  # tests read of a report

MIN_SCORED = 100
"""Scored examples needed for any statement."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A mean of y - p that is outside the tolerance."""

    lower: float  # of its interval
    upper: float
    since: str  # its start, in words
    part: str  # the probabilities that it is about

    @property
    def words(self) -> str:
        """The deviation as "off by A to B since when", and its direction."""
        small, large = sorted((abs(self.lower), abs(self.upper)))
        way = f"the probability {self.part} is too {'low' if self.lower > 0.0 else 'high'}"
        return f"{share(small)} to {share(large)} {self.since}: {way}"


@dataclass(frozen=True, slots=True)
class Precision:
    """Accuracy and announced probability over a span, and whether they agree."""

    scored: int
    accuracy: float  # NaN if unknown, like `announced`
    announced: float
    span: str  # in words
    holds: bool  # whether the interval of the difference is within the tolerance
    needed: int  # about so many more labels are needed to decide; 0 if it holds


@dataclass(frozen=True, slots=True)
class Benefit:
    """The gain of the decisions over the best constant decision."""

    rule: str  # the class or action that is always chosen
    own: float  # accuracy, or mean cost, of the decisions
    other: float  # the same of the rule
    in_money: bool
    lower: float  # interval of the gain
    upper: float
    negligible: float  # gain that does not count
    needed: int  # about so many more labels are needed to decide

    @property
    def helps(self) -> bool | None:
        """Whether the decisions are better than the rule; None if that is not known yet."""
        if self.lower > 0.0:
            return True
        return False if self.upper <= self.negligible else None


def deviation(report: Mapping[str, Any], tolerance: float) -> Deviation | None:
    """Return a deviation outside the tolerance; None if there is none.

    Examples
    --------
    >>> mean = {"since": 3000, "lower": 0.03, "upper": 0.09}
    >>> test = {"kind": "calibration", "scope": "class", "name": "b", "deviation": mean}
    >>> deviation({"monitors": {"tests": [test]}}, 0.02).words
    '.030 to .090 since example 3,000: the probability of class b is too low'
    """
    found = (each for each in _deviations(report) if _is_outside(each, tolerance))
    return next(found, None)


def _is_outside(mean: Deviation, tolerance: float) -> bool:
    return mean.lower > tolerance or mean.upper < -tolerance


def _deviations(report: Mapping[str, Any]) -> Iterator[Deviation]:
    tests = map(as_object, _list(as_object(report.get("monitors")).get("tests"))[:_MAX_TESTS])
    for test in tests:
        mean, scope = as_object(test.get("deviation")), test.get("scope")
        since = number(mean.get("since"))
        if test.get("kind") == "calibration" and scope in ("overall", "class") and since >= 0:
            part = "of the SVM's class"
            if scope == "class":
                part = f"of class {str(test.get('name'))[:60]}"
            start = f"since example {since:,.0f}"
            yield Deviation(number(mean.get("lower")), number(mean.get("upper")), start, part)
    window = _window(report)
    overall = as_object(window.get("overall"))
    yield _of_window(overall, "accuracy", overall.get("scored"), "of the predicted label")
    for each in map(as_object, _list(window.get("classes"))):
        part = f"of class {str(each.get('label'))[:60]}"
        yield _of_window(each, "frequency", overall.get("scored"), part)


def _of_window(figures: Mapping[str, Any], happened: str, scored: Any, part: str) -> Deviation:
    announced, n = number(figures.get("probability")), number(scored)
    mean, reach = number(figures.get(happened)) - announced, _Z_OFF * _error(announced, n)
    if not n >= MIN_SCORED:
        mean = math.nan
    return Deviation(mean - reach, mean + reach, f"over the last {n:,.0f}", part)


def _error(p: float, n: float) -> float:
    """Return the standard error of a mean of y - p over n examples; NaN if it is not known."""
    return math.sqrt(max(0.0, p * (1.0 - p)) / n) if n > 0 and 0.0 <= p <= 1.0 else math.nan


def precision(report: Mapping[str, Any], tolerance: float) -> Precision:
    """Return whether accuracy and announced probability agree: over the window, else over all."""
    recent = as_object(_window(report).get("overall"))
    every = as_object(as_object(report.get("headline")).get("predicted"))
    n_recent, n_every = _count(recent.get("scored")), _count(report.get("scored"))
    spans, of_class = [], _needed_by_classes(report, tolerance)
    if recent:
        spans.append(_precision(recent, n_recent, f"over the last {n_recent:,}", tolerance))
    if not recent or (number(every.get("accuracy")) >= 0 and n_every > n_recent):
        spans.append(_precision(every, n_every, f"over all {n_every:,}", tolerance))
    found = next((span for span in spans if span.holds), spans[-1])
    return replace(found, holds=found.holds and not of_class, needed=max(found.needed, of_class))


def _needed_by_classes(report: Mapping[str, Any], tolerance: float) -> int:
    """Return how many more labels the classes need; 0 if none of them seems to be off.

    The mean of a monitor counts if it covers at least half of the scored examples; else the window.
    """
    window, found = _window(report), [0]
    n = number(as_object(window.get("overall")).get("scored"))
    least = number(report.get("scored")) / 2.0
    listed = {
        str(test.get("name")): as_object(test.get("deviation")) for test in _class_tests(report)
    }
    for each in map(as_object, _list(window.get("classes"))):
        p, mean = number(each.get("probability")), listed.get(str(each.get("label")), {})
        seen = [(number(each.get("frequency")) - p, n)]
        seen += [(number(mean.get("estimate")), number(mean.get("count")))]
        for off, count in seen[: 2 if seen[1][1] >= least else 1]:
            is_off = abs(off) > _Z_SUSPECT * _error(p, count)
            if is_off and abs(off) + _Z_HOLDS * _error(p, count) > tolerance:
                found.append(_more(abs(off), p * (1.0 - p), count, tolerance))
    return max(found)


def _class_tests(report: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    tests = map(as_object, _list(as_object(report.get("monitors")).get("tests"))[:_MAX_TESTS])
    yield from (test for test in tests if test.get("scope") == "class")


def _more(off: float, variance: float, n: float, tolerance: float) -> int:
    """Return about how many more labels settle whether a mean of y - p is within the tolerance."""
    room = tolerance / 2.0
    wanted = max(float(MIN_SCORED), variance * (_Z_HOLDS / max(room, tolerance - off)) ** 2)
    if off > room:  # examples that hold must first bring the mean back
        wanted = max(wanted, n * off / room)
    return _rounded(max(wanted - n, 1.0))


def _precision(figures: Mapping[str, Any], n: int, span: str, tolerance: float) -> Precision:
    accuracy, announced = number(figures.get("accuracy")), number(figures.get("probability"))
    off, reach = abs(accuracy - announced), _Z_HOLDS * _error(announced, n)
    known = n > 0 and not math.isnan(off + reach)
    holds = known and n >= MIN_SCORED and off + reach <= tolerance
    needed = 0
    if not holds:
        is_young = not known or n < MIN_SCORED
        variance = announced * (1.0 - announced) if known else 0.0
        needed = _more(0.0 if is_young else off, variance, n, tolerance)
    return Precision(n, accuracy, announced, span, holds, needed)


def benefit(report: Mapping[str, Any], settings: Mapping[str, Any]) -> Benefit | None:
    """Return the gain over the best constant decision; None if the report does not tell.

    Examples
    --------
    >>> legit = {"label": "legit", "examples": 970, "predicted": 1000, "accuracy": 0.97}
    >>> fraud = {"label": "fraud", "examples": 30, "predicted": 0, "accuracy": None}
    >>> report = {"windowed": {"overall": {"scored": 1000}, "classes": [fraud, legit]}}
    >>> found = benefit(report, {})
    >>> found.rule, found.own, found.other, found.helps
    ('legit', 0.97, 0.97, False)
    """
    costs = as_object(settings.get("costs"))
    if costs and (found := _in_money(report, costs)) is not None:
        return found
    return _in_labels(report)


def _in_labels(report: Mapping[str, Any]) -> Benefit | None:
    window = _window(report)
    n = _count(as_object(window.get("overall")).get("scored"))
    classes = [each for each in map(as_object, _list(window.get("classes"))) if each.get("label")]
    examples = [_count(each.get("examples")) for each in classes]
    if n < MIN_SCORED or sum(examples) > n or not classes:
        return None
    if sum(_count(each.get("predicted")) for each in classes) != n:
        return None  # more classes than a report lists
    hits = [_hits(each) for each in classes]
    best = max(range(len(classes)), key=lambda k: examples[k])
    gained = sum(hits) - hits[best]
    lost = gained - (sum(hits) - examples[best])
    gain = (gained - lost) / n
    error = math.sqrt(max(0.0, (gained + lost) / n - gain * gain) / n)
    other = examples[best] / n
    rule = str(classes[best]["label"])[:60]
    return _benefit(rule, sum(hits) / n, other, error, n)


def _hits(figures: Mapping[str, Any]) -> int:
    share_right = number(figures.get("accuracy"))
    return 0 if math.isnan(share_right) else round(share_right * _count(figures.get("predicted")))


def _in_money(report: Mapping[str, Any], costs: Mapping[str, Any]) -> Benefit | None:
    found = as_object(report.get("costs"))
    n, own = _count(found.get("scored")), number(found.get("mean"))
    always = {str(name): number(mean) for name, mean in as_object(found.get("always")).items()}
    taken = {str(name): _count(count) for name, count in as_object(found.get("taken")).items()}
    means = [mean for mean in always.values() if not math.isnan(mean)]
    if n < MIN_SCORED or math.isnan(own) or len(means) != len(always) or not means:
        return None
    rule = min(always, key=lambda name: always[name])
    try:
        square = _mean_square(costs, rule, taken, _frequencies(report))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    other = always[rule]
    gain = other - own
    error = math.sqrt(max(0.0, square - gain * gain) / n)
    return _benefit(rule[:60], own, other, error, n, in_money=True)


def _mean_square(
    costs: Mapping[str, Any],
    rule: str,
    taken: Mapping[str, int],
    frequencies: Mapping[str, float],
) -> float:
    """Return a bound on the mean square of the difference in cost between decisions and a rule.

    A report counts actions and labels, not their pairs. So the bound takes, for each label, the
    worst action that was taken; or for each action the worst label, if that is smaller.
    """
    from online_svm.metrics.cost_matrix import CostMatrix

    labels = tuple(costs)
    matrix = CostMatrix(costs, labels)
    squares = (matrix.costs - matrix.costs[:, [matrix.actions.index(rule)]]) ** 2
    counts = [taken.get(action, 0) for action in matrix.actions]
    by_action = float(squares.max(axis=0) @ counts) / sum(counts)
    if set(frequencies) != set(labels):
        return by_action
    used = squares[:, [count > 0 for count in counts]].max(axis=1)
    by_label = sum(frequencies[label] * value for label, value in zip(labels, used, strict=True))
    return min(by_action, float(by_label))


def _frequencies(report: Mapping[str, Any]) -> dict[str, float]:
    classes = map(as_object, _list(_window(report).get("classes")))
    found = {str(each.get("label")): number(each.get("frequency")) for each in classes}
    return {} if any(math.isnan(value) for value in found.values()) else found


def _benefit(
    rule: str, own: float, other: float, error: float, n: int, *, in_money: bool = False
) -> Benefit:
    gain = other - own if in_money else own - other
    negligible = _NEGLIGIBLE * (abs(other) if in_money else 1.0 - other)
    reach, decisive = _Z_GAIN * error, max(gain, negligible - gain)
    needed = _rounded(max(1.0, n * ((reach / decisive) ** 2 - 1.0) if decisive > 0.0 else n))
    return Benefit(rule, own, other, in_money, gain - reach, gain + reach, negligible, needed)


def _rounded(count: float) -> int:
    """Return a count rounded up to two digits; at most a billion."""
    count = min(count, 1e9)
    unit = float(10 ** max(0, int(math.log10(max(count, 1.0))) - 1))
    return int(math.ceil(count / unit) * unit)


def _window(report: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_object(report.get("windowed"))


def as_object(value: Any) -> Mapping[str, Any]:
    """Return a value that is an object of JSON; an empty one for any other."""
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: Any) -> int:
    found = number(value)
    return int(found) if found >= 0 else 0
