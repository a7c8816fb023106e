"""The metrics of one worker, under the names and units that Prometheus asks for.

Counters and histograms grow as the worker tells of its work: a few operations a batch. What stands
in Redis (lag, the newest report) is read by `FeedWatch` when it is asked for.
"""

import platform
import time
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from typing import get_args

import orjson
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from online_svm import __version__
from online_svm.stream.alarm import AlarmKind
from workers.engine.telemetry import Stage
from workers.feed.commit import Commit
from workers.message.schema import CODES
from workers.monitor.families import PREFIX, counted, gauge
from workers.monitor.feed_alarms import FeedAlarms
from workers.monitor.reported import of_answer, of_pending, of_report
from workers.monitor.view import FeedView, FeedWatch
from workers.monitor.worker_state import WorkerState

SECONDS = (
    *(1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""Bounds of the histograms: a batch takes milliseconds, a replay may take minutes."""

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "redis")

STAGES: tuple[Stage, ...] = get_args(Stage)


class WorkerMetrics(WorkerState):
    """Counts what a worker tells.

    Parameters
    ----------
    feed : str
    registry : CollectorRegistry

    Attributes
    ----------
    snapshot_bytes : int
        Of the last snapshot; 0 before.
    answered_at, snapshot_at : float
        Seconds since 1970 of the last commit with answers, and with a snapshot; 0 before.
    """

    def __init__(self, feed: str, registry: CollectorRegistry) -> None:
        super().__init__()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, ("feed", *labels), PREFIX, registry=registry)

        def seconds(name: str, text: str) -> Histogram:
            made = Histogram(
                name, text, ("feed",), PREFIX, unit="seconds", registry=registry, buckets=SECONDS
            )
            return made.labels(feed)

        self._answers = counter("answers", "Input entries answered and committed.").labels(feed)
        self._reports = counter("reports", "Validity reports committed.").labels(feed)
        self._snapshots = counter("snapshots", "Snapshots committed.").labels(feed)
        self._replayed = counter("replayed", "Entries answered again by replays.").labels(feed)
        self._feed = feed
        self._rejected = counter("rejected", "Input entries rejected, by reason code.", "reason")
        self._alarms = counter("alarms", "Alarms raised, by kind.", "kind")
        for kind in get_args(AlarmKind):
            self._alarms.labels(feed, kind)
        for code in CODES:  # a counter that begins at 0 shows its first increase
            self._rejected.labels(feed, code)
        self._batch = seconds("batch", "Time to answer one batch, its wait for refits included.")
        self._commit = seconds(
            "commit",
            "Time from sending a commit to its confirmation; the next batch is answered meanwhile.",
        )
        self._refit = seconds("refit", "Time to compute one refit.")
        self._refit_wait = seconds("refit_wait", "Time that the feed waited for a refit.")
        self._replay = seconds("replay", "Time of one recovery, its replay included.")
        self.snapshot_bytes = 0
        self.answered_at = self.snapshot_at = 0.0

    @override
    def answered(self, seconds: float) -> None:
        self._batch.observe(seconds)

    @override
    def committed(self, commit: Commit, seconds: float) -> None:
        super().committed(commit, seconds)
        self._commit.observe(seconds)
        self._answers.inc(len(commit.out))
        self._reports.inc(len(commit.met))
        for letter in commit.dlq:
            self._rejected.labels(self._feed, letter.code).inc()
        for _, payload in commit.alarms:
            for alarm in orjson.loads(payload)["alarms"]:
                self._alarms.labels(self._feed, alarm["kind"]).inc()
        if commit.out:
            self.answered_at = time.time()

    @override
    def kept_snapshot(self, size: int) -> None:
        self._snapshots.inc()
        self.snapshot_bytes, self.snapshot_at = size, time.time()

    @override
    def replayed(self, seconds: float) -> None:
        self._replay.observe(seconds)
        self._replayed.inc(self.replay[0])

    @override
    def refitted(self, seconds: float, waited: float) -> None:
        self._refit.observe(seconds)
        self._refit_wait.observe(waited)


class Present(Collector):
    """The metrics that are read when they are asked for: lag, the newest report, the connection.

    Parameters
    ----------
    feed : str
    state : WorkerMetrics
    watch : FeedWatch
    """

    def __init__(
        self,
        feed: str,
        state: WorkerMetrics,
        watch: FeedWatch,
    ) -> None:
        self._feed, self._state, self._watch = feed, state, watch

    def describe(self) -> Iterable[Metric]:
        """Name no metric: registering them then reads nothing from Redis."""
        return ()

    @override
    def collect(self) -> Iterable[Metric]:
        view = self._watch.look()
        yield build()
        yield from self._of_worker()
        yield from self._of_feed(view)
        if self._state.posts is not None:
            yield from of_webhook([self._state.posts])
        if view.answer is not None:
            yield from of_answer(self._feed, view.answer)
        if view.pending is not None:
            yield from of_pending({self._feed: view.pending})
        if view.report is not None:
            yield from of_report(self._feed, view.report)

    def _of_worker(self) -> Iterable[Metric]:
        state, feed = self._state, self._feed
        stage = gauge("stage", "What the worker does: 1 for one of them.", "stage")
        for name in STAGES:
            stage.add_metric([feed, name], float(state.stage == name))
        yield stage
        done, total = state.replay
        yield _one("replay_entries", "Entries of the last replay.", feed, total)
        yield _one("replay_done_entries", "Of these, answered again so far.", feed, done)
        yield _one("snapshot_bytes", "Size of the last snapshot.", feed, state.snapshot_bytes)
        yield _one(
            "snapshot_timestamp_seconds", "When the last snapshot was committed; 0: not yet.",
            feed, state.snapshot_at,
        )  # fmt: skip
        yield _one(
            "answer_timestamp_seconds", "When the last answers were committed; 0: not yet.",
            feed, state.answered_at,
        )  # fmt: skip
        yield self._retries()

    def _of_feed(self, view: FeedView) -> Iterable[Metric]:
        feed = self._feed
        is_up = self._watch.trouble is None
        yield _one("redis_up", "1 if Redis answers the worker's own question.", feed, is_up)
        figures = (
            ("learned_examples", "Examples learned since the feed began.", view.learned),
            ("epoch", "Number of writers that the feed has had.", view.epoch),
            ("lag_entries", "Input entries without an answer.", view.lag_entries),
            (
                "lag_seconds",
                "Age of the oldest input entry without an answer; 0: none waits.",
                view.lag_seconds,
            ),
        )
        for name, text, value in figures:
            if value is not None:
                yield _one(name, text, feed, value)

    def _retries(self) -> Metric:
        family = counted("redis_retries", "Commands sent to Redis again, by reason.", "reason")
        store = self._state.store
        kinds = {} if store is None else store.retries
        for reason in sorted({"timeout", "connection", *kinds}):
            family.add_metric([self._feed, reason], kinds.get(reason, 0))
        return family


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


def _one(name: str, text: str, feed: str, value: float) -> Metric:
    family = gauge(name, text)
    family.add_metric([feed], float(value))
    return family


@cache  # finding the versions takes longer than the rest of a scrape
def build() -> Metric:
    """Return the versions that decide the bytes of answers, as labels of a 1."""
    names = {"version": __version__, "python": platform.python_version()}
    names |= {package.replace("-", "_"): version(package) for package in _PACKAGES}
    family = GaugeMetricFamily(f"{PREFIX}_build_info", "Versions at work.", labels=list(names))
    family.add_metric(list(names.values()), 1.0)
    return family
