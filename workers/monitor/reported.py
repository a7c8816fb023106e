"""Families of metrics, and those of the newest reports and the newest answers of feeds.

Members that a feed does not have give no metric: an absent series says that nothing is measured, a
0 would be a measurement.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from online_svm.stream.alarm import AlarmKind
from workers.feed.state_fields import PendingLabels

PREFIX = "online_svm"


def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    """Return an empty family of gauges with the label `feed` and further ones.

    Examples
    --------
    >>> gauge("lag_entries", "Input entries without an answer.").name
    'online_svm_lag_entries'
    """
    return GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=["feed", *labels])


def counted(name: str, text: str, *labels: str) -> CounterMetricFamily:
    """Return an empty family of counters, likewise."""
    return CounterMetricFamily(f"{PREFIX}_{name}", text, labels=["feed", *labels])


GUARANTEES = ("exact", "approximate", "none")

_FIGURES = {
    "scored": ("scored_examples", "Labelled examples that the figures of a report run over."),
    "accuracy": ("accuracy_ratio", "Share of right labels."),
    "lower": ("announced_lower_ratio", "Mean lower end of the interval of the predicted label."),
    "probability": ("announced_ratio", "Mean probability of the predicted label."),
    "upper": ("announced_upper_ratio", "Mean upper end of the interval of the predicted label."),
    "log_loss": ("log_loss_nats", "Mean log loss of the true label."),
    "brier": ("brier_score", "Mean Brier score."),
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
    "seconds": ("pending_label_seconds", "Age of the oldest example without a label; 0: none."),
}


def of_answer(answers: Mapping[str, Mapping[str, Any]]) -> Iterable[Metric]:
    """Yield the metrics of the newest message of `out` of each feed."""
    family = gauge("guarantee", "What the newest answer guarantees: 1 for one.", "guarantee")
    for feed, answer in answers.items():
        said = answer.get("guarantee")
        for name in GUARANTEES if said is not None else ():
            family.add_metric([feed, name], float(name == said))
    if family.samples:
        yield family


def of_report(reports: Mapping[str, Mapping[str, Any]]) -> Iterable[Metric]:
    """Yield the metrics of the newest message of `met` of each feed."""
    families = {member: gauge(name, text, "span") for member, (name, text) in _FIGURES.items()}
    for feed, report in reports.items():
        headline = report.get("headline") or {}
        whole = {**headline, **(headline.get("predicted") or {}), "scored": report.get("scored")}
        recent = (report.get("windowed") or {}).get("overall") or {}
        for member, family in families.items():
            for span, figures in (("cumulative", whole), ("windowed", recent)):
                if figures.get(member) is not None:
                    family.add_metric([feed, span], float(figures[member]))
    yield from (family for family in families.values() if family.samples)
    yield from _late_labels(reports)
    yield from _monitors(reports)
    yield from _costs(reports)


def of_pending(feeds: Mapping[str, PendingLabels]) -> Iterable[Metric]:
    """Yield what is still to come of the labels of feeds, as the last commits say.

    A report tells it too, but none comes where no label does.
    """
    for member, (name, text) in _OF_NOW.items():
        family = gauge(name, text)
        for feed, pending in feeds.items():
            family.add_metric([feed], float(getattr(pending, member)))
        if family.samples:
            yield family


def _late_labels(reports: Mapping[str, Mapping[str, Any]]) -> Iterable[Metric]:
    """Yield what became of labels that come late."""
    family = gauge("late_labels", "Examples and labels so far, by what became of them.", "outcome")
    for feed, report in reports.items():
        counts = (report.get("labels") or {}).get("counts") or {}
        others = {name: count for name, count in counts.items() if name not in _OF_NOW}
        for name, count in sorted(others.items()):
            family.add_metric([feed, name], float(count))
    if family.samples:
        yield family


def _monitors(reports: Mapping[str, Mapping[str, Any]]) -> Iterable[Metric]:
    """Yield the alarms that are open, and how near the tests are to another one."""
    opened = gauge("open_alarms", "Alarms that are open, by kind.", "kind")
    wealth = gauge("monitor_log_wealth", "Logarithm of the wealth of a test.", "kind", "scope")
    limit = gauge("monitor_log_threshold", "What it has to reach for an alarm.", "kind", "scope")
    for feed, report in reports.items():
        monitors = report.get("monitors") or {}
        if "open" in monitors:
            kinds = Counter(alarm["kind"] for alarm in monitors["open"])
            for kind in get_args(AlarmKind):
                opened.add_metric([feed, kind], float(kinds[kind]))
        for (kind, scope), test in sorted(_nearest(monitors.get("tests") or ()).items()):
            wealth.add_metric([feed, kind, scope], float(test["log_wealth"]))
            limit.add_metric([feed, kind, scope], float(test["threshold"]))
    yield from (family for family in (opened, wealth, limit) if family.samples)


def _costs(reports: Mapping[str, Mapping[str, Any]]) -> Iterable[Metric]:
    """Yield what decisions cost on average, beside what simple rules would have cost."""
    family = gauge("example_cost", "Mean cost of a scored example, if one acts so.", "rule")
    for feed, report in reports.items():
        costs = report.get("costs") or {}
        rules = {"answers": costs.get("mean"), "most probable label": costs.get("by_label")}
        rules |= {f"always {action}": mean for action, mean in (costs.get("always") or {}).items()}
        for rule, mean in rules.items():
            if mean is not None:
                family.add_metric([feed, rule], float(mean))
    if family.samples:
        yield family


def _nearest(tests: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the test that is nearest to an alarm, of each kind and scope.

    Which class or bin that is changes all the time: as a label it would begin a series each time.
    """
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for test in sorted(tests, key=lambda test: test["log_wealth"] - test["threshold"]):
        found[test["kind"], test["scope"]] = test
    return found
