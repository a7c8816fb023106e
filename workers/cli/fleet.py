"""`fleet`: many feeds on many machines, placed by Ray."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.cli.common import Json, RedisOptions, note
from workers.cli.fleet_shards import AUTO, Address, loaded, opened, print_shards
from workers.cli.option_groups import with_settings
from workers.runner.shard import MOST

if TYPE_CHECKING:
    from workers.config.settings import WorkerSettings
    from workers.placed.definition import FleetDefinition


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """A fleet, and how its shards are awaited."""

    address: Address = AUTO
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Of the fleet.")] = "fleet"
    wait: Annotated[
        float,
        typer.Option("--wait", min=0, metavar="SECONDS", help="For all shards to have a place."),
    ] = 60.0
    json: Json = False


@dataclass(frozen=True, slots=True)
class ShardOptions:
    """The number of shards, and what Ray reserves each."""

    replicas: Annotated[
        int | None,
        typer.Option(
            "--replicas",
            min=0,
            max=MOST,
            metavar="N",
            help="Shards: one actor each; default those that the fleet has, or 1. 0 stops it.",
            show_default=False,
        ),
    ] = None
    cpus: Annotated[
        float | None,
        typer.Option(
            "--cpus",
            min=0,
            help="Processors that Ray reserves a shard (default 1).",
            show_default=False,
        ),
    ] = None
    resource: Annotated[
        list[str] | None,
        typer.Option(
            "--resource",
            metavar="NAME=AMOUNT",
            help="Another resource of Ray that a shard needs; may be repeated.",
            show_default=False,
        ),
    ] = None


@with_settings
def fleet(
    feeds: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FEED|PATTERN]...",
            help="Names and patterns; default those that the fleet has.",
            show_default=False,
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

    What a fleet is stands in Redis; actors that Ray restarts read it there. Settings that hold
    secrets are given to the machines of Ray, by their environment.
    """
    from workers.cli.worker import given_flags
    from workers.config.feed_settings import FeedSettings
    from workers.config.settings import origins
    from workers.errors import BadConfiguration
    from workers.placed.definition import told_settings

    flags, replicas = given_flags(settings, redis), shards.replicas
    if feeds:
        if replicas == 0:
            raise BadConfiguration("--replicas 0 stops the fleet: leave out the feeds")
        general = FeedSettings(flags, redis.config).general
        told = told_settings(general, origins(flags, redis.config))
        _start(_defined(feeds, told, redis.config, shards), replicas, general, place)
    elif replicas is None:
        raise BadConfiguration("name feeds or patterns, or give --replicas N to change the fleet")
    elif flags.keys() - {"redis"} or shards.cpus is not None or shards.resource:
        raise BadConfiguration("settings of a fleet change with its feeds: name them too")
    else:
        _scale(replicas, loaded(redis), place)


def _defined(
    feeds: Sequence[str],
    told: dict[str, dict[str, Any]],
    config: Path | None,
    shards: ShardOptions,
) -> "FleetDefinition":
    """Return what the options say of a fleet, with one shard.

    Raises
    ------
    BadConfiguration
        If they cannot work, or may hold a secret.
    """
    from workers.config import feed_sections
    from workers.config.setting_sources import settings_file
    from workers.feed.selection import Selection
    from workers.placed.definition import FleetDefinition, check_stored

    Selection(feeds)  # raises for what is no name
    sections = feed_sections.sections(settings_file(config))
    for section in sections.values():
        check_stored(section)
    return FleetDefinition(
        patterns=tuple(feeds), shards=1, cpus=1.0 if shards.cpus is None else shards.cpus,
        resources=_amounts(shards.resource or ()), feeds=sections, **told,
    )  # fmt: skip


def _start(
    definition: "FleetDefinition",
    replicas: int | None,
    general: "WorkerSettings",
    place: FleetOptions,
) -> None:
    from workers.placed.actors import start

    with opened(general, place.address, place.name) as (store, actors):
        before = store.get() if replicas is None else None
        shards = replicas or (0 if before is None else before.shards) or 1
        whole = definition.model_copy(update={"shards": shards})
        print_shards(start(store, actors, whole, place.wait), place.json)


def _scale(replicas: int, settings: "WorkerSettings", place: FleetOptions) -> None:
    from workers.placed.actors import scale, stop

    with opened(settings, place.address, place.name) as (store, actors):
        if replicas:
            print_shards(scale(store, actors, replicas, place.wait), place.json)
            return
        for index in stop(store, actors):
            note(f"shard {index} was not drained: its feeds replay from their last snapshot")


def _amounts(given: Sequence[str]) -> dict[str, float]:
    """Return the resources that options name.

    Raises
    ------
    BadConfiguration
        For a text that is no name with an amount above 0.

    Examples
    --------
    >>> _amounts(["fast_disk=1", "ssd=0.5"])
    {'fast_disk': 1.0, 'ssd': 0.5}
    """
    from workers.errors import BadConfiguration

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
