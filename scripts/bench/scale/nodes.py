"""Feeds at rest on a Redis Cluster: processor time, connections, and how long one waits.

The feeds are empty but for one entry each: what they learned costs nothing at rest.
"""

import random
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from scripts.bench.harness import python, used_cpu, worker
from scripts.bench.report import Result, Values
from scripts.command_line import tell
from workers.admin.reset import reset
from workers.broker.connection import Connection
from workers.broker.nodes import nodes_of
from workers.broker.store import Store
from workers.cli.common import Redis, RedisOptions
from workers.config.redis_url import CLUSTER, kind_of
from workers.errors import BadConfiguration
from workers.feed.keys import REGISTRY, FeedKeys
from workers.stop import Stop

PREFIX = "bench-nodes-"
EXAMPLES = 60  # that are timed, one after the other, each to a feed at rest

_MAX_PAUSE_SECONDS = 0.25
_SETTLE_SECONDS = 3.0
_ROW = ("x", "[1,2]", "y", "a")


def run(
    redis: Redis = None,
    feeds: Annotated[int, typer.Option(min=1, max=10_000, help="Number of feeds.")] = 1000,
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="Of rest.")] = 30.0,
) -> Iterator[Result]:
    """Measure what feeds at rest cost in one process on a Redis Cluster.

    --redis names a cluster that does nothing else. Feeds of the name bench-nodes-... are made in it
    and deleted at the end. Results are the processor time of the process and of all nodes, the
    connections, and how long an example to a feed at rest waits for its answer.
    """
    url = RedisOptions(redis).url()
    if kind_of(url) != CLUSTER:
        raise BadConfiguration("name a Redis Cluster: redis+cluster://HOST:PORT")
    names = [f"{PREFIX}{number:05d}" for number in range(feeds)]
    tell(f"{feeds:,} feeds at rest for {seconds:g} s")
    connection = Connection(url, Stop(), 10.0)
    try:
        row = _measured(url, connection, names, seconds)
        yield Result([row], "cores of the process and of all nodes; seconds to an answer")
    finally:
        connection.close()
        for feed in names:
            with Store(url, feed, retry_timeout=10.0) as store:
                reset(store, with_input=True, force=True)
                store.call("DEL", store.keys.restart_mark)  # else it stays for days


def _measured(url: str, connection: Connection, feeds: Sequence[str], seconds: float) -> Values:
    keys = [FeedKeys(feed) for feed in feeds]
    connection.call_all([("XADD", key.input, "*", *_ROW) for key in keys])
    connection.call_all([("SADD", REGISTRY, feed) for feed in feeds])
    # One key of each node.
    ends = list({nodes_of(url).node_of_key(key.state): key.state for key in keys}.values())

    def redis_used() -> float:
        return sum(used_cpu(connection.call("INFO", "cpu", key=key)) for key in ends)

    def connections() -> int:
        replies = [connection.call("INFO", "clients", key=key).decode() for key in ends]
        return sum(int(one.partition("connected_clients:")[2].split()[0]) for one in replies)

    before = connections()
    options = ("--classes", "a,b", "--max-feeds", str(len(feeds)), "--refit-processes", "1")
    with python(*worker(f"{PREFIX}*", url, options)) as process:
        process.wait_until(lambda: min(_answered(connection, keys)) > 0)
        time.sleep(_SETTLE_SECONDS)
        began = process.processor_seconds, redis_used()
        time.sleep(seconds)
        ended = process.processor_seconds, redis_used()
        taken = connections() - before
        waits = [_wait(connection, random.choice(keys)) for _ in range(EXAMPLES)]  # noqa: S311
    own, of_redis = ((b - a) / seconds for a, b in zip(began, ended, strict=True))
    values = {"feeds": len(feeds), "process": own, "redis": of_redis, "connections": taken}
    return values | {"median": statistics.median(waits), "longest": max(waits)}


def _answered(connection: Connection, keys: Sequence[FeedKeys]) -> list[int]:
    found = connection.call_all([("HGET", key.state, "seq") for key in keys])
    return [int(seq or 0) for seq in found]


def _wait(connection: Connection, keys: FeedKeys) -> float:
    """Return the seconds until an example of a feed at rest is answered."""
    time.sleep(_MAX_PAUSE_SECONDS * random.random())  # noqa: S311
    (seq,) = _answered(connection, [keys])
    began = time.perf_counter()
    connection.call("XADD", keys.input, "*", *_ROW)
    while _answered(connection, [keys]) == [seq]:
        pass
    return time.perf_counter() - began
