"""The lease: which worker runs a feed, so that others wait. Correctness needs only the fence."""

import json
import math
import os
import platform
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import orjson
import structlog

from workers.broker.connection import Connection
from workers.broker.script import Script
from workers.errors import Stopped, Unavailable, WorkerError
from workers.stop import Stop

log = structlog.get_logger("online_svm.lease")

REPLACE = Script.load("replace_lease", name="lease-replace")
RELEASE = Script.load("release_lease", name="lease-release")

LONGEST = 4096
"""Largest lease in bytes; names of hosts and workers are far shorter."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The value of the lease.

    Attributes
    ----------
    name : str
        Stable name of the worker.
    host : str
        Scope in which the process id is unique.
    pid : int
    started : str
        Start of the process, as the system reports it: distinguishes later processes with this id.
    token : str
        Random: distinguishes two leases of one process.
    """

    name: str
    host: str
    pid: int
    started: str
    token: str

    @classmethod
    def here(cls, name: str) -> Self:
        """Return this process as a holder, with a new token."""
        pid = os.getpid()
        return cls(name, host_identity(), pid, process_start(pid) or "", secrets.token_hex(8))

    @classmethod
    def parse(cls, text: bytes) -> Self | None:
        """Return the holder, or None if the text is not one.

        Examples
        --------
        >>> Holder.parse(b'{"name":"w","host":"h","pid":"self","started":"","token":""}')
        """
        try:
            found: Any = orjson.loads(text) if len(text) <= LONGEST else None
        except orjson.JSONDecodeError:
            return None
        return cls(**found) if _is_holder(found) else None

    def encode(self) -> bytes:
        """Return the text stored in Redis."""
        return json.dumps(asdict(self)).encode()

    def is_dead(self) -> bool:
        """Return whether the process is certainly gone: same host, and no such process."""
        return self.host == host_identity() and process_start(self.pid) != self.started


def _is_holder(found: Any) -> bool:
    """Return whether an object has the fields of a `Holder` with the right types."""
    kinds = {name: int if name == "pid" else str for name in Holder.__slots__}
    if not isinstance(found, dict) or found.keys() != kinds.keys():
        return False
    return all(type(found[name]) is kind for name, kind in kinds.items()) and found["pid"] > 0


class Lease:
    """The lease of one feed. A thread with its own connection renews it.

    Parameters
    ----------
    url : str
    key : str
    name : str
        Stable name of the worker.
    seconds : float
        Time to live after each renewal.

    Attributes
    ----------
    was_waited_for : bool
        Whether another worker held it when `acquire` was called.
    seconds : float
    renewed : float
        When it was last held for certain, by `time.monotonic`; negative before.
    """

    def __init__(self, url: str, key: str, name: str, seconds: float = 5.0) -> None:
        self._url, self._key, self.seconds = url, key, seconds
        self._mine = Holder.here(name).encode()
        self._ended = threading.Event()
        self._lost = threading.Event()
        self._thread: threading.Thread | None = None
        self.was_waited_for, self.renewed = False, -math.inf

    def acquire(
        self,
        stop: Stop,
        patience: float | None = None,
        look: Callable[[], object] = lambda: None,
    ) -> None:
        """Wait until the lease is free or its holder is known to be dead, then hold it.

        `look` is called again and again while another holds it.

        Raises
        ------
        Stopped
            If a stop is requested first.
        Unavailable
            If Redis does not answer in the first place, for longer than the patience.
        """
        connection = Connection(self._url, stop, patience)
        waiting_for, self.was_waited_for = b"", False
        while (holder := self._try(connection, self._held(connection))) is not None:
            connection.patience = None  # Redis is up: a restart of it ends no process that waits
            if holder != waiting_for:
                waiting_for, self.was_waited_for = holder, True
                known = Holder.parse(holder)
                log.info("waiting for the lease", holder=known.name if known else repr(holder[:80]))
            look()
            if stop.wait(self.seconds / 5):
                raise Stopped("stopped while waiting for the lease")
        connection.close()
        self.renewed = time.monotonic()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    def pop_loss(self) -> bool:
        """Return whether the lease was found lost since the last call, and forget it."""
        lost = self._lost.is_set()
        self._lost.clear()
        return lost

    def release(self) -> None:
        """Stop renewing, and delete the lease if it is still this one."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(self.seconds)
        connection = Connection(self._url, Stop())
        try:
            connection.evaluate(RELEASE, [self._key], [self._mine])
        except WorkerError as error:
            log.warning("the lease was not released; it lapses by itself", error=str(error))
        finally:
            connection.close()

    def _held(self, connection: Connection) -> bytes:
        """Return the present value of the lease; empty if there is none."""
        return connection.call("GET", self._key) or b""

    def _try(self, connection: Connection, held: bytes) -> bytes | None:
        """Acquire the lease if it is free; else return the value of its holder."""
        if held == self._mine or not is_held(held):
            milliseconds = int(self.seconds * 1000)
            if connection.evaluate(REPLACE, [self._key], [held, self._mine, milliseconds]):
                return None
        return held

    def _renew(self) -> None:
        # Renew after a third of the time to live; wait at most another third for a reply.
        connection = Connection(self._url, Stop(), timeout=self.seconds / 3)
        is_warned = False
        while not self._ended.wait(self.seconds / 3):
            try:
                held = self._held(connection)
                # A missing lease is lost too: Redis was flushed, or another worker held it.
                if held != self._mine:
                    self._lost.set()
                if self._try(connection, held) is None:
                    self.renewed = time.monotonic()
                    if is_warned:
                        log.info("the lease is renewed again")
                        is_warned = False
            except Unavailable:
                continue  # the engine's own connections report this
            except WorkerError as error:
                log.warning("the lease is not renewed", error=str(error))
                is_warned = True
        connection.close()


@contextmanager
def holding(
    url: str,
    key: str,
    name: str,
    seconds: float,
    stop: Stop,
    patience: float,
    look: Callable[[], object] = lambda: None,
) -> Iterator[Lease]:
    """Hold a lease within the block; see `Lease` and `Lease.acquire`."""
    lease = Lease(url, key, name, seconds)
    lease.acquire(stop, patience, look)
    try:
        yield lease
    finally:
        lease.release()


def is_held(held: bytes | None) -> bool:
    """Return whether the value of a lease is that of a worker that may be alive.

    Examples
    --------
    >>> is_held(None), is_held(Holder.here("me").encode())
    (False, True)
    """
    if not held:
        return False
    holder = Holder.parse(held)
    return holder is None or not holder.is_dead()


def host_identity() -> str:
    """Return the scope of process ids: this boot of this machine, and the pid namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def process_start(pid: int) -> str | None:
    """Return when a process started, or None if it does not exist.

    Examples
    --------
    >>> process_start(os.getpid()) is None
    False
    """
    try:
        # The name in parentheses may contain anything. The start time is the 20th field after it.
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if status[0] == "Z" else status[19]
    except (FileNotFoundError, ProcessLookupError):  # the second if it ends while it is read
        if Path("/proc/self/stat").exists():
            return None
    listed = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return listed.stdout.strip() or None
