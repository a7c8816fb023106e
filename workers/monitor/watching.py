"""Everything that watches one worker, put together."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from prometheus_client import GC_COLLECTOR, PROCESS_COLLECTOR, CollectorRegistry

from workers.config.settings import WorkerSettings
from workers.log import Logger
from workers.monitor.health import Health
from workers.monitor.metrics import WorkerMetrics
from workers.monitor.server import Address, Endpoint, serving
from workers.monitor.standings import Standings
from workers.monitor.supervisor import supervised
from workers.monitor.watch import WorkerWatch
from workers.monitor.webhook import Webhooks
from workers.monitor.webhook_post import receiver_of

log = Logger("online_svm.monitor")


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
def watching(url: str, address: str | None) -> Iterator[WorkerWatch]:
    """Watch a worker within the block; yield what it is to tell of its work.

    Parameters
    ----------
    url : str
        Of Redis.
    address : str or None
        Where `/metrics`, `/livez` and `/readyz` are served; None serves none of them.

    Raises
    ------
    BadConfiguration
        If nothing can listen at the address.
    """
    with ExitStack() as opened:
        watch = WorkerWatch(opened.enter_context(closing(Webhooks(url))))
        if address is None and "NOTIFY_SOCKET" not in os.environ:
            yield watch
            return
        standings = opened.enter_context(closing(Standings(url)))
        health = Health(watch, standings)
        if address is not None:
            registry = CollectorRegistry()
            for collector in (PROCESS_COLLECTOR, GC_COLLECTOR, WorkerMetrics(watch, standings)):
                registry.register(collector)
            endpoint = Endpoint(registry, health)
            at = opened.enter_context(serving(Address.parse(address), endpoint))
            log.info("metrics are served", address=f"http://{at}/metrics")
        opened.enter_context(supervised(os.environ, watch, health))
        yield watch
