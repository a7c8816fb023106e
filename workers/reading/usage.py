"""Usage of a feed in Redis: consumer groups of its answers, its published state, memory."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ParamSpec, Self, TypeVar

from workers.broker.feed_reader import FeedReader
from workers.errors import AccessDenied
from workers.feed.retention import NAMES, Retention
from workers.feed.state import FeedState, Publication
from workers.reading.lag import backlog

P = ParamSpec("P")
T = TypeVar("T")

_SAMPLES = 5  # nodes of a stream that MEMORY USAGE measures: microseconds for any length


def permitted(command: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Return the reply of a command; None if this user has no permission for it."""
    try:
        return command(*args, **kwargs)
    except AccessDenied:
        return None


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A consumer group of `out`."""

    name: str  # by default `downstream` for `online-svm backup --follow`
    upto: str  # ID of the last entry delivered to it; a recording has all up to it on disk
    pending: int  # entries delivered to it but not acknowledged
    behind: int  # entries after `upto`
    behind_is_at_least: bool  # whether `behind` is a lower bound: counting stopped


def consumer_groups(reader: FeedReader) -> list[ConsumerGroup]:
    """Return the consumer groups of `out`; none without permission."""
    out = reader.keys.out
    if not reader.has_stream(out):
        return []
    found = []
    for group in permitted(reader.groups, out) or ():
        upto = group.last_delivered
        behind, is_at_least = (
            backlog(reader, out, upto)[:2] if group.lag is None else (group.lag, False)
        )
        name = group.name.decode(errors="backslashreplace")
        found.append(ConsumerGroup(name, upto.decode(), group.pending, behind, is_at_least))
    return found


@dataclass(frozen=True, slots=True)
class PublishedStatus:
    """The newest published state of a feed."""

    n: int  # examples learned in the state
    size: int  # bytes
    behind: int  # examples learned since it was published
    age: float | None  # seconds since then, by the clock of Redis; None where it cannot be read

    @classmethod
    def of(cls, reader: FeedReader, n: int, found: Publication) -> Self:
        """Return the status of a published state of a feed with `n` examples learned."""
        return cls(found.n, found.size, n - found.n, _age(reader, found))


def _age(reader: FeedReader, published: Publication) -> float | None:
    now = permitted(reader.server_time)
    return None if now is None else max(0.0, (now * 1000 - published.at) / 1000)


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of the keys of a feed, by kind: `in`, output streams, `snapshots`, `published`."""

    bytes: dict[str, int | None]  # an estimate for streams; None without permission
    bounds: dict[str, int]  # default bound of each output stream, in bytes


NO_MEMORY = MemoryUse({}, {})


def memory_use(
    reader: FeedReader, state: FeedState | None, published: Publication | None
) -> MemoryUse:
    """Return the memory of a feed's keys, by one sampled MEMORY USAGE each."""
    keys = reader.keys
    pointers = () if state is None else state.snapshots
    kinds: dict[str, Iterable[str]] = {
        "in": [keys.input],
        **{name: [key] for name, key in zip(NAMES, keys.outputs, strict=True)},
        "snapshots": [key for pointer in pointers for key in pointer.keys(keys)],
        "published": [] if published is None else published.keys(keys),
    }
    bounds = {} if state is None else Retention().bytes._asdict()
    return MemoryUse(
        {kind: _size(reader, held) for kind, held in kinds.items()},
        {name: bound for name, bound in bounds.items() if bound},
    )


def _size(reader: FeedReader, keys: Iterable[str]) -> int | None:
    total = 0
    for key in keys:
        size = permitted(reader.memory, key, _SAMPLES)
        if size is None and reader.has_stream(key):
            return None
        total += size or 0
    return total
