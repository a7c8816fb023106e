"""Feeds in any number, each of which has learned: copies of one that a worker filled.

Nothing that Redis keeps of a feed names the feed but the keys. So copies of its keys under another
name are a feed that goes on from where the first one was stopped.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import orjson

from workers.broker.client import TIMEOUT, client
from workers.broker.store import Store
from workers.feed.keys import REGISTRY, FeedKeys
from workers.lab.bench.feed import Pairs
from workers.lab.bench.feed import push as push_all
from workers.lab.bench.processes import python, worker

TEMPLATE = "bench-template"
PATTERN = "bench-feeds-*"
KEPT = 10
"""Answers and reports that a copy keeps: they only cost memory of Redis."""


def names(count: int) -> list[str]:
    """Return the names of copies.

    Examples
    --------
    >>> names(2)
    ['bench-feeds-0000', 'bench-feeds-0001']
    """
    return [f"bench-feeds-{number:04d}" for number in range(count)]


def fill(url: str, examples: Pairs, options: Sequence[str]) -> None:
    """Let a worker answer examples and stop, with a snapshot: the feed that is copied."""
    with Store(url, TEMPLATE) as store:
        push_all(store, examples)
        key = store.keys.state
        with python(*worker(TEMPLATE, url, options)) as process:
            process.wait_until(lambda: int(store.call("HGET", key, "seq") or 0) == len(examples))
        for stream in (store.keys.out, store.keys.met, store.keys.events):
            store.call("XTRIM", stream, "MAXLEN", KEPT)


def copy(url: str, feeds: Sequence[str]) -> None:
    """Copy the filled feed, and list the copies."""
    own = FeedKeys(TEMPLATE)
    prefix = own.state.removesuffix("st")
    connected: Any = client(url, TIMEOUT)
    with connected:
        # The server holds nothing else.
        keys = [
            key.decode()
            for key in connected.execute_command("KEYS", f"{prefix}*")
            if key.decode() != own.lease
        ]
        for feed in feeds:
            other = FeedKeys(feed).state.removesuffix("st")
            for key in keys:
                connected.execute_command("COPY", key, other + key.removeprefix(prefix), "REPLACE")
            connected.execute_command("SADD", REGISTRY, feed)


def push(url: str, feeds: Sequence[str], examples: Pairs) -> None:
    """Push the same examples to each of the feeds, one after the other in turn."""
    with client(url, TIMEOUT) as connected:
        for row in examples:
            for some in _pages(feeds):
                with connected.pipeline(transaction=False) as pipeline:
                    for feed in some:
                        pipeline.execute_command("XADD", FeedKeys(feed).input, "*", *fields(row))
                    pipeline.execute()


def fields(example: tuple[list[float], str]) -> tuple[bytes | str, ...]:
    """Return the fields of an input entry.

    Examples
    --------
    >>> fields(([0.5, 1.0], "a"))
    ('x', b'[0.5,1.0]', 'y', 'a')
    """
    x, label = example
    return "x", orjson.dumps(x), "y", label


def answered(url: str, feeds: Sequence[str]) -> list[int]:
    """Return how many entries of each feed were answered."""
    with client(url, TIMEOUT) as connected, connected.pipeline(transaction=False) as pipeline:
        for feed in feeds:
            pipeline.execute_command("HGET", FeedKeys(feed).state, "seq")
        return [int(seq or 0) for seq in pipeline.execute()]


def _pages(feeds: Sequence[str]) -> list[list[str]]:
    left = iter(feeds)
    pages = []
    while page := list(islice(left, 500)):
        pages.append(page)
    return pages
