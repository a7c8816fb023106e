"""Years of a fleet, failure by failure."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from online_svm.types import Floats, Ints
from scripts.bench.fleet_model.fleet import DAY, Cause, Failures, Fleet, Timings
from scripts.bench.fleet_model.recovery import outages
from workers.fleet.rendezvous import owner

Seconds = Floats


@dataclass(frozen=True, slots=True)
class Unserved:
    """How much of the time feeds were not answered.

    Attributes
    ----------
    seconds : float
        That were simulated.
    feeds : ndarray of shape (n_feeds,)
        Share of the time that each feed was not answered.
    share : dict
        Of the time of all feeds, by the cause of the failure. They sum to the mean of `feeds`.
    failures : dict
        How many there were, by cause; an upgrade counts each process.
    longest : dict
        Seconds until a feed was answered again, at most, by cause.
    """

    seconds: float
    feeds: Seconds
    share: dict[Cause, float]
    failures: dict[Cause, int]
    longest: dict[Cause, float]


def simulate(
    fleet: Fleet, failures: Failures, timings: Timings, days: float, seed: int
) -> Unserved:
    """Return how much of the time feeds are not answered; the same for the same arguments.

    Time in which a feed waits for two recoveries at once counts once. A backlog is not simulated: a
    feed counts as answered as soon as its worker goes on with new entries.

    Parameters
    ----------
    fleet : Fleet
    failures : Failures
    timings : Timings
    days : float
    seed : int

    Examples
    --------
    >>> quiet = Failures(float("inf"), float("inf"), float("inf"), float("inf"))
    >>> simulate(Fleet(feeds=3), quiet, Timings(), days=1.0, seed=0).feeds.tolist()
    [0.0, 0.0, 0.0]
    """
    random, end = np.random.default_rng(seed), days * DAY
    until, lost = np.zeros(fleet.feeds), np.zeros(fleet.feeds)
    seconds, counts, longest = (dict.fromkeys(Cause, 0.0) for _ in range(3))
    members = _members(fleet)
    for at, cause, unit in sorted(_events(fleet, failures, end, random)):
        counts[cause] += 1
        for feeds in members[cause][unit]:
            waits = outages(cause, len(feeds), timings, random)
            ends = np.minimum(at + waits, end)
            # What overlaps an outage that has not ended is counted already.
            added = np.maximum(ends - np.maximum(at, until[feeds]), 0.0)
            until[feeds] = np.maximum(until[feeds], ends)
            lost[feeds] += added
            seconds[cause] += float(added.sum())
            longest[cause] = max(longest[cause], float(waits.max(initial=0.0)))
    total = end * fleet.feeds
    share = {cause: value / total for cause, value in seconds.items()}
    return Unserved(end, lost / end, share, {c: int(n) for c, n in counts.items()}, longest)


Members = dict[Cause, list[list[Ints]]]
"""For each cause and each thing that may fail: the feeds of each process that must recover."""


def _members(fleet: Fleet) -> Members:
    """Return which feeds a failure meets: those of a process, a machine, a primary of Redis."""
    numbers = np.arange(fleet.feeds)
    owners = np.array([owner(f"feed-{number}", fleet.shards) for number in numbers])
    shards = [numbers[owners == shard] for shard in range(fleet.shards)]
    alone = [[feeds] for feeds in shards]
    machines = [shards[machine :: fleet.machines] for machine in range(fleet.machines)]
    primaries = [[numbers[primary :: fleet.redis]] for primary in range(fleet.redis)]
    return {
        Cause.PROCESS: alone,
        Cause.UPGRADE: alone,
        Cause.MACHINE: machines,
        Cause.REDIS: primaries,
    }


Event = tuple[float, Cause, int]
"""When, why, and the number of what fails."""


def _events(
    fleet: Fleet, failures: Failures, end: float, random: np.random.Generator
) -> Iterator[Event]:
    """Yield the failures before `end`: a Poisson process for each thing; and the upgrades."""
    for cause, units, days in (
        (Cause.PROCESS, fleet.shards, failures.process),
        (Cause.MACHINE, fleet.machines, failures.machine),
        (Cause.REDIS, fleet.redis, failures.redis),
    ):
        count = random.poisson(units * end / (days * DAY))
        times, which = random.random(count) * end, random.integers(units, size=count)
        yield from ((float(t), cause, int(unit)) for t, unit in zip(times, which, strict=True))
    for number in range(1, ceil(end / (failures.upgrade * DAY))):
        # One process after the other; a minute apart, they do not overlap.
        begun = number * failures.upgrade * DAY
        yield from ((begun + 60.0 * unit, Cause.UPGRADE, unit) for unit in range(fleet.shards))
