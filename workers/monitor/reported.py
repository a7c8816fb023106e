"""The newest report and the newest answer of a feed as metrics.

Members that a feed does not have give no metric: an absent series says that nothing is measured, a
0 would be a measurement.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from prometheus_client.core import Metric

from workers.monitor.families import gauge

GUARANTEES = ("exact", "approximate", "none")

_FIGURES = {
    "scored": ("scored_examples", "Labelled examples that the figures of a report run over."),
    "accuracy": ("accuracy_ratio", "Share of right labels."),
    "lower": ("announced_lower_ratio", "Mean lower end of the interval of the predicted label."),
    "probability": ("announced_ratio", "Mean probability of the predicted label."),
    "upper": ("announced_upper_ratio", "Mean upper end of the interval of the predicted label."),
    "log_loss": ("log_loss_nats", "Mean log loss of the true label."),
    "brier": ("brier_score_ratio", "Mean Brier score."),
    "z": (
        "accuracy_deviations",
        "Accuracy less mean probability, in standard deviations that it has by chance.",
    ),
    "calibration_error": (
        "calibration_error_ratio",
        "Root mean squared difference of frequency and probability in bins, chance taken off.",
    ),
}
"""Members of a report, their metrics, and what they are."""

_OF_NOW = {
    "pending": ("pending_examples", "Answered examples that wait to be learned."),
    "unlabelled": ("pending_labels", "Of these, those whose label has not come."),
}

MOST_TESTS = 100
"""Series of tests of one feed, at most."""


def of_answer(feed: str, answer: Mapping[str, Any]) -> Iterable[Metric]:
    """Yield the metrics of the newest message of `out`."""
    said = answer.get("guarantee")
    if said is None:
        return
    family = gauge("guarantee", "What the newest answer guarantees: 1 for one.", "guarantee")
    for name in GUARANTEES:
        family.add_metric([feed, name], float(name == said))
    yield family


def of_report(feed: str, report: Mapping[str, Any]) -> Iterable[Metric]:
    """Yield the metrics of the newest message of `met`."""
    headline = report.get("headline") or {}
    whole = {**headline, **(headline.get("predicted") or {}), "scored": report.get("scored")}
    recent = (report.get("windowed") or {}).get("overall") or {}
    for member, (name, text) in _FIGURES.items():
        family = gauge(name, text, "span")
        for span, figures in (("cumulative", whole), ("windowed", recent)):
            if figures.get(member) is not None:
                family.add_metric([feed, span], float(figures[member]))
        if family.samples:
            yield family
    yield from _late_labels(feed, (report.get("labels") or {}).get("counts") or {})
    yield from _wealth(feed, report.get("monitors") or {})


def _late_labels(feed: str, counts: Mapping[str, Any]) -> Iterable[Metric]:
    """Yield what became of labels that come late."""
    for member, (name, text) in _OF_NOW.items():
        if member in counts:
            waiting = gauge(name, text)
            waiting.add_metric([feed], float(counts[member]))
            yield waiting
    others = {name: count for name, count in counts.items() if name not in _OF_NOW}
    family = gauge("late_labels", "Examples and labels so far, by what became of them.", "outcome")
    for name, count in sorted(others.items()):
        family.add_metric([feed, name], float(count))
    if others:
        yield family


def _wealth(feed: str, monitors: Mapping[str, Any]) -> Iterable[Metric]:
    """Yield the evidence of each sequential test, and what it has to reach."""
    wealth = gauge("monitor_log_wealth", "Natural logarithm of a test's wealth.", "monitor")
    limit = gauge("monitor_log_threshold", "What it has to reach for an alarm.", "monitor")
    for name, test in islice(_tests(monitors), MOST_TESTS):
        wealth.add_metric([feed, name], float(test["log_wealth"]))
        limit.add_metric([feed, name], float(test["threshold"]))
    if wealth.samples:
        yield wealth
        yield limit


def _tests(found: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each test in a report of monitors, however it is nested, with its path as its name."""
    for name, inner in found.items():
        if not isinstance(inner, Mapping):
            continue
        at = f"{path}/{name}" if path else name
        if inner.get("log_wealth") is not None and inner.get("threshold") is not None:
            yield at, inner
        else:
            yield from _tests(inner, at)
