"""Everything that watches one worker, put together."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import structlog
from prometheus_client import (
    GC_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    disable_created_metrics,
)

from workers.config.settings import WorkerSettings
from workers.engine.telemetry import Telemetry
from workers.monitor.address import Address
from workers.monitor.health import Health
from workers.monitor.metrics import Present, WorkerMetrics
from workers.monitor.server import Endpoint, serving
from workers.monitor.supervisor import supervised
from workers.monitor.view import FeedWatch
from workers.monitor.webhook import posting
from workers.monitor.webhook_post import Receiver, receiver_of

log = structlog.get_logger("online_svm.monitor")


def check_outlets(settings: WorkerSettings) -> None:
    """Raise where `watching` would with these settings; nothing is served or posted.

    A port that is in use passes: the worker whose settings these are may have it.

    Raises
    ------
    BadConfiguration
        If alarms cannot be posted, or nothing can listen at the address of the metrics.

    Examples
    --------
    >>> check_outlets(WorkerSettings(alarm_url="ftp://host/"))
    Traceback (most recent call last):
    workers.errors.BadConfiguration: setting alarm_url: write http://host/path or \
https://host/path, without a user, a fragment or a space
    """
    receiver_of(settings)
    if settings.metrics is not None:
        Address.parse(settings.metrics).check()


@contextmanager
def watching(
    feed: str,
    url: str,
    address: str | None,
    source: str | None = None,
    receiver: Receiver | None = None,
) -> Iterator[Telemetry]:
    """Watch a worker within the block; yield what it is to tell of its work.

    Parameters
    ----------
    feed : str
    url : str
        Of Redis.
    address : str or None
        Where `/metrics`, `/livez` and `/readyz` are served; None serves none of them.
    source : str, optional
        For a combination: the feed whose answers it answers in order.
    receiver : Receiver, optional
        Where its alarms are posted.

    Raises
    ------
    BadConfiguration
        If nothing can listen at the address.
    """
    if address is None and receiver is None and "NOTIFY_SOCKET" not in os.environ:
        yield Telemetry()
        return
    disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no type for it
    registry = CollectorRegistry()
    state = WorkerMetrics(feed, registry)
    with ExitStack() as opened:
        watch = opened.enter_context(closing(FeedWatch(url, feed, source)))
        health = Health(state, watch)
        if receiver is not None:
            state.posts = opened.enter_context(posting(url, receiver)).add(feed)
        if address is not None:
            present = Present(feed, state, watch)
            for collector in (PROCESS_COLLECTOR, GC_COLLECTOR, present):
                registry.register(collector)
            endpoint = Endpoint(registry, health)
            at = opened.enter_context(serving(Address.parse(address), endpoint))
            log.info("metrics are served", address=f"http://{at}/metrics")
        opened.enter_context(supervised(os.environ, state, health))
        yield state
