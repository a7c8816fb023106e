"""Tell systemd how the worker is, by its notification protocol (man 3 sd_notify).

The protocol is a datagram of `NAME=value` lines to a socket that the environment names. The
watchdog is fed while the worker lives; see `health`. So systemd restarts one that hangs, even
where nobody scrapes it.
"""

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Protocol

from workers.monitor.health import Probes
from workers.session.telemetry import Stage

TICK = 1.0
"""Seconds between two messages; less where the watchdog asks for it."""

_BEGUN = ("standby", "answering")
"""Stages in which the service counts as started: a standby may wait for the lease for ever."""

_EXTENSION = 30_000_000
"""Microseconds by which each message of a start puts its time-out off: a replay takes its time."""


class Staged(Protocol):
    """A worker that is in some stage."""

    @property
    def stage(self) -> Stage:
        """What it does."""


class Supervisor:
    """The connection to the service manager.

    Parameters
    ----------
    address : str
        Of its socket; a leading @ stands for the abstract namespace.
    state : Staged
    health : Probes
    """

    def __init__(self, address: str, state: Staged, health: Probes) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._state, self._health = state, health
        self._is_ready = False

    def tell(self, *lines: str) -> None:
        """Send lines; a manager that is gone or busy is not waited for."""
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
            datagrams.setblocking(False)
            datagrams.sendto("\n".join(lines).encode(), self._address)

    def tick(self) -> None:
        """Tell how the worker is now."""
        failing = self._health.unready()
        self.tell(*self._begun(), f"STATUS={'; '.join(failing) or 'answers'}"[:500], *self._alive())

    def _begun(self) -> list[str]:
        """Return what to say of the start: that it is over, or that it goes on."""
        if self._is_ready:
            return []
        self._is_ready = self._state.stage in _BEGUN
        return ["READY=1"] if self._is_ready else [f"EXTEND_TIMEOUT_USEC={_EXTENSION}"]

    def _alive(self) -> list[str]:
        return [] if self._health.dead() else ["WATCHDOG=1"]


@contextmanager
def supervised(environment: Mapping[str, str], state: Staged, health: Probes) -> Iterator[None]:
    """Within the block, tell the service manager how the worker is, if there is one."""
    address = environment.get("NOTIFY_SOCKET")
    if not address:
        yield
        return
    supervisor = Supervisor(address, state, health)
    ended = threading.Event()
    thread = threading.Thread(
        target=_run, args=(supervisor, ended, interval(environment)), name="sd-notify", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(TICK)
        supervisor.tell("STOPPING=1", "STATUS=stops")


def interval(environment: Mapping[str, str]) -> float:
    """Return the seconds between two messages.

    Examples
    --------
    >>> interval({"WATCHDOG_USEC": "600000", "WATCHDOG_PID": str(os.getpid())}), interval({})
    (0.2, 1.0)
    """
    asked = environment.get("WATCHDOG_USEC", "")
    is_ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return min(TICK, int(asked) / 3e6) if asked.isdigit() and int(asked) and is_ours else TICK


def _run(supervisor: Supervisor, ended: threading.Event, seconds: float) -> None:
    supervisor.tick()
    while not ended.wait(seconds):
        supervisor.tick()
