"""What is said of labels: late ones, a budget, a promised error rate, one side without labels."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workers.reading.answers import as_object, is_prediction, number
from workers.text import counted, share

_OUTCOMES = {
    "late": "came late",
    "repeated": "repeated",
    "corrected": "corrected",
    "censored": "examples whose horizon passed without one",
    "dropped": "examples given up, too many waited",
    "early": "came before their example",
    "backwards": "examples whose time ran backwards",
    "ahead": "examples whose time was far ahead",
}

_MAX_MISSING = 0.05  # wanted labels that did not come, for each that did, before the text warns


def pending_text(counts: Mapping[str, Any]) -> str:
    """Return the number of pending examples, and the age of the oldest unlabelled one if known.

    Examples
    --------
    >>> pending_text({"pending": 7, "unlabelled": 2, "seconds": 75.0})
    '7 examples wait, 2 of them without a label, the oldest for 1 min 15 s'
    >>> pending_text({"pending": 1, "unlabelled": 1}), pending_text({"pending": 0})
    ('1 example waits for a label', '')
    """
    total, unlabelled = _count(counts, "pending"), _count(counts, "unlabelled")
    if not total:
        return ""
    text = f"{counted(total, 'example')} {'waits' if total == 1 else 'wait'}"
    text += " for a label" if unlabelled == total else f", {unlabelled:,} of them without a label"
    seconds, ahead = number(counts.get("seconds")), _count(counts, "ahead_now")
    if unlabelled and seconds >= 1:
        text += f", the oldest for {_span(seconds)}"
    return f"{text}; {ahead:,} with a time far ahead of the feed's clock" if ahead else text


def late_label_texts(counts: Mapping[str, Any], labels: Mapping[str, Any]) -> list[str]:
    """Return the texts about delayed labels: what waits, what became of them, bounds in the end."""
    outcomes = [
        f"{count:,} {words}" for name, words in _OUTCOMES.items() if (count := _count(counts, name))
    ]
    texts = [pending_text(counts), ", ".join(outcomes)]
    for name, words in (("accuracy", "accuracy"), ("brier", "Brier score")):
        of = as_object(labels.get(name))
        lower, estimate, upper = (number(of.get(key)) for key in ("lower", "estimate", "upper"))
        if lower < upper:
            texts.append(
                f"{words} in the end from {share(lower)} to {share(upper)}; {share(estimate)} if "
                "the probabilities are right"
            )
    return texts


def budget_text(budget: Mapping[str, Any]) -> str:
    """Return the counts of wanted labels as text; "" without a budget.

    Examples
    --------
    >>> counts = {"wanted": 640, "labelled": 600, "missing": 0, "unasked": 134}
    >>> budget_text({"probability": 0.05} | counts)
    '5.0 % wanted: 640 labels, 600 came in time, 0 did not; 134 other labels are in no figure'
    >>> budget_text({"probability": 0.05} | counts | {"missing": 90}).partition(", 90 did not: ")[2]
    'figures hold for the others alone; 134 other labels are in no figure'
    """
    p = number(budget.get("probability"))
    if not p >= 0:
        return "no answers yet" if budget else ""
    wanted, labelled, missing, unasked = (
        _count(budget, name) for name in ("wanted", "labelled", "missing", "unasked")
    )
    lack = ": figures hold for the others alone" if missing > _MAX_MISSING * labelled else ""
    return (
        f"{100 * p:.1f} % wanted: {counted(wanted, 'label')}, {labelled:,} came in time, "
        f"{missing:,} did not{lack}; {counted(unasked, 'other label')} are in no figure"
    )


def promise_text(promise: Mapping[str, Any]) -> str:
    """Return what holds of a promised error rate, or what it still needs; "" without a promise.

    Examples
    --------
    >>> promise_text({"holds": False, "withdrawn": None, "labels": 40, "labels_needed": 310})
    'all go to review: about 310 more labels are needed, 40 count so far'
    >>> found = {"holds": True, "thresholds": {"no": 0.9}, "bounds": {"error": 0.0287}}
    >>> promise_text(found | {"decided_share": 0.41})
    'error at most 2.87 %; decided: no from 0.9, 41 % of recent examples'
    """
    if not promise:
        return ""
    if promise.get("withdrawn") is not None:
        return f"withdrawn, all go to review: {str(promise['withdrawn'])[:300]}"
    if not promise.get("holds"):
        labels = f"{_count(promise, 'labels'):,}"
        if promise.get("labels_needed") is None:
            return f"all go to review: too many errors at every threshold of {labels} labels"
        needed = _count(promise, "labels_needed")
        return f"all go to review: about {needed:,} more labels are needed, {labels} count so far"
    bounds = [
        f"{kind.replace('_', ' ')} at most {100 * number(bound):.3g} %"
        for kind, bound in as_object(promise.get("bounds")).items()
    ]
    by_class = [
        f"{label} from {number(least):g}"
        for label, least in as_object(promise.get("thresholds")).items()
    ]
    decided = f"{100 * number(promise.get('decided_share')):.0f} % of recent examples"
    return f"{', '.join(bounds)}; decided: {', '.join(by_class)}, {decided}"


def _count(counts: Mapping[str, Any], name: str) -> int:
    found = number(counts.get(name))
    return int(found) if found >= 0 else 0


def _span(seconds: float) -> str:
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if hours >= 48:
        return f"{hours // 24:,} days"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min {int(seconds) % 60} s"


MAX_COMPARED_ANSWERS = 400
"""Newest entries of `out` whose answers are compared."""

_MIN_ANSWERS = 100  # answers, scored examples and examples without a label
_MIN_GIVEN_UP = 0.1  # share of the examples that were given up without a label
_MIN_SHARE = 0.1  # of a side among the answers
_MAX_RATIO = 0.1  # of the two shares


def selective_labels(report: Mapping[str, Any], read: Callable[[], Sequence[Any]]) -> str:
    """Return a sentence about the side of a decision that gets no labels; "" if there is none.

    If only approved cases get a label, every figure is about them. By Bayes' rule, the share of the
    labelled among the answers of one side is proportional to the share of this side among the
    labelled, divided by its share among all answers. The report has the first, recent answers the
    second.

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
