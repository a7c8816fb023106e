"""`fleet`: many feeds on many machines, placed by Ray."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typing_extensions import override

from workers.cli.common import Config, Json, Redis, note, show, show_json
from workers.cli.options import with_settings

if TYPE_CHECKING:
    from workers.config.settings import WorkerSettings
    from workers.fleet.placed.actors import Actors
    from workers.fleet.placed.definition import FleetStore

Address = Annotated[
    str,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="Head of the Ray cluster; auto is the one that this machine is part of.",
    ),
]
Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Of the fleet.")]
Wait = Annotated[
    float,
    typer.Option("--wait", min=0, metavar="SECONDS", help="For all shards to have a place."),
]
AUTO, FLEET, PLACED = "auto", "fleet", 60.0


class StartsByDefault(TyperGroup):
    """`fleet 'PATTERN'` is `fleet start 'PATTERN'`."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the command where none is named."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["start", *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        cls=StartsByDefault,
        help="Answer many feeds by a fleet of processes that Ray places on machines, and restarts. "
        "`fleet 'PATTERN'` is `fleet start 'PATTERN'`.",
        no_args_is_help=True,
    )
    for command in (start, status, scale, stop):
        group.command(command.__name__)(command)
    app.add_typer(group, name="fleet")


@with_settings
def start(
    feeds: Annotated[
        list[str],
        typer.Argument(metavar="FEED|PATTERN...", help="Names and patterns.", show_default=False),
    ],
    replicas: Annotated[
        int, typer.Option("--replicas", min=1, metavar="N", help="Shards: one actor each.")
    ] = 1,
    address: Address = AUTO,
    name: Name = FLEET,
    cpus: Annotated[
        float, typer.Option("--cpus", min=0, help="Processors that Ray reserves a shard.")
    ] = 1.0,
    resource: Annotated[
        list[str] | None,
        typer.Option(
            "--resource",
            metavar="NAME=AMOUNT",
            help="Another resource of Ray that a shard needs; may be repeated.",
            show_default=False,
        ),
    ] = None,
    wait: Wait = PLACED,
    redis: Redis = None,
    config: Config = None,
    json: Json = False,
    **settings: Any,
) -> None:
    """Start a fleet, or change the one of that name; it goes on when this command has ended.

    What a fleet is stands in Redis; actors that Ray restarts read it there. Settings that hold
    secrets are given to the machines of Ray, by their environment.
    """
    from workers.cli.worker import given_flags
    from workers.config import feed_sections
    from workers.config.feed_settings import FeedSettings
    from workers.config.setting_sources import settings_file
    from workers.config.settings import origins
    from workers.fleet.placed.definition import FleetDefinition, check_stored, told_settings
    from workers.fleet.placed.operations import start as begin
    from workers.fleet.selection import Selection

    Selection(feeds)  # raises for what is no name
    flags = given_flags(settings, redis, None)
    loaded = FeedSettings(flags, config).general
    sections = feed_sections.sections(settings_file(config))
    for section in sections.values():
        check_stored(section)
    definition = FleetDefinition(
        patterns=tuple(feeds), shards=replicas, cpus=cpus, resources=_amounts(resource or ()),
        feeds=sections,
        **told_settings(loaded, origins(flags, config)),
    )  # fmt: skip
    with _opened(loaded, address, name) as (store, actors):
        _tell(begin(store, actors, definition, wait), json)


def status(
    address: Address = AUTO,
    name: Name = FLEET,
    redis: Redis = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Say where each shard runs, and what each of its feeds does."""
    with _opened(_loaded(redis, config), address, name) as (store, actors):
        _tell(actors.statuses(store.require().shards), json)


def scale(
    replicas: Annotated[int, typer.Argument(min=1, metavar="N", help="Shards from now on.")],
    address: Address = AUTO,
    name: Name = FLEET,
    wait: Wait = PLACED,
    redis: Redis = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Change the number of shards under load: only the feeds that must move do."""
    from workers.fleet.placed.operations import scale as change

    with _opened(_loaded(redis, config), address, name) as (store, actors):
        _tell(change(store, actors, replicas, wait), json)


def stop(
    address: Address = AUTO, name: Name = FLEET, redis: Redis = None, config: Config = None
) -> None:
    """Drain all shards and end them: each feed has its snapshot, and any worker goes on with it."""
    from workers.fleet.placed.operations import stop as end

    with _opened(_loaded(redis, config), address, name) as (store, actors):
        for index in end(store, actors):
            note(f"shard {index} was not drained: its feeds replay from their last snapshot")


def _loaded(redis: str | None, config: Config) -> "WorkerSettings":
    from workers.config import settings as known

    return known.load({} if redis is None else {"redis": redis}, config, is_whole=False)


@contextmanager
def _opened(
    settings: "WorkerSettings", address: str, name: str
) -> "Iterator[tuple[FleetStore, Actors]]":
    """Connect to Redis, then to Ray."""
    from workers.broker.connection import Connection
    from workers.fleet.placed.actors import Actors
    from workers.fleet.placed.connection import connected
    from workers.fleet.placed.definition import FleetStore, access_of
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


def _tell(told: list[dict[str, Any]], json: bool) -> None:
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
