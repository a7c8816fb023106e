"""Opening of a feed: what is checked before it is answered, and how its session is made.

A feed has input of its own (`OwnInput`), or its input is a join (`combination`).
"""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from workers.broker.lease import is_held
from workers.broker.leases import FeedLease
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.state import Pointer
from workers.log import Logger
from workers.runner.link import SLICE, Link, Settled
from workers.runner.replay_budget import ReplayBudget
from workers.runner.snapshot_fetcher import Fetched, SnapshotFetcher
from workers.session import preflight
from workers.session.opening import open_store
from workers.session.preflight import Preflight
from workers.session.snapshots import LoadedSnapshot
from workers.session.telemetry import Telemetry
from workers.stop import Stop

if TYPE_CHECKING:
    from workers.refit.pooled_refitter import PooledRefitter
    from workers.session.answer import Outcome
    from workers.session.feed_session import FeedSession

log = Logger("online_svm.worker")

Refits = Callable[[WorkerSettings, Telemetry], "PooledRefitter"]
"""Returns what computes the refits of a feed with these settings."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What the feeds of a process share.

    Attributes
    ----------
    link : Link
    writer : str
        Name of this worker, for people.
    refits : Refits
    observe : callable
        Called with the name of a feed and the outcome of each batch that was committed.
    replays : ReplayBudget
    fetcher : SnapshotFetcher
    """

    link: Link
    writer: str
    refits: Refits
    observe: "Callable[[str, Outcome], None]"
    replays: ReplayBudget
    fetcher: SnapshotFetcher

    @property
    def stop(self) -> Stop:
        """That of the process."""
        return self.link.stop


class FeedOpening(Protocol):
    """How one feed is checked and taken over.

    Attributes
    ----------
    settings : WorkerSettings
        Under which it was named.
    source : str or None
        For a combination: the feed whose answers it answers in order.
    store : Store
    """

    settings: WorkerSettings
    source: str | None
    store: Store

    def look(self) -> bool:
        """Check whether the feed can be answered; return whether it needs refits at once.

        Raises
        ------
        WorkerError
            Why it cannot.
        """

    def session(
        self,
        shared: Shared,
        lease: FeedLease | None,
        observe: "Callable[[Outcome], None]",
        telemetry: Telemetry,
        opened: ExitStack,
    ) -> "Generator[None, None, FeedSession[Any]]":
        """Check the feed, whose lease is held, and make its session, in steps.

        Parameters
        ----------
        shared : Shared
        lease : FeedLease or None
        observe : callable
            Called with the outcome of each batch that was committed.
        telemetry : Telemetry
        opened : ExitStack
            Closes what the session needs.
        """


Opens = Callable[[str, Link], FeedOpening]
"""Returns the opening of a feed."""


class OwnInput:
    """The opening of a feed with input of its own.

    Parameters
    ----------
    feed : str
    settings : WorkerSettings
    link : Link
    """

    source: str | None = None

    def __init__(self, feed: str, settings: WorkerSettings, link: Link) -> None:
        self._feed, self.settings, self._link = feed, settings, link
        self.store: Store = open_store(
            feed, settings, link.url, connections=(link.commands, link.reads)
        )

    def look(self) -> bool:
        """Check whether the feed can be answered; return whether it needs refits at once."""
        looked, _ = self._checked()
        return looked.is_behind and not is_held(self.store.call("GET", self.store.keys.lease))

    def session(
        self,
        shared: Shared,
        lease: FeedLease | None,
        observe: "Callable[[Outcome], None]",
        telemetry: Telemetry,
        opened: ExitStack,
    ) -> "Generator[None, None, FeedSession[Any]]":
        """Check the feed, whose lease is held, and make its session; see `FeedOpening`."""
        from workers.session.assembly import assemble
        from workers.session.pace import SharedPace

        fetched = shared.fetcher.fetch(self._feed)
        looked, (used, ours) = self._checked()
        for warning in looked.warnings:
            log.warning(warning, feed=self._feed)
        self.store.register()
        yield
        refits = opened.enter_context(shared.refits(used, telemetry))
        while not fetched.done():
            yield
        return assemble(
            self.store, used, refits, shared.stop, shared.writer, lease, observe,
            self._link.accept_environment, begins=looked.state is None, telemetry=telemetry,
            pace=SharedPace(refits, SLICE), ours=ours, fetched=_once(fetched.result()),
        )  # fmt: skip

    def _checked(self) -> tuple[Preflight, Settled]:
        """Return what the checks found, and the settings in force."""
        link = self._link
        found = preflight.find(self.store, link.server, link.known)
        settled = link.settled.of(self.settings, self._feed, found.state)
        unread = Preflight("", found.state, ())  # the take-over reads the snapshots itself
        looked = preflight.check(
            self.store, settled.agreement, link.accept_environment, unread, found
        )
        link.check_rights(self._feed, settled.settings)
        return looked, settled


def _once(fetched: Fetched | None) -> Callable[[Pointer, str], LoadedSnapshot | None]:
    """Return what gives a snapshot that was fetched, once, where it is the one that is wanted."""
    held = [] if fetched is None else [fetched]

    def take(pointer: Pointer, config_hash: str) -> LoadedSnapshot | None:
        found = held.pop() if held else None
        is_wanted = found is not None and found[:2] == (pointer, config_hash)
        return found.snapshot if found is not None and is_wanted else None

    return take
