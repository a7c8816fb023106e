"""`fleet`: many feeds on many machines, placed by Ray."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from workers.cli.common import Json, RedisOptions, note, opt, show, show_json, with_settings
from workers.errors import BadConfiguration
from workers.feed.selection import MAX_SHARDS

if TYPE_CHECKING:
    from workers.config.settings import WorkerSettings
    from workers.ray_fleet.actors import Actors
    from workers.ray_fleet.definition import FleetDefinition, FleetStore


Address = Annotated[
    str,
    Option(
        "--address",
        metavar="HOST:PORT",
        help="Head of the Ray cluster of a fleet; auto is the one that this machine is part of.",
    ),
]
AUTO = "auto"


def print_fleet(name: str, address: str, redis: RedisOptions, json: bool) -> None:
    """Print the place of each shard of a fleet, and the stage of each of its feeds."""
    with opened(loaded(redis), address, name) as (store, actors):
        print_shards(actors.statuses(store.require().shards), json)


def loaded(redis: RedisOptions) -> "WorkerSettings":
    """Return the settings of the connection to Redis."""
    from workers.config.settings import load

    return load(redis.flags, redis.config, is_whole=False)


@contextmanager
def opened(
    settings: "WorkerSettings", address: str, name: str
) -> "Iterator[tuple[FleetStore, Actors]]":
    """Connect to Redis and to Ray."""
    from workers.broker.connection import Connection
    from workers.ray_fleet.actors import Actors
    from workers.ray_fleet.connection import connected
    from workers.ray_fleet.definition import FleetStore, access_of
    from workers.stop import Stop

    access = access_of(settings)
    connection = Connection(settings.url or "", Stop(), settings.wait_redis)
    try:
        store = FleetStore(connection, name)
        store.get()  # raises for a wrong name, or without Redis, before Ray is loaded
        with connected(address) as ray:
            yield store, Actors(ray, name, access)
    finally:
        connection.close()


def print_shards(statuses: list[dict[str, Any]], json: bool) -> None:
    """Print a line for each shard, and one for each of its feeds that is not answered."""
    for status in statuses:
        if json:
            show_json(status)
            continue
        place = f"{status['host']}, process {status['pid']}: " if "pid" in status else ""
        feeds: dict[str, str] = status.get("feeds", {})
        held = f"{sum(stage == 'answering' for stage in feeds.values())} of {len(feeds)} feeds"
        problem = status.get("problem")
        show(f"shard {status['shard']}: {place}{problem or held + ' answered'}")
        for feed, stage in feeds.items():
            if stage != "answering":
                show(f"  {feed}: {stage}")


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """The fleet, and the time to wait for its shards."""

    address: Address = AUTO
    name: Annotated[str, opt("NAME", "Of the fleet.")] = "fleet"
    wait: Annotated[float, opt("SECONDS", "For all shards to have a place.", min=0)] = 60.0
    json: Json = False


@dataclass(frozen=True, slots=True)
class ShardOptions:
    """The number of shards, and the resources that Ray reserves for each."""

    replicas: Annotated[
        int | None,
        Option(
            min=0,
            max=MAX_SHARDS,
            metavar="N",
            help="Shards: one actor each; default those that the fleet has, or 1. 0 stops it.",
        ),
    ] = None
    cpus: Annotated[
        float | None, Option(min=0, help="Processors that Ray reserves a shard (default 1).")
    ] = None
    resource: Annotated[
        list[str] | None,
        opt("NAME=AMOUNT", "Another resource of Ray that a shard needs; may be repeated."),
    ] = None


@with_settings
def fleet(
    feeds: Annotated[
        list[str] | None,
        Argument(
            metavar="[FEED|PATTERN]...",
            help="Names and patterns; default those that the fleet has.",
        ),
    ] = None,
    *,
    shards: ShardOptions,
    place: FleetOptions,
    redis: RedisOptions,
    **settings: Any,
) -> None:
    """Answer many feeds by processes that Ray places on machines, and restarts.

    Start a fleet with FEED|PATTERN..., or change the one of that name; it goes on when this command
    has ended. --replicas alone changes the number of shards under load: only the feeds that must
    move do. 0 drains all shards and ends them: each feed has its snapshot, and any worker goes on
    with it. `status --fleet NAME` shows the shards.

    Redis stores the definition of a fleet; actors that Ray restarts read it there. Settings that
    hold secrets come from the environment of Ray's machines.
    """
    from workers.cli.worker import given_flags
    from workers.config.settings import FeedSettings, origins
    from workers.ray_fleet.definition import given_settings

    flags, replicas = given_flags(settings, redis), shards.replicas
    if feeds:
        if replicas == 0:
            raise BadConfiguration("--replicas 0 stops the fleet: leave out the feeds")
        general = FeedSettings(flags, redis.config).general
        given = given_settings(general, origins(flags, redis.config))
        _start(_defined(feeds, given, redis.config, shards), replicas, general, place)
    elif replicas is None:
        raise BadConfiguration("name feeds or patterns, or give --replicas N to change the fleet")
    elif flags.keys() - {"redis"} or shards.cpus is not None or shards.resource:
        raise BadConfiguration("settings of a fleet change with its feeds: name them too")
    else:
        _scale(replicas, loaded(redis), place)


def _defined(
    feeds: Sequence[str],
    given: dict[str, dict[str, Any]],
    config: Path | None,
    shards: ShardOptions,
) -> "FleetDefinition":
    from workers.config.setting_sources import feed_sections, settings_file
    from workers.feed.selection import Selection
    from workers.ray_fleet.definition import FleetDefinition, check_stored

    Selection(feeds)  # raises for an invalid name
    sections = feed_sections(settings_file(config))
    for section in sections.values():
        check_stored(section)
    return FleetDefinition(
        patterns=tuple(feeds), shards=1, cpus=1.0 if shards.cpus is None else shards.cpus,
        resources=_amounts(shards.resource or ()), feeds=sections, **given,
    )  # fmt: skip


def _start(
    definition: "FleetDefinition",
    replicas: int | None,
    general: "WorkerSettings",
    place: FleetOptions,
) -> None:
    from workers.ray_fleet.actors import start
    from workers.ray_fleet.definition import changes

    with opened(general, place.address, place.name) as (store, actors):
        before = _before(store, is_needed=replicas is None)
        shards = replicas or (0 if before is None else before.shards) or 1
        whole = definition.model_copy(update={"shards": shards})
        changed = "" if before is None else changes(before, whole)
        if changed:
            note(f"fleet {place.name!r} changes: {changed}")
        print_shards(start(store, actors, whole, place.wait), place.json)


def _before(store: "FleetStore", is_needed: bool) -> "FleetDefinition | None":
    """Return the present definition; None if there is none, or if an unneeded one is damaged."""
    try:
        return store.get()
    except BadConfiguration:
        if is_needed:
            raise
        return None


def _scale(replicas: int, settings: "WorkerSettings", place: FleetOptions) -> None:
    from workers.ray_fleet.actors import scale, stop

    with opened(settings, place.address, place.name) as (store, actors):
        if replicas:
            print_shards(scale(store, actors, replicas, place.wait), place.json)
            return
        for index in stop(store, actors):
            note(f"shard {index} was not drained: its feeds replay from their last snapshot")


def _amounts(given: Sequence[str]) -> dict[str, float]:
    """Parse resources and their amounts.

    Examples
    --------
    >>> _amounts(["fast_disk=1", "ssd=0.5"])
    {'fast_disk': 1.0, 'ssd': 0.5}
    """
    found: dict[str, float] = {}
    for text in given:
        name, _, amount = text.partition("=")
        try:
            found[name] = float(amount)
        except ValueError:
            found[name] = 0.0
        if not name or not 0 < found[name] < float("inf"):
            raise BadConfiguration(f"--resource {text[:80]!r}: give NAME=AMOUNT, such as ssd=1")
    return found
