"""Shards of a fleet: a connection to them, and how each stands as text."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.cli.common import RedisOptions, show, show_json

if TYPE_CHECKING:
    from workers.config.settings import WorkerSettings
    from workers.placed.actors import Actors
    from workers.placed.definition import FleetStore

Address = Annotated[
    str,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="Head of the Ray cluster of a fleet; auto is the one that this machine is part of.",
    ),
]
AUTO = "auto"


def print_fleet(name: str, address: str, redis: RedisOptions, json: bool) -> None:
    """Print where each shard of a fleet runs, and what each of its feeds does."""
    with opened(loaded(redis), address, name) as (store, actors):
        print_shards(actors.statuses(store.require().shards), json)


def loaded(redis: RedisOptions) -> "WorkerSettings":
    """Return the settings that say where Redis is."""
    from workers.config import settings as known

    return known.load(redis.flags, redis.config, is_whole=False)


@contextmanager
def opened(
    settings: "WorkerSettings", address: str, name: str
) -> "Iterator[tuple[FleetStore, Actors]]":
    """Connect to Redis, then to Ray."""
    from workers.broker.connection import Connection
    from workers.placed.actors import Actors
    from workers.placed.connection import connected
    from workers.placed.definition import FleetStore, access_of
    from workers.stop import Stop

    access = access_of(settings)
    connection = Connection(settings.url or "", Stop(), settings.wait_redis)
    try:
        store = FleetStore(connection, name)
        store.get()  # a wrong name, or no Redis, is said before Ray is loaded
        with connected(address) as ray:
            yield store, Actors(ray, name, access)
    finally:
        connection.close()


def print_shards(told: list[dict[str, Any]], json: bool) -> None:
    """Print a line for each shard, and one for each of its feeds that is not answered."""
    for each in told:
        if json:
            show_json(each)
            continue
        place = f"{each['host']}, process {each['pid']}: " if "pid" in each else ""
        feeds: dict[str, str] = each.get("feeds", {})
        held = f"{sum(stage == 'answering' for stage in feeds.values())} of {len(feeds)} feeds"
        problem = each.get("problem")
        show(f"shard {each['shard']}: {place}{problem or held + ' answered'}")
        for feed, stage in feeds.items():
            if stage != "answering":
                show(f"  {feed}: {stage}")
