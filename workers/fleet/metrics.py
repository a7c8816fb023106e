"""The metrics of a process of many feeds: those of a worker, at most some twenty lines a feed.

Histograms are of all feeds together, under feed="*": nineteen bounds times a thousand feeds would
take a scrape seconds. The lag of each feed is read when it is asked for.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager

import structlog
from prometheus_client import (
    GC_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from workers.fleet.health import FleetHealth
from workers.fleet.lags import Lags
from workers.fleet.watch import Duration, FleetWatch
from workers.monitor.address import Address
from workers.monitor.families import PREFIX, counted, gauge
from workers.monitor.metrics import SECONDS, build, of_webhook
from workers.monitor.reported import of_pending
from workers.monitor.server import Endpoint, serving
from workers.monitor.supervisor import supervised
from workers.monitor.webhook import Webhooks

ALL = "*"
"""The label `feed` of what is of all feeds together; no feed can have this name."""

_TOLD = {
    "batch": "Time to answer one batch, its wait for refits included.",
    "commit": "Time from sending a commit to its confirmation.",
    "refit": "Time to compute one refit.",
    "refit_wait": "Time that a feed waited for a refit.",
    "replay": "Time of one recovery, its replay included.",
}

log = structlog.get_logger("online_svm.monitor")


class Durations:
    """Histograms over all feeds.

    Parameters
    ----------
    registry : CollectorRegistry
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._of = {
            name: Histogram(
                name, text, ("feed",), PREFIX, unit="seconds", registry=registry, buckets=SECONDS
            ).labels(ALL)
            for name, text in _TOLD.items()
        }

    def __call__(self, duration: Duration, seconds: float) -> None:
        """Count a duration."""
        self._of[duration].observe(seconds)


class FleetMetrics(Collector):
    """What the feeds of a process told, and how far they lag.

    Parameters
    ----------
    watch : FleetWatch
    lags : Lags
    """

    def __init__(self, watch: FleetWatch, lags: Lags) -> None:
        self._watch, self._lags = watch, lags

    def describe(self) -> Iterable[Metric]:
        """Name no metric: registering them then reads nothing from Redis."""
        return ()

    @override
    def collect(self) -> Iterable[Metric]:
        yield build()
        yield from self._of_work()
        yield from self._by_reason()
        yield from self._of_lag()
        yield self._retries()
        records = list(self._watch.feeds.values())
        yield from of_webhook(one.posts for one in records if one.posts is not None)

    def _of_work(self) -> Iterator[Metric]:
        feeds = list(self._watch.feeds.items())
        stage = gauge("stage", "What a feed does: 1.", "stage")
        answers = counted("answers", "Input entries answered and committed.")
        reports = counted("reports", "Validity reports committed.")
        snapshots = counted("snapshots", "Snapshots committed.")
        replayed = counted("replayed", "Entries answered again by replays.")
        at = gauge("answer_timestamp_seconds", "When the last answers were committed; 0: not yet.")
        for feed, record in feeds:
            stage.add_metric([feed, record.stage], 1.0)
            answers.add_metric([feed], record.answers)
            reports.add_metric([feed], record.reports)
            snapshots.add_metric([feed], record.snapshots)
            replayed.add_metric([feed], record.replayed_entries)
            at.add_metric([feed], record.answered_at)
        yield from (stage, answers, reports, snapshots, replayed, at)

    def _by_reason(self) -> Iterator[Metric]:
        rejected = counted("rejected", "Input entries rejected, by reason code.", "reason")
        alarms = counted("alarms", "Alarms raised, by kind.", "kind")
        for feed, record in list(self._watch.feeds.items()):
            for code, count in dict(record.rejected).items():
                rejected.add_metric([feed, code], count)
            for kind, count in dict(record.alarms).items():
                alarms.add_metric([feed, kind], count)
        yield from (rejected, alarms)

    def _of_lag(self) -> Iterator[Metric]:
        entries = gauge("lag_entries", "Input entries without an answer.")
        seconds = gauge(
            "lag_seconds", "Age of the oldest input entry without an answer; 0: none waits."
        )
        up = gauge("redis_up", "1 if Redis answers the worker's own question.")
        found = self._lags.look(list(self._watch.feeds))
        up.add_metric([ALL], float(found is not None))
        for feed, lag in (found or {}).items():
            entries.add_metric([feed], lag.entries)
            seconds.add_metric([feed], lag.seconds)
        yield from (entries, seconds, up)
        pending = {feed: lag.labels for feed, lag in (found or {}).items() if lag.labels}
        yield from of_pending(pending)

    def _retries(self) -> Metric:
        family = counted("redis_retries", "Commands sent to Redis again, by reason.", "reason")
        kinds: dict[str, int] = {"timeout": 0, "connection": 0}
        for connection in self._watch.connections:
            for kind, count in dict(connection.retries).items():
                kinds[kind] = kinds.get(kind, 0) + count
        for kind in sorted(kinds):
            family.add_metric([ALL, kind], kinds[kind])
        return family


@contextmanager
def watching(url: str, address: str | None) -> Iterator[FleetWatch]:
    """Watch a process of many feeds within the block; yield what it is to tell of its work.

    Raises
    ------
    BadConfiguration
        If nothing can listen at the address.
    """
    webhooks = Webhooks(url)
    if address is None and "NOTIFY_SOCKET" not in os.environ:
        with closing(webhooks):
            yield FleetWatch(webhooks=webhooks)
        return
    disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no type for it
    registry = CollectorRegistry()
    watch = FleetWatch(Durations(registry), webhooks)
    health = FleetHealth(watch)
    with ExitStack() as opened:
        opened.enter_context(closing(webhooks))
        if address is not None:
            lags = opened.enter_context(closing(Lags(url)))
            for collector in (PROCESS_COLLECTOR, GC_COLLECTOR, FleetMetrics(watch, lags)):
                registry.register(collector)
            endpoint = Endpoint(registry, health)
            at = opened.enter_context(serving(Address.parse(address), endpoint))
            log.info("metrics are served", address=f"http://{at}/metrics")
        opened.enter_context(supervised(os.environ, watch, health))
        yield watch
