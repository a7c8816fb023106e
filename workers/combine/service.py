"""One combination, put together: its sources, the feed it writes, and a graceful stop."""

import platform
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated

import structlog
from pydantic import BaseModel, ConfigDict, Field

from online_svm.predictor.combiner import CombinerConfig
from workers.broker.lease import is_held
from workers.broker.leases import holding
from workers.broker.store import Store
from workers.combine.engine import CombineEngine, Observer
from workers.combine.sources import Source
from workers.combine.store import TargetStore
from workers.errors import BadConfiguration
from workers.feed.agreement import bound_to, check_names, stored_groups
from workers.feed.state import Agreement
from workers.monitor.watch import WorkerWatch
from workers.session import preflight
from workers.session.known_feeds import KnownFeeds
from workers.session.preflight import Preflight
from workers.stop import Stop, signals

log = structlog.get_logger("online_svm.combine")

LEASE_SECONDS = 5.0

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


def run(
    feeds: Sequence[str],
    into: str,
    url: str,
    options: dict[str, object] | None = None,
    join_window: int | None = None,
    once: bool = False,
    batch: int = 256,
    observe: Observer | None = None,
    watch: WorkerWatch | None = None,
    wait_replicas: int = 0,
    known: KnownFeeds | None = None,
) -> int:
    """Combine feeds until SIGTERM or SIGINT, or with `once` what is there now.

    Parameters
    ----------
    feeds : sequence of str
        Sources; at least two.
    into : str
        The feed to write.
    url : str
        Of Redis.
    options : dict, optional
        Fields of `CombinerConfig` other than the classes, which are those of the sources. What is
        not given is as the written feed has stored it, where it exists, else as by default.
    join_window : int, optional
        Of `JoinSettings`; without it as the options.
    once : bool
    batch : int
        Answers decided and committed at once, at most.
    observe : callable, optional
        Called with the outcome of each committed batch.
    watch : WorkerWatch, optional
        Is told what the combination does.
    wait_replicas : int
        Replicas that must have a commit before it counts as done.
    known : KnownFeeds, optional
        As for `fleet.service.run`.

    Returns
    -------
    int
        Answers of the first source that wait for the others.

    Raises
    ------
    WorkerError
        Whose `exit_code` says how the command ends.
    """
    _check_names(feeds, into)
    seen, stop, writer = watch or WorkerWatch(), Stop(), platform.node() or "combine"
    told = seen.takes(into, source=feeds[0])
    known = known or KnownFeeds(url)
    with signals(stop), ExitStack() as opened:
        stores = [opened.enter_context(Store(url, feed, stop)) for feed in feeds]
        target = opened.enter_context(TargetStore(url, into, stop, wait_replicas=wait_replicas))
        seen.connects((target,), LEASE_SECONDS)
        sources = [Source(store, batch) for store in stores]
        classes = _common_classes(sources)
        for source in sources:
            log.info("masses are taken from", feed=source.feed, evidence=source.evidence)
        given = _Given(
            {"classes": classes, **(options or {})},
            {"feeds": tuple(feeds)} | ({} if join_window is None else {"join_window": join_window}),
        )
        _check_target(target)
        found, _, _ = _look(target, given, known)
        for warning in found.warnings:
            log.warning(warning)
        for store in (target, *stores):
            store.be_patient()
        seen.begins()
        if is_held(target.call("GET", target.keys.lease)):
            told.enter("standby")
        with holding(
            url, into, writer, LEASE_SECONDS, stop, look=lambda: known.look(target)
        ) as lease:
            # Check again: the previous holder of the lease may have changed the feed.
            found, settings, joined = _look(target, given, known)
            target.register()
            engine = CombineEngine(
                target, sources, settings, joined.join_window, _agreed(settings, joined),
                writer, stop, batch, begins=found.state is None,
                observe=observe, lease=lease, telemetry=told,
                on_turn=lambda: seen.turns(lease.renewed),
            )  # fmt: skip
            known.add(into)
            engine.run(once)
            told.enter("stopping")
            return engine.waiting


@dataclass(frozen=True, slots=True)
class _Given:
    """The settings that were given; the others are as stored, or as by default."""

    combination: dict[str, object]
    join: dict[str, object]


def _look(
    target: TargetStore, given: _Given, known: KnownFeeds
) -> tuple[Preflight, CombinerConfig, JoinSettings]:
    """Return what is there, and the settings to combine with, if a combination may begin."""
    found = preflight.find(target, known=known)
    feed, state = target.keys.feed, found.state
    stored = {} if state is None else stored_groups(feed, state.agreement)
    if "combination" in stored:
        check_names(feed, stored["combination"], CombinerConfig)
        check_names(feed, stored.get("join", {}), JoinSettings)
    settings = CombinerConfig.model_validate({**stored.get("combination", {}), **given.combination})
    joined = JoinSettings.model_validate({**stored.get("join", {}), **given.join})
    return (
        preflight.check(target, _agreed(settings, joined), False, None, found),
        settings,
        joined,
    )


def _agreed(settings: CombinerConfig, joined: JoinSettings) -> Agreement:
    return bound_to({"combination": settings, "join": joined})


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


def _common_classes(sources: Sequence[Source]) -> tuple[str, str]:
    first = sources[0]
    for source in sources[1:]:
        if source.classes != first.classes:
            raise BadConfiguration(
                f"feed {source.feed!r} has the classes {', '.join(source.classes)}, but "
                f"{first.feed!r} has {', '.join(first.classes)}: combine feeds of the same two"
            )
    return first.classes


def _check_target(target: TargetStore) -> None:
    if target.state() is None and target.keys.input in target.types():
        raise BadConfiguration(
            f"--into {target.keys.feed!r} is a feed with input of its own: name a new one"
        )
