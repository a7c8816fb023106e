"""What is simulated: the size of a fleet, what fails how often, and how long each step takes."""

from dataclasses import dataclass
from enum import StrEnum

DAY = 86_400.0


class Cause(StrEnum):
    """Why a feed is not answered."""

    PROCESS = "process killed"
    MACHINE = "machine lost"
    REDIS = "Redis primary lost"
    UPGRADE = "rolling upgrade"


class Order(StrEnum):
    """In which order a process replays its feeds."""

    QUEUE = "queue"
    """One after the other."""

    SHARED = "shared"
    """A step of each in turn, so that they share the processor equally."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Feeds, and what they run on.

    Attributes
    ----------
    feeds : int
    rate : float
        Examples a second, of all feeds together.
    shards : int
        Processes; rendezvous hashing gives each feed to one of them.
    machines : int
        Shard i runs on machine i modulo `machines`.
    redis : int
        Primaries of Redis; each holds an equal share of the feeds.
    """

    feeds: int = 10_000
    rate: float = 100_000.0
    shards: int = 200
    machines: int = 25
    redis: int = 40


@dataclass(frozen=True, slots=True)
class Failures:
    """How often things fail: assumptions, in days between two failures of the same thing.

    Failures of different things are independent, and each kind comes at a constant rate.

    Attributes
    ----------
    process, machine, redis : float
        Of one process, one machine, one primary of Redis.
    upgrade : float
        Days between two rolling upgrades, which replace each process once.
    """

    process: float = 30.0
    machine: float = 365.0
    redis: float = 365.0
    upgrade: float = 14.0


@dataclass(frozen=True, slots=True)
class Timings:
    """How long the steps of a recovery take, in seconds. docs/scaling.md says what measured each.

    Attributes
    ----------
    start : float
        From the command, or Ray's decision to start an actor, to the first thing it does.
    lease : float
        The setting of this name: the longest time that the lease of a lost worker stays. A worker
        renews it every third of that.
    detection : float
        From the loss of a machine to the start of its processes elsewhere.
    failover : float
        From the loss of a primary of Redis to the first command that its replica takes.
    take_over : float
        Of one feed, where nothing is to be replayed: its lease, its snapshot, its position.
    snapshot_every : int
        The setting of this name: a replay has fewer entries.
    replay_rate : float
        Entries a second that one process replays.
    order : Order
    """

    start: float = 2.5
    lease: float = 5.0
    detection: float = 15.0
    failover: float = 10.0
    take_over: float = 0.01
    snapshot_every: int = 10_000
    replay_rate: float = 9_000.0
    order: Order = Order.QUEUE
