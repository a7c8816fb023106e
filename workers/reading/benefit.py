"""What decisions gain over the best constant decision, from one report and the stored settings.

Without costs the constant decision is the most frequent class: two accuracies on the same examples.
With costs it is the action with the least mean cost, `review` included, and the gain is given at
`_Z_GAIN` standard errors. Any program may write to `met`, so every value is checked.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workers.reading.answers import number
from workers.text import four_digits, share

DEFAULT_TOLERANCE = 0.02
"""The default of the setting `tolerance`."""

_Z_GAIN = 2.33  # one-sided 1 %
_NEGLIGIBLE = 0.05  # share of the rule's cost, below which a gain does not count

MIN_SCORED = 100
"""Scored examples needed for any statement."""


@dataclass(frozen=True, slots=True)
class CostSaving:
    """The mean cost of the decisions, and of the best constant decision."""

    rule: str  # the action that is always chosen
    own: float
    other: float
    error: float  # standard error of the difference

    @property
    def helps(self) -> bool | None:
        """Whether the decisions are better than the rule; None if that is not known yet."""
        gain, reach = self.other - self.own, _Z_GAIN * self.error
        if gain - reach > 0.0:
            return True
        return False if gain + reach <= _NEGLIGIBLE * abs(self.other) else None

    @property
    def words(self) -> str:
        """Both costs, as ".9 an example, 1.5 always review"."""
        return f"{four_digits(self.own)} an example, {four_digits(self.other)} always {self.rule}"


def accuracies(report: Mapping[str, Any]) -> str:
    """Return the accuracy of the labels and of always the most frequent class; "" if unknown.

    Examples
    --------
    >>> legit = {"label": "legit", "examples": 970, "predicted": 1000, "accuracy": 0.97}
    >>> fraud = {"label": "fraud", "examples": 30, "predicted": 0, "accuracy": None}
    >>> accuracies({"windowed": {"overall": {"scored": 1000}, "classes": [fraud, legit]}})
    '.970 right, always legit .970'
    """
    window = as_object(report.get("windowed"))
    n = _count(as_object(window.get("overall")).get("scored"))
    classes = [each for each in map(as_object, as_list(window.get("classes"))) if each.get("label")]
    examples = [_count(each.get("examples")) for each in classes]
    if n < MIN_SCORED or sum(examples) > n or not classes:
        return ""
    if sum(_count(each.get("predicted")) for each in classes) != n:
        return ""  # more classes than a report lists
    hits = sum(_hits(each) for each in classes)
    best = max(range(len(classes)), key=lambda k: examples[k])
    rule = str(classes[best]["label"])[:60]
    return f"{share(hits / n)} right, always {rule} {share(examples[best] / n)}"


def _hits(figures: Mapping[str, Any]) -> int:
    share_right = number(figures.get("accuracy"))
    return 0 if math.isnan(share_right) else round(share_right * _count(figures.get("predicted")))


def saving(report: Mapping[str, Any], settings: Mapping[str, Any]) -> CostSaving | None:
    """Return the saving of decisions by costs; None without costs, or if the report does not tell.

    `settings`: those of the predictor.
    """
    costs = as_object(settings.get("costs"))
    found = as_object(report.get("costs"))
    n, own = _count(found.get("scored")), number(found.get("mean"))
    always = {str(name): number(mean) for name, mean in as_object(found.get("always")).items()}
    taken = {str(name): _count(count) for name, count in as_object(found.get("taken")).items()}
    means = [mean for mean in always.values() if not math.isnan(mean)]
    if n < MIN_SCORED or math.isnan(own) or len(means) != len(always) or not means or not costs:
        return None
    rule = min(always, key=lambda name: always[name])
    try:
        square = _mean_square(costs, rule, taken, _frequencies(report))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    gain = always[rule] - own
    error = math.sqrt(max(0.0, square - gain * gain) / n)
    return CostSaving(rule[:60], own, always[rule], error)


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
    classes = map(as_object, as_list(as_object(report.get("windowed")).get("classes")))
    found = {str(each.get("label")): number(each.get("frequency")) for each in classes}
    return {} if any(math.isnan(value) for value in found.values()) else found


def rounded(count: float) -> int:
    """Return a count rounded up to two digits; at most a billion."""
    count = min(count, 1e9)
    unit = float(10 ** max(0, int(math.log10(max(count, 1.0))) - 1))
    return int(math.ceil(count / unit) * unit)


def as_object(value: Any) -> dict[str, Any]:
    """Return a value that is an object of JSON; an empty one for any other."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a value that is a list of JSON; an empty one for any other."""
    return value if isinstance(value, list) else []


def _count(value: Any) -> int:
    found = number(value)
    return int(found) if found >= 0 else 0
