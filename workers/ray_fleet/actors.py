"""Start, scale and stop a fleet on a Ray cluster, and manage its actors.

This relies on the following behaviour of Ray (2.60): a detached actor lives until its cluster ends;
`max_restarts=-1` restarts it whenever its process or node is lost, as soon as its resources are
free; only one actor of a namespace has a given name; `ray.kill` with `no_restart` ends an actor
for good, without running any code in it, so it is drained first.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from workers.errors import Unavailable
from workers.ray_fleet.definition import FleetDefinition, FleetStore
from workers.ray_fleet.host import ShardHost

STATUS_SECONDS = 5.0  # seconds for an actor to answer; a running actor takes milliseconds

CONCURRENT_CALLS = 4
"""Concurrent calls of an actor: a drain takes seconds, and `status` must not wait for it."""


class Actors:
    """The actors of one fleet; Ray is connected, and `access` are the settings to reach Redis."""

    def __init__(self, ray: Any, fleet: str, access: Mapping[str, str]) -> None:
        self._ray, self._fleet, self._access = ray, fleet, dict(access)

    def start_missing(self, definition: FleetDefinition) -> None:
        """Start the missing actors; Ray places them as soon as there is room."""
        existing = self.indices()
        for index in range(definition.shards):
            if index not in existing:
                self._start(index, definition)

    def indices(self) -> set[int]:
        """Return the indices of the shards that have an actor."""
        prefix = f"{self._fleet}/"
        names: list[str] = self._ray.util.list_named_actors()
        return {int(name[len(prefix) :]) for name in names if name.startswith(prefix)}

    def statuses(self, shards: int) -> list[dict[str, Any]]:
        """Return the status of each shard, with a `problem` if it does not answer."""
        references = {
            index: self._call(index, "status")
            for index in sorted({*range(shards), *self.indices()})
        }
        deadline = time.monotonic() + STATUS_SECONDS
        return [
            self._status(index, reference, max(0.0, deadline - time.monotonic()))
            for index, reference in references.items()
        ]

    def wait(self, shards: int, seconds: float) -> list[dict[str, Any]]:
        """Wait until every shard answers, or the time is over; return the statuses."""
        deadline = time.monotonic() + seconds
        while True:
            statuses = self.statuses(shards)
            if all("pid" in each for each in statuses) or time.monotonic() >= deadline:
                return statuses
            time.sleep(0.5)

    def stop(self, indices: set[int]) -> list[int]:
        """Drain actors concurrently, then kill them; return those that could not be drained."""
        drained = {index: self._call(index, "drain") for index in sorted(indices)}
        lost = [index for index, reference in drained.items() if not self._is_drained(reference)]
        for index in drained:
            with suppress(ValueError):  # already gone
                actor = self._ray.get_actor(self._name(index))
                self._ray.kill(actor, no_restart=True)
        return lost

    def _start(self, index: int, definition: FleetDefinition) -> None:
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
        """Return the reference of an actor's reply; None if there is no such actor."""
        try:
            actor = self._ray.get_actor(self._name(index))
        except ValueError:
            return None
        return getattr(actor, method).remote()

    def _status(self, index: int, reference: Any, seconds: float) -> dict[str, Any]:
        if reference is None:
            return {"shard": index, "problem": "no actor: online-svm fleet --replicas N begins it"}
        errors = self._ray.exceptions
        try:
            status: dict[str, Any] = self._ray.get(reference, timeout=seconds)
        except errors.GetTimeoutError:
            return {"shard": index, "problem": "it waits for room in the cluster, or restarts"}
        except errors.RayActorError as error:
            first = str(error).strip().partition("\n")[0]
            return {"shard": index, "problem": f"it restarts, or cannot begin: {first}"}
        return status

    def _is_drained(self, reference: Any, seconds: float = 60.0) -> bool:
        """Return whether a drain succeeded; a missing actor has nothing to drain."""
        if reference is None:
            return True
        try:
            return bool(self._ray.get(reference, timeout=seconds))
        except (self._ray.exceptions.GetTimeoutError, self._ray.exceptions.RayActorError):
            return False


def _check_placed(statuses: list[dict[str, Any]]) -> None:
    """Raise Unavailable if some shards are not placed."""
    missing = [each for each in statuses if "pid" not in each]
    if missing:
        numbers = ", ".join(str(each["shard"]) for each in missing)
        raise Unavailable(
            f"shards {numbers} are not placed yet ({missing[0]['problem']}); they begin when the "
            "cluster has room, and online-svm status --fleet says how far they are"
        )


def start(
    store: FleetStore, actors: Actors, definition: FleetDefinition, wait: float
) -> list[dict[str, Any]]:
    """Write the definition, start the missing actors, and wait until all answer.

    The running actors of a fleet with this name follow the new definition; superfluous ones are
    stopped. Raises Unavailable if some are not placed after `wait` seconds.
    """
    store.put(definition)
    actors.start_missing(definition)
    # The superfluous actors release their feeds when they read the definition.
    actors.stop({index for index in actors.indices() if index >= definition.shards})
    statuses = actors.wait(definition.shards, wait)
    _check_placed(statuses)
    return statuses


def scale(store: FleetStore, actors: Actors, shards: int, wait: float) -> list[dict[str, Any]]:
    """Change the number of shards while feeds are answered; see `start`.

    Only feeds whose owner changes move: the old shard takes a snapshot and releases the lease, for
    which the new one waits. Raises BadConfiguration if there is no such fleet; Unavailable as
    `start`.
    """
    definition = store.require().model_copy(update={"shards": shards})
    return start(store, actors, definition, wait)


def stop(store: FleetStore, actors: Actors) -> list[int]:
    """Stop all actors and delete the fleet; return the actors that could not be drained.

    Raises BadConfiguration if there is no such fleet.
    """
    store.put(store.require().model_copy(update={"shards": 0}))
    lost = actors.stop(actors.indices())
    store.delete()
    return lost
