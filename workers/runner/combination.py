"""Combine feeds: a process whose one feed has a join of other feeds' answers as its input."""

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from online_svm.predictor.combiner import CombinerConfig
from workers.broker.feed_reader import FeedReader
from workers.broker.leases import FeedLease
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration
from workers.feed.agreement import bound_to, check_names, stored_groups
from workers.feed.selection import Selection
from workers.feed.state import Agreement
from workers.log import Logger
from workers.monitor.watch import WorkerWatch
from workers.runner import service
from workers.runner.link import Link
from workers.runner.opening import Shared
from workers.session import preflight
from workers.session.known_feeds import KnownFeeds
from workers.session.preflight import Preflight
from workers.session.telemetry import Telemetry
from workers.stop import Stop, signals

if TYPE_CHECKING:
    from workers.session.answer import Outcome
    from workers.session.join.session import JoinedSession
    from workers.session.join.sources import Source

log = Logger("online_svm.combine")

JOIN_WINDOW = 100
"""Room for producers that send in another order; a missing id holds the answers up for as long."""


class JoinSettings(BaseModel):
    """What is joined; with the combiner's settings it binds the written feed.

    Examples
    --------
    >>> JoinSettings(feeds=("a", "b")).join_window
    100
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    feeds: Annotated[tuple[str, ...], Field(min_length=2)] = Field(
        description="The sources, in order: the answers come in the order of the first."
    )
    join_window: int = Field(
        JOIN_WINDOW, ge=0, description="Places that the answers to one id may lie apart."
    )


@dataclass(frozen=True, slots=True)
class Combined:
    """What is combined, and how.

    Attributes
    ----------
    feeds : sequence of str
        Sources; at least two.
    options : dict
        Fields of `CombinerConfig` other than the classes, which are those of the sources. What is
        not given is as the written feed has stored it, where it exists, else as by default.
    join_window : int or None
        Of `JoinSettings`; without it as the options.
    """

    feeds: Sequence[str]
    options: dict[str, object] = field(default_factory=dict)
    join_window: int | None = None


def run(
    combined: Combined,
    into: str,
    url: str,
    *,
    settings: WorkerSettings | None = None,
    once: bool = False,
    observe: "Callable[[Outcome], None] | None" = None,
    watch: WorkerWatch | None = None,
    known: KnownFeeds | None = None,
) -> int:
    """Combine feeds until SIGTERM or SIGINT, or with `once` what is there now.

    Parameters
    ----------
    combined : Combined
    into : str
        The feed to write.
    url : str
        Of Redis.
    settings : WorkerSettings, optional
        Of the process: `batch` answers are decided and committed at once, at most.
    once : bool
    observe : callable, optional
        Called with the outcome of each committed batch.
    watch : WorkerWatch, optional
        Is told what the process does.
    known : KnownFeeds, optional
        As for `service.run`.

    Returns
    -------
    int
        Answers of the first source that wait for the others.

    Raises
    ------
    WorkerError
        Whose `exit_code` says how the command ends.
    """
    _check_names(combined.feeds, into)
    settings, stop = settings or WorkerSettings(), Stop()
    openings: list[JoinOpening] = []

    def opens(_feed: str, link: Link) -> JoinOpening:
        at_the_end = stop.request if once else _go_on
        openings.append(JoinOpening(into, combined, settings, link, at_the_end))
        return openings[-1]

    def told(_feed: str, outcome: "Outcome") -> None:
        if observe is not None:
            observe(outcome)

    with signals(stop):
        service.run(
            Selection((into,)), settings, url, stop,
            observe=told, watch=watch, known=known, opens=opens,
        )  # fmt: skip
    return openings[-1].waiting


class JoinOpening:
    """The opening of a feed whose input is a join; see `FeedOpening`.

    Parameters
    ----------
    into : str
    combined : Combined
    settings : WorkerSettings
    link : Link
    at_the_end : callable
        Called whenever all that the sources have is answered and committed.
    """

    def __init__(
        self,
        into: str,
        combined: Combined,
        settings: WorkerSettings,
        link: Link,
        at_the_end: Callable[[], object],
    ) -> None:
        self._into, self._combined, self._link = into, combined, link
        self.settings = settings
        self.source: str | None = combined.feeds[0]
        self._at_the_end = at_the_end
        self._connections = (link.commands, link.reads)
        self.store: Store = Store(
            link.url, into, connections=self._connections, wait_replicas=settings.wait_replicas
        )
        self.store.reads_input = False
        self._session: JoinedSession | None = None

    @property
    def waiting(self) -> int:
        """Answers of the first source that wait for the others."""
        return 0 if self._session is None else self._session.waiting

    def look(self) -> bool:
        """Check whether the sources can be combined into the feed; no refit is needed."""
        sources = self._opened_sources()
        for source in sources:
            log.info("masses are taken from", feed=source.feed, evidence=source.evidence)
        _check_target(self.store)
        found = self._checked(sources).found
        for warning in found.warnings:
            log.warning(warning)
        return False

    def session(
        self,
        shared: Shared,
        lease: FeedLease | None,
        observe: "Callable[[Outcome], None]",
        telemetry: Telemetry,
        opened: ExitStack,  # noqa: ARG002  (it needs nothing that has to be closed)
    ) -> "Generator[None, None, JoinedSession]":
        """Check the feed, whose lease is held, and make its session; see `FeedOpening`."""
        from workers.session.join.session import JoinedSession

        sources = self._opened_sources()
        yield
        checked = self._checked(sources)
        self.store.register()
        self._session = JoinedSession(
            self.store, sources, checked.combination, checked.join.join_window, checked.agreement,
            shared.writer, self.settings.batch, begins=checked.found.state is None,
            observe=observe, lease=lease, telemetry=telemetry, at_the_end=self._at_the_end,
        )  # fmt: skip
        return self._session

    def _opened_sources(self) -> "list[Source]":
        """Return the sources, which have the same two classes."""
        from workers.session.join.sources import Source

        readers = [
            FeedReader(self._link.url, feed, connections=self._connections)
            for feed in self._combined.feeds
        ]
        return [Source(reader, self.settings.batch) for reader in readers]

    def _checked(self, sources: "Sequence[Source]") -> "_Checked":
        """Return what is there, and the settings to combine with, if a combination may begin."""
        link, feed = self._link, self._into
        found = preflight.find(self.store, link.server, link.known)
        stored = {} if found.state is None else stored_groups(feed, found.state.agreement)
        if "combination" in stored:
            check_names(feed, stored["combination"], CombinerConfig)
            check_names(feed, stored.get("join", {}), JoinSettings)
        given = {"classes": _common_classes(sources), **self._combined.options}
        settings = CombinerConfig.model_validate({**stored.get("combination", {}), **given})
        window = self._combined.join_window
        joined = JoinSettings.model_validate(
            {**stored.get("join", {}), "feeds": tuple(self._combined.feeds)}
            | ({} if window is None else {"join_window": window})
        )
        ours = bound_to({"combination": settings, "join": joined})
        return _Checked(preflight.check(self.store, ours, found=found), settings, joined, ours)


@dataclass(frozen=True, slots=True)
class _Checked:
    """What the checks found, and the settings in force."""

    found: Preflight
    combination: CombinerConfig
    join: JoinSettings
    agreement: Agreement


def _go_on() -> None:
    """Wait for more."""


def _check_names(feeds: Sequence[str], into: str) -> None:
    if len(feeds) < 2:
        raise BadConfiguration("combine: name at least two feeds")
    twice = next((feed for feed in feeds if list(feeds).count(feed) > 1), None)
    if twice is not None:
        raise BadConfiguration(
            f"combine: feed {twice!r} is named twice; its evidence would count double"
        )
    if into in feeds:
        raise BadConfiguration(f"combine: --into {into!r} is one of the sources; name another feed")


def _common_classes(sources: "Sequence[Source]") -> tuple[str, str]:
    first = sources[0]
    for source in sources[1:]:
        if source.classes != first.classes:
            raise BadConfiguration(
                f"feed {source.feed!r} has the classes {', '.join(source.classes)}, but "
                f"{first.feed!r} has {', '.join(first.classes)}: combine feeds of the same two"
            )
    return first.classes


def _check_target(target: Store) -> None:
    if target.state() is None and target.keys.input in target.types():
        raise BadConfiguration(
            f"--into {target.keys.feed!r} is a feed with input of its own: name a new one"
        )
