"""The metrics of a worker: one collector, whose lines have the label `feed`.

What feeds told grows as they tell it. What stands in Redis (lag, the newest report) is read when it
is asked for. A worker of up to `DETAILED` feeds gives all of each; one of more gives at most some
twenty lines a feed, and histograms of all feeds together, under feed="*": nineteen bounds times a
thousand feeds would take a scrape seconds.
"""

import platform
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import version
from typing import get_args

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from online_svm import __version__
from online_svm.stream.alarm import AlarmKind
from workers.message.codes import CODES
from workers.monitor.feed_alarms import FeedAlarms
from workers.monitor.feed_record import Duration, Durations, FeedRecord
from workers.monitor.reported import PREFIX, counted, gauge, of_answer, of_pending, of_report
from workers.monitor.standings import Detail, Standing, Standings
from workers.monitor.watch import WorkerWatch

DETAILED = 32
"""Feeds up to which each has histograms, figures of its reports, and counters that begin at 0."""

ALL = "*"
"""The label `feed` of what is of all feeds together; no feed can have this name."""

_TOLD: dict[Duration, str] = {
    "batch": "Time to answer one batch, its wait for refits included.",
    "commit": (
        "Time from sending a commit to its confirmation; the next batch is answered meanwhile."
    ),
    "refit": "Time to compute one refit.",
    "refit_wait": "Time that a feed waited for a refit.",
    "replay": "Time of one recovery, its replay included.",
}

_COUNTED = {
    "answers": ("answers", "Input entries answered and committed."),
    "reports": ("reports", "Validity reports committed."),
    "snapshots": ("snapshots", "Snapshots committed."),
    "replayed": ("replayed_entries", "Entries answered again by replays."),
}
"""Metrics, the members of a record, and what they are."""

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "redis")

Records = Mapping[str, FeedRecord]


class WorkerMetrics(Collector):
    """What the feeds of a worker told, and how they stand.

    Parameters
    ----------
    watch : WorkerWatch
    standings : Standings
    """

    def __init__(self, watch: WorkerWatch, standings: Standings) -> None:
        self._watch, self._standings = watch, standings

    def describe(self) -> Iterable[Metric]:
        """Name no metric: registering them then reads nothing from Redis."""
        return ()

    @override
    def collect(self) -> Iterable[Metric]:
        records = dict(list(self._watch.feeds.items()))
        in_detail = len(records) <= DETAILED
        sources = {feed: record.source for feed, record in records.items()}
        standing = self._standings.look(sources, in_detail)
        yield build()
        yield from _of_work(records)
        yield from _by_reason(records, in_detail)
        yield from _durations(records, in_detail)
        yield from _of_lag(standing)
        yield from self._of_redis(list(records) if in_detail else [ALL])
        if in_detail:
            yield from _in_detail(records, standing)
        yield from of_webhook(one.posts for one in records.values() if one.posts is not None)

    def _of_redis(self, labels: Iterable[str]) -> Iterator[Metric]:
        """Yield what is of the process, under each of these labels."""
        up = gauge("redis_up", "1 if Redis answers the worker's own question.")
        retries = counted("redis_retries", "Commands sent to Redis again, by reason.", "reason")
        kinds: dict[str, int] = {"timeout": 0, "connection": 0}
        for connection in self._watch.connections:
            for kind, count in dict(connection.retries).items():
                kinds[kind] = kinds.get(kind, 0) + count
        for label in labels:
            up.add_metric([label], float(self._standings.trouble is None))
            for kind in sorted(kinds):
                retries.add_metric([label, kind], kinds[kind])
        yield from (up, retries)


def _of_work(records: Records) -> Iterator[Metric]:
    stage = gauge("stage", "What a feed does: 1.", "stage")
    at = gauge("answer_timestamp_seconds", "When the last answers were committed; 0: not yet.")
    for feed, record in records.items():
        stage.add_metric([feed, record.stage], 1.0)
        at.add_metric([feed], record.answered_at)
    yield from (stage, at)
    for name, (member, text) in _COUNTED.items():
        family = counted(name, text)
        for feed, record in records.items():
            family.add_metric([feed], getattr(record, member))
        yield family


def _by_reason(records: Records, in_detail: bool) -> Iterator[Metric]:
    """Yield what is counted by reason; a counter that begins at 0 shows its first increase."""
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
    for name, text in _TOLD.items():
        family = HistogramMetricFamily(f"{PREFIX}_{name}_seconds", text, labels=["feed"])
        found = {feed: record.durations[name] for feed, record in records.items()}
        if not in_detail:
            found = {ALL: Durations.summed(list(found.values()))}
        for feed, durations in found.items():
            family.add_metric([feed], durations.buckets(), durations.total)
        yield family


def _of_lag(standing: Standing) -> Iterator[Metric]:
    entries = gauge("lag_entries", "Input entries without an answer.")
    seconds = gauge(
        "lag_seconds", "Age of the oldest input entry without an answer; 0: none waits."
    )
    for feed, lag in standing.lags.items():
        entries.add_metric([feed], lag.entries)
        seconds.add_metric([feed], lag.seconds)
    yield from (entries, seconds)
    labels = {feed: lag.labels for feed, lag in standing.lags.items() if lag.labels is not None}
    yield from of_pending(labels)


def _in_detail(records: Records, standing: Standing) -> Iterator[Metric]:
    """Yield what only a worker of a few feeds gives."""
    total = gauge("replay_entries", "Entries of the last replay.")
    done = gauge("replay_done_entries", "Of these, answered again so far.")
    size = gauge("snapshot_bytes", "Size of the last snapshot.")
    kept = gauge("snapshot_timestamp_seconds", "When the last snapshot was committed; 0: not yet.")
    for feed, record in records.items():
        done.add_metric([feed], record.replay[0])
        total.add_metric([feed], record.replay[1])
        size.add_metric([feed], record.snapshot_bytes)
        kept.add_metric([feed], record.snapshot_at)
    yield from (total, done, size, kept)
    yield from _stored(standing.details)


def _stored(details: Mapping[str, Detail]) -> Iterator[Metric]:
    learned = gauge("learned_examples", "Examples learned since the feed began.")
    epoch = gauge("epoch", "Number of writers that the feed has had.")
    for feed, detail in details.items():
        learned.add_metric([feed], detail.learned)
        epoch.add_metric([feed], detail.epoch)
    yield from (learned, epoch)
    yield from of_answer({feed: one.answer for feed, one in details.items() if one.answer})
    yield from of_report({feed: one.report for feed, one in details.items() if one.report})


def of_webhook(feeds: Iterable[FeedAlarms]) -> Iterable[Metric]:
    """Return how the delivery of feeds' alarms went; nothing where none are posted."""
    feeds = list(feeds)
    told = (
        ("delivered", "Alarms that the receiver took."),
        ("silenced", "Alarms not posted: the feed was silenced."),
        ("lost", "Entries of alarms trimmed before they were delivered."),
    )
    for name, text in told:
        family = counted(f"webhook_{name}", text)
        for one in feeds:
            family.add_metric([one.feed], getattr(one, name))
        yield family
    failures = counted("webhook_failures", "Attempts that failed, by reason.", "reason")
    for one in feeds:
        for reason, count in sorted(dict(one.failures).items()):
            failures.add_metric([one.feed, reason], count)
    yield failures


@cache  # finding the versions takes longer than the rest of a scrape
def build() -> Metric:
    """Return the versions that decide the bytes of answers, as labels of a 1."""
    names = {"version": __version__, "python": platform.python_version()}
    names |= {package.replace("-", "_"): version(package) for package in _PACKAGES}
    family = GaugeMetricFamily(f"{PREFIX}_build_info", "Versions at work.", labels=list(names))
    family.add_metric(list(names.values()), 1.0)
    return family
