"""Feeds at rest on a Redis Cluster: processor time, connections, and how long one waits.

The feeds are empty but for one entry each: what they learned costs nothing at rest.
"""

import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from typing_extensions import override

from scripts.bench.processes import python, worker
from scripts.bench.report import BenchResult, Tell, silent
from workers.admin.reset import reset
from workers.broker.connection import Connection
from workers.broker.nodes import nodes_of
from workers.broker.store import Store
from workers.config.redis_servers import CLUSTER, kind_of
from workers.errors import BadConfiguration
from workers.feed.keys import REGISTRY, FeedKeys
from workers.stop import Stop

PREFIX = "bench-nodes-"
EXAMPLES = 60
"""Examples whose answers are timed, one after the other, each to a feed that is at rest."""

_PAUSE = 0.25
_SETTLED = 3.0
_ROW = ("x", "[1,2]", "y", "a")


@dataclass(frozen=True, slots=True)
class Rest(BenchResult):
    """What so many feeds at rest take.

    Attributes
    ----------
    feeds : int
    process, redis : float
        Processor seconds a second, of the process with its children and of all nodes together.
    connections : int
        Of the process, to all nodes.
    median, longest : float
        Seconds from before the push of an example to after its answer.
    """

    feeds: int
    process: float
    redis: float
    connections: int
    median: float
    longest: float

    @override
    def plain(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.feeds:,} feeds: {self.process:.2%} of a core, all nodes {self.redis:.2%}, "
            f"{self.connections} connections; an example was answered after "
            f"{self.median * 1000:.1f} ms (median), {self.longest * 1000:.1f} ms at most"
        )


def run(url: str, counts: Sequence[int], seconds: float, tell: Tell = silent) -> Iterator[Rest]:
    """Yield what each number of feeds takes; the feeds are made, and deleted at the end.

    Parameters
    ----------
    url : str
        Of a cluster that does nothing else.
    counts : sequence of int
    seconds : float
        Of rest.
    tell : callable
        Is told what is measured next.

    Raises
    ------
    BadConfiguration
        If the URL is not one of a cluster.
    """
    if kind_of(url) != CLUSTER:
        raise BadConfiguration("name a Redis Cluster: redis+cluster://HOST:PORT")
    for count in counts:
        feeds = [f"{PREFIX}{number:05d}" for number in range(count)]
        tell(f"{count:,} feeds at rest for {seconds:g} s")
        connection = Connection(url, Stop(), 10.0)
        try:
            yield _measured(url, connection, feeds, seconds)
        finally:
            connection.close()
            for feed in feeds:
                with Store(url, feed, patience=10.0) as store:
                    reset(store, with_input=True, force=True)
                    store.call("DEL", store.keys.anew)  # else it stays for the days after a reset


def _measured(url: str, connection: Connection, feeds: Sequence[str], seconds: float) -> Rest:
    keys = [FeedKeys(feed) for feed in feeds]
    connection.call_all([("XADD", key.input, "*", *_ROW) for key in keys])
    connection.call_all([("SADD", REGISTRY, feed) for feed in feeds])
    # One key of each node.
    ends = list({nodes_of(url).place(key.state): key.state for key in keys}.values())
    before = _connections(connection, ends)
    options = ("--classes", "a,b", "--max-feeds", str(len(feeds)), "--refit-processes", "1")
    with python(*worker(f"{PREFIX}*", url, options)) as process:
        process.wait_until(lambda: min(_answered(connection, keys)) > 0)
        time.sleep(_SETTLED)
        began = process.processor_seconds, _redis_used(connection, ends)
        time.sleep(seconds)
        ended = process.processor_seconds, _redis_used(connection, ends)
        taken = _connections(connection, ends) - before
        waits = [_wait(connection, random.choice(keys)) for _ in range(EXAMPLES)]  # noqa: S311
    own, redis = ((b - a) / seconds for a, b in zip(began, ended, strict=True))
    return Rest(len(feeds), own, redis, taken, statistics.median(waits), max(waits))


def _answered(connection: Connection, keys: Sequence[FeedKeys]) -> list[int]:
    found = connection.call_all([("HGET", key.state, "seq") for key in keys])
    return [int(seq or 0) for seq in found]


def _wait(connection: Connection, keys: FeedKeys) -> float:
    """Return the seconds until an example of a feed at rest is answered."""
    time.sleep(_PAUSE * random.random())  # noqa: S311
    (seq,) = _answered(connection, [keys])
    began = time.perf_counter()
    connection.call("XADD", keys.input, "*", *_ROW)
    while _answered(connection, [keys]) == [seq]:
        pass
    return time.perf_counter() - began


def _redis_used(connection: Connection, ends: Sequence[str]) -> float:
    told = [_info(connection, "cpu", key) for key in ends]
    return sum(float(one["used_cpu_user"]) + float(one["used_cpu_sys"]) for one in told)


def _connections(connection: Connection, ends: Sequence[str]) -> int:
    return sum(int(_info(connection, "clients", key)["connected_clients"]) for key in ends)


def _info(connection: Connection, section: str, key: str) -> dict[str, str]:
    lines = connection.call("INFO", section, key=key).decode().split()
    return dict(line.split(":", 1) for line in lines if ":" in line)
