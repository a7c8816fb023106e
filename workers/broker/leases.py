"""The leases of a process: which worker runs a feed. Liveness only; correctness is the fence's."""

import json
import math
import os
import platform
import secrets
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

import orjson
from typing_extensions import override

from workers.broker.commands import Script
from workers.broker.connection import Connection
from workers.broker.pipeline import PendingReply
from workers.errors import Unavailable, WorkerError, WrongKeyType
from workers.feed.keys import FeedKeys
from workers.log import Logger
from workers.stop import Stop

log = Logger("online_svm.lease")

_REPLACE = Script.load("replace_lease", name="lease-replace")
_RELEASE = Script.load("release_lease", name="lease-release")
_RENEW = Script.load("renew_leases", name="lease-renew")

LEASES_PER_CALL = 100
"""Leases in one call: the script keeps Redis from others for some 0.2 ms."""

MAX_LEASE_BYTES = 4096
"""Largest lease in bytes; names of hosts and workers are far shorter."""


class HeldLease(Protocol):
    """A lease that is renewed elsewhere."""

    def pop_loss(self) -> bool:
        """Return whether it was found lost since the last call, and forget it."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The value of the lease."""

    name: str  # stable name of the worker
    host: str  # scope in which the process id is unique
    pid: int
    # Start of the process, as the system reports it: distinguishes later processes with this id
    started: str
    token: str  # Random: distinguishes two leases of one process

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
            found: Any = orjson.loads(text) if len(text) <= MAX_LEASE_BYTES else None
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


def is_held(held: bytes | None) -> bool:
    """Return whether the holder of a lease with this value may be alive."""
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
    """Return when a process started, or None if it does not exist."""
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


@dataclass(slots=True, eq=False)
class FeedLease(HeldLease):
    """The lease of one feed."""

    feed: str
    key: str
    seconds: float  # time to live after each renewal
    is_held: bool = False  # whether this process has it, as far as it knows
    # When it was last held for certain, by `time.monotonic`; negative before
    renewed: float = -math.inf
    holder: str = ""  # of another process; empty if it is free
    problem: str | None = None  # why it cannot be held: the key holds another type
    lost: threading.Event = field(default_factory=threading.Event)  # and `pop_loss` not called

    @override
    def pop_loss(self) -> bool:
        was_lost = self.lost.is_set()
        if was_lost:
            self.lost.clear()
        return was_lost


class Leases:
    """The leases that a process holds or waits for.

    One thread acquires and renews them. Each feed has a lease of its own, so that another process
    may hold any of them. All have one value, so one call of a script renews a hundred: a thousand
    cost a few milliseconds every third of their time to live.

    Parameters
    ----------
    seconds : float
        Time to live after each renewal.
    wake : callable
        Called when a lease changes; `changed` returns which.
    together : int
        Leases in one call.

    Attributes
    ----------
    renewed : float or None
        When the leases that were due were last renewed, by `time.monotonic`.
    """

    def __init__(
        self,
        url: str,
        name: str,
        seconds: float,
        wake: Callable[[], None],
        together: int = LEASES_PER_CALL,
    ) -> None:
        self._url, self.seconds, self._wake, self._together = url, seconds, wake, together
        self._mine = Holder.here(name).encode()
        self._leases: dict[str, FeedLease] = {}
        self._changed: list[FeedLease] = []
        self._lock = threading.Lock()
        self._asked, self._is_ended = threading.Event(), False
        self.renewed: float | None = None
        self._is_warned = False
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ended = True
        self._asked.set()
        self._thread.join(self.seconds)
        self.release(list(self._leases.values()))

    def ask(self, feed: str) -> FeedLease:
        """Return the lease of a feed; it is acquired as soon as no other process holds it."""
        lease = FeedLease(feed, FeedKeys(feed).lease, self.seconds)
        with self._lock:
            self._leases[feed] = lease
        self._asked.set()
        return lease

    def release(self, leases: Sequence[FeedLease]) -> None:
        """Release leases: stop renewing them, and delete those that this process still holds."""
        with self._lock:
            for lease in leases:
                if self._leases.get(lease.feed) is lease:
                    del self._leases[lease.feed]
        held = [lease for lease in leases if lease.is_held]
        for lease in held:
            lease.is_held = False
        if not held:
            return
        connection = self._connection()
        sent = [connection.send_script(_RELEASE, [one.key], [self._mine]) for one in held]
        problems = Counter[str]()
        for each in sent:
            try:
                connection.receive_script(_RELEASE, each)
            except WorkerError as error:
                problems[str(error)] += 1
        for problem, count in problems.items():
            log.warning(
                "leases were not released; they lapse by themselves", leases=count, error=problem
            )
        connection.close()

    def probe(self, connection: Connection, feed: str, replicas: int) -> None:
        """Renew the lease if this process holds it, then wait for `replicas` acknowledgements."""
        connection.evaluate(_RENEW, [FeedKeys(feed).lease], self._renewal(), replicas)

    def changed(self) -> list[FeedLease]:
        """Return the leases of which something is new: held, lost, unusable, or another's."""
        if not self._changed:
            return []
        with self._lock:
            changed, self._changed = self._changed, []
        return changed

    def _run(self) -> None:
        # Those that are held are renewed after a third of their time to live; the others, and
        # those asked for since, are looked at after a fifth of it, or at once.
        connection = self._connection()
        due = time.monotonic()
        while True:
            self._asked.wait(self.seconds / 5)
            self._asked.clear()
            if self._is_ended:
                connection.close()
                return
            is_due = time.monotonic() >= due
            if is_due:
                due = time.monotonic() + self.seconds / 3 - self.seconds / 10
            with self._lock:
                leases = [one for one in self._leases.values() if is_due or not one.is_held]
            if self._look_at(connection, leases) and is_due:
                self.renewed = time.monotonic()

    def _look_at(self, connection: Connection, leases: Sequence[FeedLease]) -> bool:
        """Renew or acquire leases; return whether any call succeeded, or there was none to make."""
        parts = [leases[i : i + self._together] for i in range(0, len(leases), self._together)]
        sent = [
            connection.send_script(_RENEW, [one.key for one in part], self._renewal())
            for part in parts
        ]
        done, problems = 0, set[str]()
        for part, asked in zip(parts, sent, strict=True):
            try:
                self._look(connection, part, asked)
                done += 1
            except Unavailable:
                continue  # the connections of the feeds report this
            except WorkerError as error:
                problems.add(str(error))
        for problem in sorted(problems):
            log.warning("leases are not renewed", error=problem)
        if self._is_warned and done == len(parts):
            log.info("leases are renewed again")
        self._is_warned = bool(problems) or (self._is_warned and done < len(parts))
        return done > 0 or not parts

    def _connection(self) -> Connection:
        # A node that does not answer keeps the leases on the others waiting once in a look.
        return Connection(
            self._url, Stop(), timeout=self.seconds / 4, fail_fast_for=0.9 * self.seconds / 5
        )

    def _renewal(self) -> tuple[bytes, int, int]:
        return self._mine, int(self.seconds * 1000), MAX_LEASE_BYTES + 1

    def _look(
        self, connection: Connection, leases: Sequence[FeedLease], sent: PendingReply
    ) -> None:
        """Renew or acquire some leases, for which the script was called."""
        replies = connection.receive_script(_RENEW, sent)
        free: list[tuple[FeedLease, bytes]] = []
        for lease, text in zip(leases, replies, strict=True):
            kind, _, value = bytes(text).partition(b" ")
            if kind == b"mine":
                self._hold(lease)
                continue
            if lease.is_held:
                # A missing lease is lost too: Redis was flushed, or another worker held it.
                lease.lost.set()
                self._tell(lease)
            if kind == b"type":
                self._refuse(lease)
            elif is_held(value):
                self._wait(lease, value)
            else:
                free.append((lease, value))
        self._take(connection, free)

    def _take(self, connection: Connection, free: Iterable[tuple[FeedLease, bytes]]) -> None:
        mine = self._renewal()[:2]
        sent = [
            (lease, connection.send_script(_REPLACE, [lease.key], [value, *mine]))
            for lease, value in free
        ]
        for lease, each in sent:
            if connection.receive_script(_REPLACE, each):
                self._hold(lease)

    def _hold(self, lease: FeedLease) -> None:
        was_held = lease.is_held
        lease.renewed, lease.is_held = time.monotonic(), True
        lease.holder, lease.problem = "", None
        if not was_held:
            self._tell(lease)

    def _refuse(self, lease: FeedLease) -> None:
        if lease.problem is None:
            lease.problem = (
                f"{lease.key} holds another type, not a string: move that key away, or use another "
                "feed name"
            )
            self._tell(lease)

    def _wait(self, lease: FeedLease, value: bytes) -> None:
        known = Holder.parse(value)
        holder = known.name if known else repr(value[:80])
        if holder != lease.holder:
            log.info("waiting for the lease", feed=lease.feed, holder=holder)
            lease.holder = holder
            self._tell(lease)

    def _tell(self, lease: FeedLease) -> None:
        with self._lock:
            self._changed.append(lease)
        self._wake()


@contextmanager
def holding(url: str, feed: str, name: str, seconds: float) -> Iterator[FeedLease]:
    """Hold the lease of one feed within the block; wait until it is free.

    Raises WrongKeyType if the key holds another type.
    """
    bell = Stop()
    with Leases(url, name, seconds, bell.wake) as leases:
        lease = leases.ask(feed)
        while not lease.is_held:
            if lease.problem is not None:
                raise WrongKeyType(lease.problem)
            bell.wait_for((), seconds / 5)
        yield lease
