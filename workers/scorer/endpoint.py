"""The metrics endpoint of a scorer, with its probes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import (
    GC_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    disable_created_metrics,
)
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from workers.log import Logger
from workers.monitor.health import LIVE_SECONDS
from workers.monitor.metrics import counted, gauge
from workers.monitor.server import Address, Endpoint, Probes, serving
from workers.scorer.settings import ScorerCounts

log = Logger("online_svm.scorer")


class ScorerMetrics(Collector):
    """The current metrics of a scorer."""

    def __init__(self, feed: str, counts: ScorerCounts) -> None:
        self._feed, self._counts = feed, counts

    @override
    def collect(self) -> Iterator[Metric]:
        counts, feed = self._counts, self._feed
        totals = (
            ("scorer_answers", "Answers written, those without a probability included.",
             counts.written),
            ("scorer_unavailable", "Answers that say that there is none now.", counts.unavailable),
            ("scorer_answered_elsewhere", "Requests that another scorer answered, or had answered.",
             counts.elsewhere),
            ("scorer_taken_over", "Requests of scorers that did not answer them.",
             counts.taken_over),
            ("scorer_states", "Published states read.", counts.states),
        )  # fmt: skip
        for name, text, value in totals:
            total = counted(name, text)
            total.add_metric([feed], value)
            yield total
        is_usable = counts.n is not None and counts.stale is None
        figures: list[tuple[str, str, float]] = [
            ("scorer_waiting_requests", "Requests without an answer.", counts.waiting),
            ("scorer_state_usable", "1 if a published state is new enough.", is_usable),
        ]
        if counts.n is not None:
            figures += [
                ("scorer_state_examples", "Examples learned in the state that answers.", counts.n),
                ("scorer_behind_examples", "Examples that the feed has learned since.",
                 counts.behind),
                ("scorer_state_age_seconds", "Since that state was published.", counts.age),
            ]  # fmt: skip
        for name, text, figure in figures:
            family = gauge(name, text)
            family.add_metric([feed], figure)
            yield family


class ScorerHealth(Probes):
    """A scorer is ready if Redis replies and there is a state that is new enough."""

    def __init__(self, counts: ScorerCounts) -> None:
        self._counts = counts

    @override
    def unready(self) -> list[str]:
        counts = self._counts
        if not counts.is_at_work:
            return ["the scorer is starting"]
        if (trouble := counts.trouble()) is not None:
            return [f"redis: {trouble.reason}"]
        if counts.n is None:
            return ["state: the worker has published none"]
        return [] if counts.stale is None else [f"state: {counts.stale}"]

    @override
    def dead(self) -> list[str]:
        seconds = time.monotonic() - self._counts.turned
        if seconds <= LIVE_SECONDS:
            return []
        return [f"requests: no batch was finished for {seconds:.0f} s"]


@contextmanager
def serving_scorer(feed: str, counts: ScorerCounts, address: str | None) -> Iterator[None]:
    """Serve the metrics of a scorer within the block; nothing without an address.

    Raises BadConfiguration if the address cannot be used.
    """
    if address is None:
        yield
        return
    disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no type for it
    registry = CollectorRegistry()
    for collector in (PROCESS_COLLECTOR, GC_COLLECTOR, ScorerMetrics(feed, counts)):
        registry.register(collector)
    endpoint = Endpoint(registry, ScorerHealth(counts))
    with serving(Address.parse(address), endpoint) as at:
        log.info("metrics are served", address=f"http://{at}/metrics")
        yield
