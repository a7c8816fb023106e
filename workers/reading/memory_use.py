"""Memory that the keys of a feed take in Redis, with the bounds of its streams."""

from collections.abc import Iterable
from dataclasses import dataclass

from workers.broker.feed_reader import FeedReader
from workers.feed.kept_bytes import NAMES
from workers.feed.publication import Publication
from workers.feed.retention import Retention
from workers.feed.state import FeedState
from workers.reading.permitted import permitted

_SAMPLES = 5  # nodes of a stream that are measured: a few microseconds, whatever its length


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """What the keys of a feed take.

    Attributes
    ----------
    bytes : dict of str to (int or None)
        By kind of key: `in`, the output streams, `snapshots`, `published`. Of a stream it is an
        estimate. None where this user may not ask.
    bounds : dict of str to int
        Bytes that are kept of an output stream by default, as counted for trimming; a worker may
        have been told otherwise. A stream without a bound is left out.
    """

    bytes: dict[str, int | None]
    bounds: dict[str, int]


def memory_use(
    reader: FeedReader, state: FeedState | None, published: Publication | None
) -> MemoryUse:
    """Return what the keys of a feed take: one MEMORY USAGE each, which reads no stream."""
    keys = reader.keys
    pointers = () if state is None else (state.snapshot, state.previous)
    snapshots = [key for found in pointers if found is not None for key in found.keys(keys)]
    kinds: dict[str, Iterable[str]] = {
        "in": [keys.input],
        **{name: [key] for name, key in zip(NAMES, keys.outputs, strict=True)},
        "snapshots": snapshots,
        "published": [] if published is None else published.keys(keys),
    }
    return MemoryUse(
        {kind: _size(reader, held) for kind, held in kinds.items()},
        {
            name: bound
            for name, bound in Retention().bytes._asdict().items()
            if bound and state is not None
        },
    )


def _size(reader: FeedReader, keys: Iterable[str]) -> int | None:
    total = 0
    for key in keys:
        size = permitted(reader, "MEMORY", "USAGE", key, "SAMPLES", _SAMPLES)
        if size is None and reader.call("TYPE", key) != b"none":
            return None
        total += size or 0
    return total
