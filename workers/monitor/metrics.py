"""The metrics of a worker: one collector, whose lines have the label `feed`.

The worker keeps the counters; lag and the newest report are read from Redis at a scrape. A worker
of up to `MAX_DETAILED_FEEDS` feeds exports all metrics of each feed. A worker of more feeds exports
some twenty lines a feed, and histograms of all feeds together under feed="*": nineteen buckets
times a thousand feeds would make a scrape take seconds.

A value that a feed does not have is not exported: a 0 would be a measurement.
"""

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import cache
from importlib.metadata import version
from operator import attrgetter
from typing import Any, TypeVar, get_args

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from typing_extensions import override

from online_svm.metrics.binomial_interval import proportion
from online_svm.stream.alarm import AlarmKind
from online_svm.stream.notice import NOTICE_SCOPES
from online_svm.version import __version__
from workers.feed.codes import CODES
from workers.monitor.health import StatusCache
from workers.monitor.watch import Duration, Durations, FeedRecord, WorkerWatch
from workers.monitor.webhook import FeedAlarms
from workers.reading.status import FeedStatus
from workers.reading.verdict import LEVELS, trust

PREFIX = "online_svm"

MAX_DETAILED_FEEDS = 32
"""Up to so many feeds, each has histograms, values of its reports, and counters that start at 0."""

_ALL_FEEDS = "*"  # value of the label `feed` for all feeds together; no feed can have this name

_DURATIONS: dict[Duration, str] = {
    "batch": "Time to answer one batch, its wait for refits included.",
    "commit": (
        "Time from sending a commit to its confirmation; the next batch is answered meanwhile."
    ),
    "refit": "Time to compute one refit.",
    "refit_wait": "Time that a feed waited for a refit.",
    "replay": "Time of one recovery, its replay included.",
}

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
"""Fields of a report, each with the name and the help text of its metric."""

_CLASS_FIGURES = {
    "examples": ("class_examples", "Recent examples of a class."),
    "frequency": ("class_frequency_ratio", "Share of a class in the recent examples."),
    "probability": ("class_announced_ratio", "Mean probability of a class in recent answers."),
    "calibration_error": ("class_calibration_error_ratio", "The same as of all, for a class."),
}
"""Fields of a class in a report, likewise."""

_ENDS = {"": "Share", "_lower": "Lower 95 % bound", "_upper": "Upper 95 % bound"}

MAX_CLASSES = 5
"""Classes of a feed with metrics: all, or those with the fewest examples."""

_PENDING = {
    "pending": ("pending_examples", "Answered examples that wait to be learned."),
    "unlabelled": ("pending_labels", "Of these, those whose label has not come."),
    "seconds": (
        "pending_label_seconds",
        "Age of the oldest example without a label, by the times of examples; 0: none.",
    ),
}

_GUARANTEES = ("exact", "approximate", "none")
_PACKAGES = ("numpy", "scipy", "scikit-learn", "redis")

Records = Mapping[str, FeedRecord]
Messages = Mapping[str, Mapping[str, Any]]
T = TypeVar("T")


def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    """Return an empty family of gauges with the label `feed` and further ones."""
    return GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=["feed", *labels])


def counted(name: str, text: str, *labels: str) -> CounterMetricFamily:
    """Return an empty family of counters with the label `feed` and further ones."""
    return CounterMetricFamily(f"{PREFIX}_{name}", text, labels=["feed", *labels])


def _filled(
    family: GaugeMetricFamily | CounterMetricFamily,
    feeds: Mapping[str, T],
    value: Callable[[T], float],
) -> Metric:
    """Return a family with the value of each feed."""
    for feed, record in feeds.items():
        family.add_metric([feed], float(value(record)))
    return family


def _non_empty(*families: Metric) -> Iterator[Metric]:
    return (family for family in families if family.samples)


class WorkerMetrics(Collector):
    """Exports the counters of a worker, and the status of its feeds in Redis."""

    def __init__(self, watch: WorkerWatch, cache: StatusCache) -> None:
        self._watch, self._cache = watch, cache

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering the collector does not read from Redis."""
        return ()

    @override
    def collect(self) -> Iterable[Metric]:
        records = dict(list(self._watch.feeds.items()))
        in_detail = len(records) <= MAX_DETAILED_FEEDS
        found = self._cache.get(list(records), in_detail)
        yield _build()
        yield from _work(records)
        yield from _by_reason(records, in_detail)
        yield from _durations(records, in_detail)
        yield from _lag(found)
        yield from self._redis(list(records) if in_detail else [_ALL_FEEDS])
        if in_detail:
            yield from _details(records, found)
        yield from _webhook({f: r.posts for f, r in records.items() if r.posts is not None})

    def _redis(self, feeds: Iterable[str]) -> Iterator[Metric]:
        """Yield the metrics of the connections, which the feeds share, once for each feed."""
        up = gauge("redis_up", "1 if Redis answers the worker's own question.")
        retries = counted("redis_retries", "Commands sent to Redis again, by reason.", "reason")
        kinds = Counter({"timeout": 0, "connection": 0})
        for connection in self._watch.connections:
            kinds.update(dict(connection.retries))
        for feed in feeds:
            up.add_metric([feed], float(self._cache.trouble is None))
            for kind in sorted(kinds):
                retries.add_metric([feed, kind], kinds[kind])
        yield from (up, retries)


def _work(records: Records) -> Iterator[Metric]:
    stage = gauge("stage", "What a feed does: 1.", "stage")
    for feed, record in records.items():
        stage.add_metric([feed, record.stage], 1.0)
    yield stage
    at = gauge("answer_timestamp_seconds", "When the last answers were committed; 0: not yet.")
    yield _filled(at, records, lambda record: record.answered_at)
    answers = counted("answers", "Input entries answered and committed.")
    yield _filled(answers, records, lambda record: record.answers)
    reports = counted("reports", "Validity reports committed.")
    yield _filled(reports, records, lambda record: record.reports)
    snapshots = counted("snapshots", "Snapshots committed.")
    yield _filled(snapshots, records, lambda record: record.snapshots)
    replayed = counted("replayed", "Entries answered again by replays.")
    yield _filled(replayed, records, lambda record: record.replayed_entries)


def _by_reason(records: Records, in_detail: bool) -> Iterator[Metric]:
    """Yield the counters by reason; in detail they start at 0, so that a rate sees the first one.

    A counter that appears with the value 1 has no increase in Prometheus.
    """
    rejected = counted("rejected", "Input entries rejected, by reason code.", "reason")
    alarms = counted("alarms", "Alarms raised, by kind.", "kind")
    codes = dict.fromkeys(CODES, 0) if in_detail else {}
    kinds: dict[str, int] = dict.fromkeys(get_args(AlarmKind), 0) if in_detail else {}
    for feed, record in records.items():
        for code, count in (codes | record.rejected).items():
            rejected.add_metric([feed, code], count)
        for kind, count in (kinds | record.alarms).items():
            alarms.add_metric([feed, kind], count)
    yield from (rejected, alarms)


def _durations(records: Records, in_detail: bool) -> Iterator[Metric]:
    for name, text in _DURATIONS.items():
        family = HistogramMetricFamily(f"{PREFIX}_{name}_seconds", text, labels=["feed"])
        found = {feed: record.durations[name] for feed, record in records.items()}
        if not in_detail:
            found = {_ALL_FEEDS: Durations.summed(list(found.values()))}
        for feed, durations in found.items():
            family.add_metric([feed], durations.buckets(), durations.total)
        yield family


def _lag(found: Mapping[str, FeedStatus]) -> Iterator[Metric]:
    entries = gauge("lag_entries", "Input entries without an answer.")
    yield _filled(entries, found, lambda status: status.waiting)
    seconds = gauge(
        "lag_seconds", "Age of the oldest input entry without an answer; 0: none waits."
    )
    yield _filled(seconds, found, lambda status: status.waiting_seconds)
    # Pending labels are from the state, not from a report: without labels no report comes.
    labels = {feed: one.lag.labels for feed, one in found.items() if one.lag.labels is not None}
    for member, (name, text) in _PENDING.items():
        yield from _non_empty(_filled(gauge(name, text), labels, attrgetter(member)))


def _details(records: Records, found: Mapping[str, FeedStatus]) -> Iterator[Metric]:
    total = gauge("replay_entries", "Entries of the last replay.")
    yield _filled(total, records, lambda record: record.replay[1])
    done = gauge("replay_done_entries", "Of these, answered again so far.")
    yield _filled(done, records, lambda record: record.replay[0])
    size = gauge("snapshot_bytes", "Size of the last snapshot.")
    yield _filled(size, records, lambda record: record.snapshot_bytes)
    kept = gauge("snapshot_timestamp_seconds", "When the last snapshot was committed; 0: not yet.")
    yield _filled(kept, records, lambda record: record.snapshot_at)
    # `now` is set only if the counters were read.
    read = {feed: status for feed, status in found.items() if status.now}
    learned = gauge("learned_examples", "Examples learned since the feed began.")
    yield _filled(learned, read, lambda status: status.n)
    epoch = gauge("epoch", "Number of writers that the feed has had.")
    yield _filled(epoch, read, lambda status: status.epoch)
    family = gauge("guarantee", "What the newest answer guarantees: 1 for one.", "guarantee")
    for feed, status in found.items():
        guarantee = status.answer.get("guarantee")
        for name in _GUARANTEES if guarantee is not None else ():
            family.add_metric([feed, name], float(name == guarantee))
    yield from _non_empty(family)
    judged = gauge("verdict", "The level of the verdict on the answers: 1 for one.", "level")
    for feed, status in read.items():
        if status.answer:
            level = trust(status).level
            for name in LEVELS:
                judged.add_metric([feed, name], float(name == level))
    yield from _non_empty(judged)
    yield from _notices(found)
    yield from of_report({feed: status.report for feed, status in found.items() if status.report})


def _webhook(posts: Mapping[str, FeedAlarms]) -> Iterator[Metric]:
    delivered = counted("webhook_delivered", "Alarms and notices that the receiver took.")
    yield _filled(delivered, posts, lambda delivery: delivery.delivered)
    silenced = counted("webhook_silenced", "Alarms and notices not posted: they were silenced.")
    yield _filled(silenced, posts, lambda delivery: delivery.silenced)
    lost = counted("webhook_lost", "Entries of alarms trimmed before they were delivered.")
    yield _filled(lost, posts, lambda delivery: delivery.lost)
    failures = counted("webhook_failures", "Attempts that failed, by reason.", "reason")
    for feed, delivery in posts.items():
        for reason, count in sorted(dict(delivery.failures).items()):
            failures.add_metric([feed, reason], count)
    yield failures


@cache  # finding the versions takes longer than the rest of a scrape
def _build() -> Metric:
    """Return a gauge of 1, labelled with the versions on which the bytes of answers depend."""
    names = {"version": __version__, "python": platform.python_version()}
    names |= {package.replace("-", "_"): version(package) for package in _PACKAGES}
    family = GaugeMetricFamily(f"{PREFIX}_build_info", "Versions at work.", labels=list(names))
    family.add_metric(list(names.values()), 1.0)
    return family


def of_report(reports: Messages) -> Iterator[Metric]:
    """Yield the metrics of each feed's newest report."""
    families = {member: gauge(name, text, "span") for member, (name, text) in _FIGURES.items()}
    late = gauge("late_labels", "Examples and labels so far, by what became of them.", "outcome")
    for feed, report in reports.items():
        headline = report.get("headline") or {}
        whole = {**headline, **(headline.get("predicted") or {}), "scored": report.get("scored")}
        recent = (report.get("windowed") or {}).get("overall") or {}
        for member, family in families.items():
            for span, figures in (("cumulative", whole), ("windowed", recent)):
                if figures.get(member) is not None:
                    family.add_metric([feed, span], float(figures[member]))
        counts = (report.get("labels") or {}).get("counts") or {}
        for name, count in sorted(counts.items()):
            if name not in _PENDING:
                late.add_metric([feed, name], float(count))
    yield from _non_empty(*families.values(), late)
    yield from _classes(reports)
    yield from _monitors(reports)
    yield from _costs(reports)
    yield from _promises(reports)


def _classes(reports: Messages) -> Iterable[Metric]:
    """Yield how well the rarest classes are found, by the label, and what their probability is."""
    figures = {field: gauge(*about, "class") for field, about in _CLASS_FIGURES.items()}
    shares = {}
    for share, text in (("recall", "examples of a class"), ("precision", "answers with a class")):
        for end, of in _ENDS.items():
            words = f"{of} of right labels in the recent {text}."
            shares[share + end] = gauge(f"class_{share}{end}_ratio", words, "class")
    for feed, report in reports.items():
        for each in _rarest(report):
            labels = [feed, str(each["label"])]
            for field, family in figures.items():
                if each.get(field) is not None:
                    family.add_metric(labels, float(each[field]))
            hits = round((each.get("accuracy") or 0.0) * each["predicted"])
            for share, total in (("recall", each["examples"]), ("precision", each["predicted"])):
                if total:
                    found = proportion(min(hits, total), total)
                    for end, value in zip(_ENDS, astuple(found), strict=True):
                        shares[share + end].add_metric(labels, value)
    yield from _non_empty(*figures.values(), *shares.values())


def _rarest(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = (report.get("windowed") or {}).get("classes") or ()
    named = [each for each in listed if each["label"] is not None]
    return sorted(named, key=lambda each: int(each["examples"]))[:MAX_CLASSES]


def _monitors(reports: Messages) -> Iterable[Metric]:
    opened = gauge("open_alarms", "Alarms that are open, by kind.", "kind")
    wealth = gauge("monitor_log_wealth", "Logarithm of the wealth of a test.", "kind", "scope")
    limit = gauge("monitor_log_threshold", "What it has to reach for an alarm.", "kind", "scope")
    for feed, report in reports.items():
        monitors = report.get("monitors") or {}
        if "open" in monitors:
            kinds = Counter(alarm["kind"] for alarm in monitors["open"])
            for kind in get_args(AlarmKind):
                opened.add_metric([feed, kind], float(kinds[kind]))
        for labels, test in sorted(_nearest(monitors.get("tests") or ()).items()):
            wealth.add_metric([feed, *labels], float(test["log_wealth"]))
            limit.add_metric([feed, *labels], float(test["threshold"]))
    yield from _non_empty(opened, wealth, limit)


def _notices(found: Mapping[str, FeedStatus]) -> Iterable[Metric]:
    family = gauge("open_notices", "Notices that are open and not silenced, by scope.", "scope")
    for feed, status in found.items():
        if "notices" in ((status.report or {}).get("monitors") or {}):
            scopes = Counter(notice.code.partition(":")[0] for notice in status.notices)
            for scope in (*NOTICE_SCOPES, "feature"):
                family.add_metric([feed, scope], float(scopes[scope]))
    yield from _non_empty(family)


def _costs(reports: Messages) -> Iterable[Metric]:
    family = gauge("example_cost", "Mean cost of a scored example, if one acts so.", "rule")
    actions = gauge("actions", "Answers with each action.", "action")
    for feed, report in reports.items():
        costs = report.get("costs") or {}
        for action, count in (costs.get("taken") or {}).items():
            actions.add_metric([feed, action], float(count))
        rules = {"answers": costs.get("mean"), "most probable label": costs.get("by_label")}
        rules |= {f"always {action}": mean for action, mean in (costs.get("always") or {}).items()}
        for rule, mean in rules.items():
            if mean is not None:
                family.add_metric([feed, rule], float(mean))
    yield from _non_empty(family, actions)


def _promises(reports: Messages) -> Iterable[Metric]:
    share = gauge("decided_share", "Share of recent examples decided by the promise.")
    bound = gauge("promise_bound", "Upper bound of a promised rate, while it holds.", "rate")
    for feed, report in reports.items():
        if promise := report.get("promise"):
            share.add_metric([feed], float(promise["decided_share"]))
            for kind, found in promise["bounds"].items():
                bound.add_metric([feed, kind], float(found))
    yield from _non_empty(share, bound)


def _nearest(tests: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the test nearest to an alarm, for each kind and scope.

    Its class or bin is no label: it changes often, and each change would start a series.
    """
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for test in sorted(tests, key=lambda test: test["log_wealth"] - test["threshold"]):
        found[test["kind"], test["scope"]] = test
    return found
