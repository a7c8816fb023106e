"""Start the outlets of a worker: metrics, probes, notifications to systemd, and webhooks.

systemd is notified by its protocol (man 3 sd_notify): datagrams of `NAME=value` lines to the socket
in NOTIFY_SOCKET. The watchdog is notified while the worker is live (see `health`), so that systemd
restarts a worker that hangs.
"""

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING

from workers.config.settings import WorkerSettings
from workers.log import Logger
from workers.monitor.watch import WorkerWatch
from workers.monitor.webhook import Webhooks
from workers.monitor.webhook_post import receiver_of
from workers.python_process import importing

if TYPE_CHECKING:
    from workers.monitor.health import Health

MESSAGE_SECONDS = 1.0  # time between two messages; shorter if the watchdog needs it

_STARTED = ("standby", "answering")
"""Stages that systemd shows as started: a standby may wait for the lease for ever."""

_EXTENSION_MICROSECONDS = 30_000_000
"""Extension of the start timeout by each message until then: a replay may take long."""

log = Logger("online_svm.monitor")


def check_outlets(settings: WorkerSettings) -> None:
    """Raise BadConfiguration if the alarm URL or the address of the metrics cannot be used.

    A port in use is accepted: a running worker with these settings may use it.
    """
    receiver_of(settings)
    if settings.metrics is not None:
        from workers.monitor.server import Address

        Address.parse(settings.metrics).check()


@contextmanager
def watching(url: str, address: str | None) -> Iterator[WorkerWatch]:
    """Run the outlets within the block; yield the state for the worker to update.

    `/metrics`, `/livez` and `/readyz` are served at `address`, unless it is None. BadConfiguration:
    nothing can listen there.
    """
    with ExitStack() as opened:
        watch = WorkerWatch(opened.enter_context(closing(Webhooks(url))))
        if address is None and "NOTIFY_SOCKET" not in os.environ:
            yield watch
            return
        with importing():
            from prometheus_client import GC_COLLECTOR, PROCESS_COLLECTOR, CollectorRegistry

            from workers.monitor.health import Health, StatusCache
            from workers.monitor.metrics import WorkerMetrics
            from workers.monitor.server import Address, Endpoint, serving

        cache = opened.enter_context(closing(StatusCache(url)))
        health = Health(watch, cache)
        if address is not None:
            registry = CollectorRegistry()
            for collector in (PROCESS_COLLECTOR, GC_COLLECTOR, WorkerMetrics(watch, cache)):
                registry.register(collector)
            endpoint = Endpoint(registry, health)
            at = opened.enter_context(serving(Address.parse(address), endpoint))
            log.info("metrics are served", address=f"http://{at}/metrics")
        opened.enter_context(supervised(os.environ, watch, health))
        yield watch


class Supervisor:
    """Notifies the service manager at the address of its socket; @ means the abstract namespace."""

    def __init__(self, address: str, watch: WorkerWatch, health: "Health") -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._watch, self._health = watch, health
        self._is_ready = False

    def send(self, *lines: str) -> None:
        """Send lines; drop them if the manager is gone or busy."""
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
            datagrams.setblocking(False)
            datagrams.sendto("\n".join(lines).encode(), self._address)

    def tick(self) -> None:
        """Send the present health of the worker; until it has started, extend the timeout."""
        failing, start = self._health.unready(), []
        if not self._is_ready:
            self._is_ready = self._watch.stage in _STARTED
            extension = f"EXTEND_TIMEOUT_USEC={_EXTENSION_MICROSECONDS}"
            start = ["READY=1" if self._is_ready else extension]
        status = f"STATUS={'; '.join(failing) or 'answers'}"[:500]
        self.send(*start, status, *([] if self._health.dead() else ["WATCHDOG=1"]))


@contextmanager
def supervised(
    environment: Mapping[str, str], watch: WorkerWatch, health: "Health"
) -> Iterator[None]:
    """Send the health of the worker to the service manager, if there is one, within the block."""
    address = environment.get("NOTIFY_SOCKET")
    if not address:
        yield
        return
    supervisor = Supervisor(address, watch, health)
    ended, seconds = threading.Event(), interval(environment)

    def run() -> None:
        supervisor.tick()
        while not ended.wait(seconds):
            supervisor.tick()

    thread = threading.Thread(target=run, name="sd-notify", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(MESSAGE_SECONDS)
        supervisor.send("STOPPING=1", "STATUS=stops")


def interval(environment: Mapping[str, str]) -> float:
    """Return the seconds between two messages.

    Examples
    --------
    >>> interval({"WATCHDOG_USEC": "600000", "WATCHDOG_PID": str(os.getpid())}), interval({})
    (0.2, 1.0)
    """
    watchdog = environment.get("WATCHDOG_USEC", "")
    is_ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    if watchdog.isdigit() and int(watchdog) and is_ours:
        return min(MESSAGE_SECONDS, int(watchdog) / 3e6)
    return MESSAGE_SECONDS
