"""The leases of a process: one thread asks for them, renews them, and sees who holds the others.

Each feed has a lease of its own, so that another process may hold any of them. They all have one
value, this process. So one call of a script renews a hundred: a thousand cost a few milliseconds
every third of their time to live.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from typing_extensions import override

from workers.broker.connection import Connection
from workers.broker.lease import LONGEST, RELEASE, REPLACE, HeldLease, Holder, is_held
from workers.broker.pipeline import Sent
from workers.broker.script import Script
from workers.errors import Stopped, Unavailable, WorkerError, WrongKeyType
from workers.feed.keys import FeedKeys
from workers.log import Logger
from workers.stop import Stop

log = Logger("online_svm.lease")

TOGETHER = 100
"""Leases in one call: the script keeps Redis from others for some 0.2 ms."""

_RENEW = Script.load("renew_leases", name="lease-renew")


@dataclass(slots=True, eq=False)
class FeedLease(HeldLease):
    """The lease of one feed.

    Attributes
    ----------
    feed, key : str
    seconds : float
        Time to live after each renewal.
    is_held : bool
        Whether this process has it, as far as it knows.
    renewed : float
        When it was last held for certain, by `time.monotonic`; negative before.
    holder : str
        Who else holds it; empty where nobody does.
    problem : str or None
        Why it can be held by nobody: the key holds another type.
    """

    feed: str
    key: str
    seconds: float
    is_held: bool = False
    renewed: float = -math.inf
    holder: str = ""
    problem: str | None = None
    _lost: threading.Event = field(default_factory=threading.Event)

    @override
    def pop_loss(self) -> bool:
        was_lost = self._lost.is_set()
        if was_lost:
            self._lost.clear()
        return was_lost

    def lose(self) -> None:
        """Note that it was lost."""
        self._lost.set()


class Leases:
    """The leases that a process holds or waits for.

    Parameters
    ----------
    url : str
        Of Redis.
    name : str
        Stable name of the worker.
    seconds : float
        Time to live after each renewal.
    wake : callable
        Called when something is new of a lease; `changed` says of which.
    together : int
        Leases in one call.

    Attributes
    ----------
    renewed : float or None
        When those that were due were last renewed, by `time.monotonic`; None before.

    Examples
    --------
    >>> leases = Leases("redis://host", "me", 5.0, wake=lambda: None)
    >>> leases.ask("fraud").is_held
    False
    """

    def __init__(
        self,
        url: str,
        name: str,
        seconds: float,
        wake: Callable[[], None],
        together: int = TOGETHER,
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
        """Return the lease of a feed, which is acquired as soon as nobody else holds it."""
        lease = FeedLease(feed, FeedKeys(feed).lease, self.seconds)
        with self._lock:
            self._leases[feed] = lease
        self._asked.set()
        return lease

    def release(self, leases: Sequence[FeedLease]) -> None:
        """Give leases up: they are renewed no more, and deleted where they are still one's own."""
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
        sent = [connection.send_script(RELEASE, [one.key], [self._mine]) for one in held]
        problems: dict[str, int] = {}
        for each in sent:
            try:
                connection.receive_script(RELEASE, each)
            except WorkerError as error:
                problems[str(error)] = problems.get(str(error), 0) + 1
        for problem, count in problems.items():
            log.warning(
                "leases were not released; they lapse by themselves", leases=count, error=problem
            )
        connection.close()

    def probe(self, connection: Connection, feed: str, replicas: int) -> None:
        """Renew the lease of a feed if it is one's own; see that so many replicas have that.

        Raises
        ------
        Unavailable, AccessDenied, WorkerError
            If Redis does not do it; see `Connection.call`.
        """
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
        """Renew or acquire leases; return whether that went well for some, or there are none.

        All calls are sent first: the leases on one node do not wait for another node.
        """
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
        return Connection(self._url, Stop(), timeout=self.seconds / 4, haste=0.9 * self.seconds / 5)

    def _renewal(self) -> tuple[bytes, int, int]:
        return self._mine, int(self.seconds * 1000), LONGEST + 1

    def _look(self, connection: Connection, leases: Sequence[FeedLease], sent: Sent) -> None:
        """Renew or acquire some leases, for which the script was called."""
        told = connection.receive_script(_RENEW, sent)
        free: list[tuple[FeedLease, bytes]] = []
        alive: dict[bytes, bool] = {}
        for lease, text in zip(leases, told, strict=True):
            kind, _, value = bytes(text).partition(b" ")
            if kind == b"mine":
                self._hold(lease)
                continue
            if lease.is_held:
                # A missing lease is lost too: Redis was flushed, or another worker held it.
                self._lose(lease)
            if kind == b"type":
                self._refuse(lease)
            elif alive.setdefault(value, is_held(value)):
                self._wait(lease, value)
            else:
                free.append((lease, value))
        self._take(connection, free)

    def _take(self, connection: Connection, free: Iterable[tuple[FeedLease, bytes]]) -> None:
        milliseconds = int(self.seconds * 1000)
        sent = [
            (lease, connection.send_script(REPLACE, [lease.key], [value, self._mine, milliseconds]))
            for lease, value in free
        ]
        for lease, each in sent:
            if connection.receive_script(REPLACE, each):
                self._hold(lease)

    def _hold(self, lease: FeedLease) -> None:
        was_held = lease.is_held
        lease.renewed, lease.is_held = time.monotonic(), True
        lease.holder, lease.problem = "", None
        if not was_held:
            self._tell(lease)

    def _lose(self, lease: FeedLease) -> None:
        lease.lose()
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
def holding(
    url: str,
    feed: str,
    name: str,
    seconds: float,
    stop: Stop,
    look: Callable[[], object] = lambda: None,
) -> Iterator[FeedLease]:
    """Hold the lease of one feed within the block; wait until it is free.

    Parameters
    ----------
    url, feed : str
    name : str
        Stable name of the holder.
    seconds : float
        Time to live after each renewal.
    stop : Stop
    look : callable
        Called again and again while another holds it.

    Raises
    ------
    Stopped
        If a stop is requested first.
    WrongKeyType
        If the key holds another type.
    """
    with Leases(url, name, seconds, stop.wake) as leases:
        lease = leases.ask(feed)
        while not lease.is_held:
            if lease.problem is not None:
                raise WrongKeyType(lease.problem)
            if stop.requested:
                raise Stopped("stopped while waiting for the lease")
            stop.wait_for((), seconds / 5)
            if lease.holder:
                look()
        yield lease
