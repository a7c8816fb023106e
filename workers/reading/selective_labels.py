"""Detect labels that come for one side of a decision alone, from a report and recent answers.

If only approved cases get a label, every figure is about them. By Bayes' rule, the share of the
labelled among the answers of one side is proportional to the share of this side among the labelled,
divided by its share among all answers. The report has the first, recent answers the second.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workers.reading.answers import is_prediction, number
from workers.reading.benefit import as_object

MAX_COMPARED_ANSWERS = 400
"""Newest entries of `out` whose answers are compared."""

_MIN_ANSWERS = 100  # answers, scored examples and examples without a label
_MIN_GIVEN_UP = 0.1  # share of the examples that were given up without a label
_MIN_SHARE = 0.1  # of a side among the answers
_MAX_RATIO = 0.1  # of the two shares


def selective_labels(report: Mapping[str, Any], read: Callable[[], Sequence[Any]]) -> str:
    """Return a sentence about the side that gets no labels; "" if there is none.

    `report`: the newest report. `read` returns parsed entries of `out`; it is called only if many
    examples lack a label. Feeds with a label budget have no such side.
    """
    if report.get("budget") is not None or not _lacks_labels(report):
        return ""
    answers = [each for each in read() if is_prediction(each) and each.get("status") == "ok"]
    for name, scored in (("action", _by_action(report)), ("label", _by_label(report))):
        total = sum(scored.values())
        given = Counter(str(each[name]) for each in answers if each.get(name) is not None)
        count = sum(given.values())
        if min(total, count) < _MIN_ANSWERS:
            continue
        for side, answered in given.most_common():
            share = answered / count
            if share >= _MIN_SHARE and scored.get(side, total) <= _MAX_RATIO * share * total:
                return (
                    f"the {name} {side} is given in {100 * share:.0f} % of the last answers, but "
                    f"in {scored[side]:,.0f} of {total:,.0f} that got a label: the figures hold "
                    "for the labelled alone. label_budget, in a fork, lets them hold for all"
                )
    return ""


def _lacks_labels(report: Mapping[str, Any]) -> bool:
    counts = as_object(as_object(report.get("labels")).get("counts"))
    given_up = number(counts.get("censored")) + number(counts.get("dropped"))
    return given_up >= max(_MIN_ANSWERS, _MIN_GIVEN_UP * (given_up + number(report.get("n"))))


def _by_action(report: Mapping[str, Any]) -> dict[str, float]:
    """Return the scored examples by the action in their answer, since the feed began."""
    taken = as_object(as_object(report.get("costs")).get("taken"))
    return {action: count for action, each in taken.items() if (count := number(each)) >= 0}


def _by_label(report: Mapping[str, Any]) -> dict[str, float]:
    """Return the examples of the window by the label in their answer."""
    classes = as_object(report.get("windowed")).get("classes")
    found = [each for each in classes or () if isinstance(each, dict)]
    return {str(each.get("label")): max(0.0, number(each.get("predicted"))) for each in found}
