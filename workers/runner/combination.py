"""Run a combination: a process with one feed, whose input is a join of other feeds' answers."""

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
from workers.feed.pinned_config import check_names, pin_groups, stored_groups
from workers.feed.selection import Selection
from workers.feed.state import PinnedConfig
from workers.log import Logger
from workers.monitor.watch import WorkerWatch
from workers.runner import service
from workers.runner.opening import WorkerContext
from workers.runner.redis_context import RedisContext
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
"""Tolerates producers that send ids in different orders; a missing id delays answers as much."""


class JoinSettings(BaseModel):
    """Settings of the join, which are pinned in the written feed, as the combiner's are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    feeds: Annotated[tuple[str, ...], Field(min_length=2)] = Field(
        description="The sources, in order: the answers come in the order of the first."
    )
    join_window: int = Field(
        JOIN_WINDOW, ge=0, description="Places that the answers to one id may lie apart."
    )


@dataclass(frozen=True, slots=True)
class Combined:
    """Parameters of a combination.

    Attributes
    ----------
    options : dict
        Fields of `CombinerConfig` other than the classes, which the sources define. An omitted
        field keeps the value stored in the written feed; a new feed gets the default.
    """

    feeds: Sequence[str]  # at least two sources
    into: str  # the feed to write
    options: dict[str, object] = field(default_factory=dict)
    join_window: int | None = None  # of `JoinSettings`; None as an omitted option
    once: bool = False  # stop at the end of the existing answers


def run(
    combined: Combined,
    url: str,
    *,
    settings: WorkerSettings | None = None,
    observe: "Callable[[Outcome], None] | None" = None,
    watch: WorkerWatch | None = None,
    known: KnownFeeds | None = None,
) -> int:
    """Combine feeds until SIGTERM or SIGINT, or with `once` to the end of their answers.

    Return how many answers of the first source wait for the others. See `service.Worker` for the
    parameters. Raises WorkerError, whose `exit_code` becomes the exit code of the command.
    """
    _check_names(combined.feeds, combined.into)
    settings, stop = settings or WorkerSettings(), Stop()
    openings: list[JoinOpening] = []

    def feed_factory(_feed: str, redis: RedisContext) -> JoinOpening:
        openings.append(JoinOpening(combined, settings, redis))
        return openings[-1]

    def observed(_feed: str, outcome: "Outcome") -> None:
        if observe is not None:
            observe(outcome)

    with signals(stop):
        service.Worker(
            Selection((combined.into,)), settings, url, stop,
            observe=observed, watch=watch, known=known, feed_factory=feed_factory,
        ).run()  # fmt: skip
    return openings[-1].waiting


class JoinOpening:
    """The `FeedOpening` of a feed whose input is a join."""

    def __init__(self, combined: Combined, settings: WorkerSettings, redis: RedisContext) -> None:
        self._combined, self._redis, self.settings = combined, redis, settings
        self.source: str | None = combined.feeds[0]
        self._connections = (redis.commands, redis.reads)
        self.store: Store = Store(
            redis.url, combined.into, connections=self._connections,
            wait_replicas=settings.wait_replicas,
        )  # fmt: skip
        self.store.reads_input = False
        self._session: JoinedSession | None = None

    @property
    def waiting(self) -> int:
        """Answers of the first source that wait for the others."""
        return 0 if self._session is None else self._session.waiting

    def check(self) -> bool:
        """Check whether the sources can be combined into the feed. Return False: no refits."""
        sources = self._open_sources()
        for source in sources:
            log.info("masses are taken from", feed=source.feed, evidence=source.evidence)
        _check_target(self.store)
        for warning in self._check(sources)[0].warnings:
            log.warning(warning)
        return False

    def session(
        self,
        context: WorkerContext,
        lease: FeedLease | None,
        observe: "Callable[[Outcome], None]",
        telemetry: Telemetry,
        opened: ExitStack,  # noqa: ARG002  (it needs nothing that has to be closed)
    ) -> "Generator[None, None, JoinedSession]":
        """Check the feed and create its session; see `FeedOpening`."""
        from workers.session.join.session import JoinedSession, JoinSetup

        sources = self._open_sources()
        yield
        found, config, joined, pinned = self._check(sources)
        self.store.register()
        setup = JoinSetup(
            self.store, sources, config, joined.join_window, pinned,
            context.writer, self.settings.batch, found.state is None, telemetry,
            self._redis.stop.request if self._combined.once else None,
        )  # fmt: skip
        self._session = JoinedSession(setup, lease, observe)
        return self._session

    def _open_sources(self) -> "list[Source]":
        from workers.session.join.sources import Source

        readers = [
            FeedReader(self._redis.url, feed, connections=self._connections)
            for feed in self._combined.feeds
        ]
        return [Source(reader, self.settings.batch) for reader in readers]

    def _check(
        self, sources: "Sequence[Source]"
    ) -> tuple[Preflight, CombinerConfig, JoinSettings, PinnedConfig]:
        """Return the result of the checks, and the effective settings."""
        redis, feed = self._redis, self._combined.into
        found = preflight.find(self.store, redis.server, redis.known)
        stored = {} if found.state is None else stored_groups(feed, found.state.pinned)
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
        pinned = pin_groups({"combination": settings, "join": joined})
        return preflight.check(self.store, pinned, found), settings, joined, pinned


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
