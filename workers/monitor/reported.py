"""The newest report and the newest answer of a feed as metrics.

Members that a feed does not have give no metric: an absent series says that nothing is measured, a
0 would be a measurement.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.core import Metric

from workers.monitor.families import gauge

GUARANTEES = ("exact", "approximate", "none")

_VALIDITY = {
    "accuracy": ("accuracy_ratio", "Share of right labels."),
    "lower": ("announced_lower_ratio", "Mean lower end of the interval of the predicted label."),
    "probability": ("announced_ratio", "Mean probability of the predicted label."),
    "upper": ("announced_upper_ratio", "Mean upper end of the interval of the predicted label."),
}
"""Members of a report, their metrics, and what they are."""

_SCORES = {
    "log_loss": ("log_loss_nats", "Mean log loss of the true label."),
    "brier": ("brier_score_ratio", "Mean Brier score."),
}


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
    predicted = headline.get("predicted") or {}
    for member, (name, text) in _VALIDITY.items():
        yield from _measured(feed, name, text, {"cumulative": predicted.get(member)})
    for member, (name, text) in _SCORES.items():
        yield from _measured(feed, name, text, {"cumulative": headline.get(member)})
    scored = gauge("scored_examples", "Labelled examples that the report runs over.", "span")
    scored.add_metric([feed, "cumulative"], float(report.get("scored") or 0))
    yield scored


def _measured(
    feed: str, name: str, text: str, values: Mapping[str, float | None]
) -> Iterable[Metric]:
    """Yield the metric of one figure, for each span that it is known of."""
    known = {span: value for span, value in values.items() if value is not None}
    if known:
        family = gauge(name, text, "span")
        for span, value in known.items():
            family.add_metric([feed, span], float(value))
        yield family
