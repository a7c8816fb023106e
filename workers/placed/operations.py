"""Operations of a person on a fleet: start, scale, stop, and look at it."""

from typing import Any

from workers.placed.actors import Actors, check_placed
from workers.placed.definition import FleetDefinition, FleetStore


def start(
    store: FleetStore, actors: Actors, definition: FleetDefinition, wait: float
) -> list[dict[str, Any]]:
    """Write the definition, begin the actors that are missing, and wait until all answer.

    A fleet of that name that runs already becomes the one that is defined here: actors that run
    follow the definition, and those that it does not name are ended.

    Raises
    ------
    Unavailable
        If some have no place after so many seconds.
    """
    store.put(definition)
    actors.begin(definition)
    # Those that are no longer wanted gave up their feeds when they saw the definition.
    actors.end({index for index in actors.indices() if index >= definition.shards})
    told = actors.wait(definition.shards, wait)
    check_placed(told)
    return told


def scale(store: FleetStore, actors: Actors, shards: int, wait: float) -> list[dict[str, Any]]:
    """Change the number of shards, while feeds are answered; see `start`.

    Only the feeds that must move do: their old shard leaves a snapshot and releases the lease, for
    which the new one waits.

    Raises
    ------
    BadConfiguration
        If there is no such fleet.
    Unavailable
        As for `start`.
    """
    definition = store.require().model_copy(update={"shards": shards})
    return start(store, actors, definition, wait)


def stop(store: FleetStore, actors: Actors) -> list[int]:
    """Drain all actors, end them, and forget the fleet; return those that could not be drained.

    Raises
    ------
    BadConfiguration
        If there is no such fleet.
    """
    store.put(store.require().model_copy(update={"shards": 0}))
    lost = actors.end(actors.indices())
    store.delete()
    return lost
