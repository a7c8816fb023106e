"""Leases: which worker runs a feed. They serve liveness only; the fence ensures correctness."""

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

FEEDS_PER_CALL = 100  # leases in one call of the script, which blocks Redis for about 0.2 ms
MAX_LEASE_BYTES = 4096  # largest valid lease in bytes; names of hosts and workers are far shorter


class HeldLease(Protocol):
    """A lease that another component renews."""

    def pop_loss(self) -> bool:
        """Return whether the lease was lost since the last call."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The value of the lease."""

    name: str  # stable name of the worker
    host: str  # scope in which the process id is unique
    pid: int
    started: str  # start time as the system reports it: a later process may reuse the id
    token: str  # random: distinguishes two leases of one process

    @classmethod
    def here(cls, name: str) -> Self:
        """Return this process as a holder, with a new token."""
        pid = os.getpid()
        return cls(name, host_identity(), pid, process_start(pid) or "", secrets.token_hex(8))

    @classmethod
    def parse(cls, text: bytes) -> Self | None:
        """Return the holder, or None if the text is invalid.

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
        """Return whether the process has certainly ended: it ran on this host, and is gone."""
        return self.host == host_identity() and process_start(self.pid) != self.started


def _is_holder(found: Any) -> bool:
    """Return whether an object has the fields of a `Holder` with the right types."""
    kinds = {name: int if name == "pid" else str for name in Holder.__slots__}
    if not isinstance(found, dict) or found.keys() != kinds.keys():
        return False
    return all(type(found[name]) is kind for name, kind in kinds.items()) and found["pid"] > 0


def is_held(held: bytes | None) -> bool:
    """Return whether a lease with this value has a holder that may be alive."""
    if not held:
        return False
    holder = Holder.parse(held)
    return holder is None or not holder.is_dead()


def host_identity() -> str:
    """Return the scope of process ids: this boot of this machine, and the PID namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def process_start(pid: int) -> str | None:
    """Return the start time of a process; None if it does not exist."""
    try:
        # The name in parentheses may contain anything. The start time is the 20th field after it.
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if status[0] == "Z" else status[19]
    except (FileNotFoundError, ProcessLookupError):  # the second if it ends during the read
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
    is_held: bool = False  # whether this process holds it, as far as it knows
    renewed: float = -math.inf  # last renewal by this process, by `time.monotonic`
    holder: str = ""  # name of another holder; empty if there is none
    problem: str | None = None  # why it cannot be held: the key holds another type
    lost: threading.Event = field(default_factory=threading.Event)  # set until `pop_loss`

    @override
    def pop_loss(self) -> bool:
        was_lost = self.lost.is_set()
        if was_lost:
            self.lost.clear()
        return was_lost


class Leases:
    """The leases that a process holds or waits for; one thread acquires and renews them.

    Each feed has its own lease, so that processes can share feeds in any way. All leases of a
    process have the same value, so one call of a script renews up to `feeds_per_call`: a thousand
    cost a few milliseconds every third of their time to live.

    Parameters
    ----------
    seconds : float
        Time to live after each renewal.
    wake : callable
        Called when `take_changes` has something to return.

    Attributes
    ----------
    renewed : float or None
        When the held leases were last renewed, by `time.monotonic`.
    """

    def __init__(
        self,
        url: str,
        name: str,
        seconds: float,
        wake: Callable[[], None],
        feeds_per_call: int = FEEDS_PER_CALL,
    ) -> None:
        self._url, self.seconds, self._wake, self._feeds_per_call = (
            url,
            seconds,
            wake,
            feeds_per_call,
        )
        self._value = Holder.here(name).encode()
        self._leases: dict[str, FeedLease] = {}
        self._changed: list[FeedLease] = []
        self._lock = threading.Lock()
        self._has_work, self._is_closed = threading.Event(), False
        self.renewed: float | None = None
        self._is_warned = False
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        self._has_work.set()
        self._thread.join(self.seconds)
        self.release(list(self._leases.values()))

    def request(self, feed: str) -> FeedLease:
        """Return the lease of a feed, to be acquired as soon as no other process holds it."""
        lease = FeedLease(feed, FeedKeys(feed).lease, self.seconds)
        with self._lock:
            self._leases[feed] = lease
        self._has_work.set()
        return lease

    def release(self, leases: Sequence[FeedLease]) -> None:
        """Stop renewing leases, and delete those that this process still holds."""
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
        sent = [connection.send_script(_RELEASE, [one.key], [self._value]) for one in held]
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

    def take_changes(self) -> list[FeedLease]:
        """Return the leases that changed since the last call: held, lost, unusable, another's."""
        if not self._changed:
            return []
        with self._lock:
            changed, self._changed = self._changed, []
        return changed

    def _run(self) -> None:
        # Held leases are renewed after a third of their time to live. The thread tries to acquire
        # the others after a fifth of it, and a new request at once.
        connection = self._connection()
        due = time.monotonic()
        while True:
            self._has_work.wait(self.seconds / 5)
            self._has_work.clear()
            if self._is_closed:
                connection.close()
                return
            is_due = time.monotonic() >= due
            if is_due:
                due = time.monotonic() + self.seconds / 3 - self.seconds / 10
            with self._lock:
                leases = [one for one in self._leases.values() if is_due or not one.is_held]
            if self._renew_all(connection, leases) and is_due:
                self.renewed = time.monotonic()

    def _renew_all(self, connection: Connection, leases: Sequence[FeedLease]) -> bool:
        """Renew or acquire leases; return whether any call succeeded, or none was necessary."""
        parts = [
            leases[i : i + self._feeds_per_call]
            for i in range(0, len(leases), self._feeds_per_call)
        ]
        sent = [
            connection.send_script(_RENEW, [one.key for one in part], self._renewal())
            for part in parts
        ]
        done, problems = 0, set[str]()
        for part, call in zip(parts, sent, strict=True):
            try:
                self._receive_renewals(connection, part, call)
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
        # A silent node then delays the leases on other nodes at most once in each round.
        return Connection(
            self._url, Stop(), timeout=self.seconds / 4, fail_fast_for=0.9 * self.seconds / 5
        )

    def _renewal(self) -> tuple[bytes, int, int]:
        return self._value, int(self.seconds * 1000), MAX_LEASE_BYTES + 1

    def _receive_renewals(
        self, connection: Connection, leases: Sequence[FeedLease], sent: PendingReply
    ) -> None:
        """Read the replies of the script; acquire the leases that are free."""
        replies = connection.receive_script(_RENEW, sent)
        free: list[tuple[FeedLease, bytes]] = []
        for lease, text in zip(leases, replies, strict=True):
            kind, _, value = bytes(text).partition(b" ")
            if kind == b"mine":
                self._mark_held(lease)
                continue
            if lease.is_held:
                # A missing lease is lost, too: another worker may have held it meanwhile.
                lease.lost.set()
                self._notify(lease)
            if kind == b"type":
                self._mark_unusable(lease)
            elif is_held(value):
                self._mark_held_elsewhere(lease, value)
            else:
                free.append((lease, value))
        self._acquire(connection, free)

    def _acquire(self, connection: Connection, free: Iterable[tuple[FeedLease, bytes]]) -> None:
        mine = self._renewal()[:2]
        sent = [
            (lease, connection.send_script(_REPLACE, [lease.key], [value, *mine]))
            for lease, value in free
        ]
        for lease, each in sent:
            if connection.receive_script(_REPLACE, each) and not self._mark_held(lease):
                connection.evaluate(_RELEASE, [lease.key], [self._value])

    def _mark_held(self, lease: FeedLease) -> bool:
        """Record that a lease is held; return False if it was released meanwhile."""
        with self._lock:
            if self._leases.get(lease.feed) is not lease:
                return False
            was_held = lease.is_held
            lease.renewed, lease.is_held = time.monotonic(), True
            lease.holder, lease.problem = "", None
        if not was_held:
            self._notify(lease)
        return True

    def _mark_unusable(self, lease: FeedLease) -> None:
        if lease.problem is None:
            lease.problem = (
                f"{lease.key} holds another type, not a string: move that key away, or use another "
                "feed name"
            )
            self._notify(lease)

    def _mark_held_elsewhere(self, lease: FeedLease, value: bytes) -> None:
        known = Holder.parse(value)
        holder = known.name if known else repr(value[:80])
        if holder != lease.holder:
            log.info("waiting for the lease", feed=lease.feed, holder=holder)
            lease.holder = holder
            self._notify(lease)

    def _notify(self, lease: FeedLease) -> None:
        with self._lock:
            self._changed.append(lease)
        self._wake()


@contextmanager
def holding(url: str, feed: str, name: str, seconds: float) -> Iterator[FeedLease]:
    """Wait for the lease of one feed, and hold it within the block.

    Raises WrongKeyType if the key holds another type.
    """
    stop = Stop()
    with Leases(url, name, seconds, stop.wake) as leases:
        lease = leases.request(feed)
        while not lease.is_held:
            if lease.problem is not None:
                raise WrongKeyType(lease.problem)
            stop.wait_for((), seconds / 5)
        yield lease
