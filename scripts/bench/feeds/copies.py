"""Feeds in any number, each of which has learned: copies of one that a worker filled.

Of what Redis keeps of a feed only the keys and the snapshot name it. So copies of its keys, and of
the snapshot, under another name are a feed that goes on from where the first one was stopped.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from scripts.bench.feed import Pairs, fields, send
from scripts.bench.feed import push as push_all
from scripts.bench.processes import python, worker
from workers.broker.client import TIMEOUT, client
from workers.broker.store import Store
from workers.feed.keys import REGISTRY, FeedKeys
from workers.feed.state import Pointer
from workers.session import snapshots

TEMPLATE = "bench-template"
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


def fill(
    url: str,
    examples: Pairs,
    options: Sequence[str],
    feeds: Sequence[str] = (TEMPLATE,),
    step: int = 0,
) -> None:
    """Let a process answer examples and stop, with snapshots: the feeds that are copied.

    Each next feed answers `step` examples more than the one before it; the last answers all.
    """
    counts = [len(examples) - step * i for i in reversed(range(len(feeds)))]
    with ExitStack() as opened:
        stores = [opened.enter_context(Store(url, feed)) for feed in feeds]
        for store, count in zip(stores, counts, strict=True):
            push_all(store, examples[:count])
        with python(*worker(feeds, url, options)) as process:
            process.wait_until(lambda: answered(url, feeds) == counts)
        for store in stores:
            for stream in (store.keys.out, store.keys.met, store.keys.events):
                store.call("XTRIM", stream, "MAXLEN", KEPT)


def copy(url: str, feeds: Sequence[str], template: str = TEMPLATE) -> None:
    """Copy a filled feed, and list the copies."""
    with Store(url, template) as store:
        state, own = store.state(), store.keys
        assert state is not None
        pointer, config_hash = state.snapshot, state.agreement.config_hash
        assert pointer is not None
        kept = snapshots.read(store, pointer, config_hash)
        for feed in feeds:
            other = FeedKeys(feed)
            for key, target in zip(
                (own.input, *own.outputs), (other.input, *other.outputs), strict=True
            ):
                store.call("COPY", key, target, "REPLACE")
            store.call("COPY", own.state, other.state, "REPLACE")
            # A snapshot names its feed.
            there, data = snapshots.encode(feed, config_hash, kept.position, kept.body)
            store.call("SET", other.snapshot(there.n, there.sha256), data)
            store.call("HSET", other.state, "snapshot", there.encode())
            store.call("SADD", REGISTRY, feed)


def push(url: str, feeds: Sequence[str], examples: Pairs) -> None:
    """Push the same examples to each of the feeds, one after the other in turn."""
    send(url, ((FeedKeys(feed).input, row) for row in map(fields, examples) for feed in feeds))


def answered(url: str, feeds: Sequence[str]) -> list[int]:
    """Return how many entries of each feed were answered."""
    return [int(seq or 0) for seq in _of_states(url, feeds, "HGET", "seq")]


def unsaved(url: str, feeds: Sequence[str]) -> int:
    """Return how many feeds have answered entries that their newest snapshot lacks."""
    found = _of_states(url, feeds, "HMGET", "cursor", "snapshot")
    return sum(at is None or Pointer.parse(at).cursor != cursor for cursor, at in found)


def _of_states(url: str, feeds: Sequence[str], command: str, *fields: str) -> list[Any]:
    with client(url, TIMEOUT) as connected, connected.pipeline(transaction=False) as pipeline:
        for feed in feeds:
            pipeline.execute_command(command, FeedKeys(feed).state, *fields)
        found: list[Any] = pipeline.execute()
        return found
