"""A fleet on a cluster of Ray: started, scaled, stopped; its actors begun, asked, drained.

Facts of Ray that this rests on (2.60): a detached actor outlives the program that began it, until
its cluster ends; `max_restarts=-1` starts it again whenever its process or its node is lost, where
its resources are free; a name is held by one actor of a namespace at a time; `ray.kill` with
`no_restart` ends it for good, and runs nothing in it, so it is drained first.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from workers.errors import Unavailable
from workers.ray_fleet.definition import FleetDefinition, FleetStore
from workers.ray_fleet.host import ShardHost

STATUS_SECONDS = 5.0
"""Seconds for the answer of an actor; one that is placed and alive takes milliseconds."""

CONCURRENT_CALLS = 4
"""Calls that an actor takes at a time: a drain takes seconds, and `status` does not wait for it."""


class Actors:
    """The actors of one fleet, with Ray connected and its `access` to Redis."""

    def __init__(self, ray: Any, fleet: str, access: Mapping[str, str]) -> None:
        self._ray, self._fleet, self._access = ray, fleet, dict(access)

    def begin(self, definition: FleetDefinition) -> None:
        """Begin the actors that are missing; they are placed as soon as there is room."""
        there = self.indices()
        for index in range(definition.shards):
            if index not in there:
                self._begin(index, definition)

    def indices(self) -> set[int]:
        """Return the numbers of the shards that have an actor."""
        before = f"{self._fleet}/"
        names: list[str] = self._ray.util.list_named_actors()
        return {int(name[len(before) :]) for name in names if name.startswith(before)}

    def statuses(self, shards: int) -> list[dict[str, Any]]:
        """Return the status of each shard; `problem` if it does not answer."""
        asked = {
            index: self._call(index, "status")
            for index in sorted({*range(shards), *self.indices()})
        }
        deadline = time.monotonic() + STATUS_SECONDS
        return [
            self._told(index, reference, max(0.0, deadline - time.monotonic()))
            for index, reference in asked.items()
        ]

    def wait(self, shards: int, seconds: float) -> list[dict[str, Any]]:
        """Return the statuses as soon as every shard answers, or the time is over."""
        deadline = time.monotonic() + seconds
        while True:
            told = self.statuses(shards)
            if all("pid" in each for each in told) or time.monotonic() >= deadline:
                return told
            time.sleep(0.5)

    def end(self, indices: set[int]) -> list[int]:
        """Drain actors, all at once, then end them; return those that could not be drained."""
        drained = {index: self._call(index, "drain") for index in sorted(indices)}
        lost = [index for index, reference in drained.items() if not self._is_done(reference)]
        for index in drained:
            with suppress(ValueError):  # it ended meanwhile
                actor = self._ray.get_actor(self._name(index))
                self._ray.kill(actor, no_restart=True)
        return lost

    def _begin(self, index: int, definition: FleetDefinition) -> None:
        self._ray.remote(ShardHost).options(
            name=self._name(index),
            get_if_exists=True,
            lifetime="detached",
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=CONCURRENT_CALLS,
            num_cpus=definition.cpus,
            resources=definition.resources,
            scheduling_strategy="SPREAD",
        ).remote(self._access, self._fleet, index)

    def _name(self, index: int) -> str:
        return f"{self._fleet}/{index}"

    def _call(self, index: int, method: str) -> Any:
        """Return what awaits the reply of an actor; None if there is no such actor."""
        try:
            actor = self._ray.get_actor(self._name(index))
        except ValueError:
            return None
        return getattr(actor, method).remote()

    def _told(self, index: int, reference: Any, seconds: float) -> dict[str, Any]:
        if reference is None:
            return {"shard": index, "problem": "no actor: online-svm fleet --replicas N begins it"}
        errors = self._ray.exceptions
        try:
            told: dict[str, Any] = self._ray.get(reference, timeout=seconds)
        except errors.GetTimeoutError:
            return {"shard": index, "problem": "it waits for room in the cluster, or restarts"}
        except errors.RayActorError as error:
            first = str(error).strip().partition("\n")[0]
            return {"shard": index, "problem": f"it restarts, or cannot begin: {first}"}
        return told

    def _is_done(self, reference: Any, seconds: float = 60.0) -> bool:
        """Return whether a drain ended well; one that is not placed has nothing to drain."""
        if reference is None:
            return True
        try:
            return bool(self._ray.get(reference, timeout=seconds))
        except (self._ray.exceptions.GetTimeoutError, self._ray.exceptions.RayActorError):
            return False


def _check_placed(told: list[dict[str, Any]]) -> None:
    """Refuse a fleet of which some shards have no place."""
    missing = [each for each in told if "pid" not in each]
    if missing:
        numbers = ", ".join(str(each["shard"]) for each in missing)
        raise Unavailable(
            f"shards {numbers} are not placed yet ({missing[0]['problem']}); they begin when the "
            "cluster has room, and online-svm status --fleet says how far they are"
        )


def start(
    store: FleetStore, actors: Actors, definition: FleetDefinition, wait: float
) -> list[dict[str, Any]]:
    """Write the definition, begin the actors that are missing, and wait until all answer.

    A fleet of that name that runs already becomes the one that is defined here: actors that run
    follow the definition, and those that it does not name are ended.

    Raises Unavailable if some have no place after so many seconds.
    """
    store.put(definition)
    actors.begin(definition)
    # Those that are no longer wanted gave up their feeds when they saw the definition.
    actors.end({index for index in actors.indices() if index >= definition.shards})
    told = actors.wait(definition.shards, wait)
    _check_placed(told)
    return told


def scale(store: FleetStore, actors: Actors, shards: int, wait: float) -> list[dict[str, Any]]:
    """Change the number of shards, while feeds are answered; see `start`.

    Only the feeds that must move do: their old shard leaves a snapshot and releases the lease, for
    which the new one waits.

    Raises BadConfiguration if there is no such fleet. Raises Unavailable as for `start`.
    """
    definition = store.require().model_copy(update={"shards": shards})
    return start(store, actors, definition, wait)


def stop(store: FleetStore, actors: Actors) -> list[int]:
    """Drain all actors, end them, and forget the fleet; return those that could not be drained.

    Raises BadConfiguration if there is no such fleet.
    """
    store.put(store.require().model_copy(update={"shards": 0}))
    lost = actors.end(actors.indices())
    store.delete()
    return lost
