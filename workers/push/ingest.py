"""Send rows as entries of the input stream, a chunk at a time."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import orjson
import redis

from workers.broker.redis_errors import translated
from workers.errors import RedisUnsuitable, WorkerError
from workers.plural import counted
from workers.push.interrupts import deferred_interrupt
from workers.push.producer import Producer
from workers.push.sources import BadSource, Row

CHUNK = 500
"""Entries sent before their replies are read; more would not make a push faster."""

CHUNK_BYTES = 1 << 22
"""Bytes of them, after which no further entry is added."""

Fields = list[bytes | str]
Throttle = Callable[[int], None]


class PushStopped(WorkerError):
    """Redis refused an entry, or its replies did not arrive; the message says how to resume."""


class PushInterrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C.

    Attributes
    ----------
    sent : int
        Rows that Redis accepted.
    unsure : int
        Rows after them whose replies were not read; Redis may have accepted some.
    """

    def __init__(self, sent: int, unsure: int = 0) -> None:
        super().__init__(sent, unsure)
        self.sent, self.unsure = sent, unsure


def entry(row: Row, arrays: bool = False) -> Fields:
    """Return the fields of the input entry for a row.

    Parameters
    ----------
    row : Row
    arrays : bool
        Send named features as an array in their own order, without the names.

    Examples
    --------
    >>> entry(Row({"b": 1.0, "a": 2.0}, "spam"))
    [b'x', b'{"b":1.0,"a":2.0}', b'y', 'spam']
    """
    x = list(row.x.values()) if arrays and isinstance(row.x, dict) else row.x
    fields: Fields = [b"x", orjson.dumps(x)]
    if row.y is not None:
        fields += [b"y", row.y]
    if row.p is not None:
        fields += [b"p", row.p]
    if row.id is not None:
        fields += [b"id", row.id]
    if row.time is not None:
        fields += [b"time", str(row.time)]
    if row.s is not None:
        fields += [b"s", orjson.dumps(row.s)]
    return fields


def label_entry(row: Row) -> Fields:
    """Return the fields of the input entry for the label of an earlier example.

    Raises
    ------
    BadSource
        If the row has no id, or no label.

    Examples
    --------
    >>> label_entry(Row({}, "spam", "tx-1"))
    [b'for', 'tx-1', b'y', 'spam']
    """
    if row.id is None or row.y is None:
        missing = "id" if row.id is None else "label"
        raise BadSource(f"a label needs the id of its example: a row has no {missing}")
    return [b"for", row.id, b"y", row.y]


def entries(rows: Iterable[Row], arrays: bool, are_labels: bool) -> Iterator[Fields]:
    """Return the fields of the input entry of each row; see `push`."""
    return (label_entry(row) if are_labels else entry(row, arrays) for row in rows)


def encoded(row: Row, arrays: bool = False) -> list[bytes]:
    """Return the fields of `entry` as Redis returns them: all as bytes."""
    return [part.encode() if isinstance(part, str) else part for part in entry(row, arrays)]


def shuffled(rows: Iterable[Row], seed: int) -> list[Row]:
    """Return the rows in the order of ``numpy.random.default_rng(seed).permutation(n)``."""
    held = list(rows)
    return [held[i] for i in np.random.default_rng(seed).permutation(len(held))]


def push(
    rows: Iterable[Row],
    url: str,
    feed: str,
    *,
    arrays: bool = False,
    are_labels: bool = False,
    throttle: Throttle | None = None,
    chunk: int = CHUNK,
    skipped: int = 0,
    measure: Callable[[int], None] | None = None,
) -> int:
    """Append rows to the input of a feed, in order; return their number.

    The feed is added to the list of feeds, if this user may write that list.

    Parameters
    ----------
    rows : iterable of Row
    url, feed : str
    arrays : bool
        As for `entry`.
    are_labels : bool
        Whether the rows are labels of earlier examples.
    throttle : callable, optional
        Called after each chunk with the number of rows sent so far; it may wait.
    chunk : int
        Rows sent at once, or about `CHUNK_BYTES` of them.
    skipped : int
        Rows of the source that were skipped; messages count them.
    measure : callable, optional
        Called with the bytes of each chunk, names and values of its fields, before `throttle`.

    Raises
    ------
    BadSource
        If a row that should be a label has none, or no id.
    PushStopped
        If Redis refused an entry, or its replies did not arrive. No entry is sent again.
    PushInterrupted
        If the user pressed Ctrl-C. The replies to the last chunk are read first, so the number of
        accepted rows is exact. A second Ctrl-C does not wait for them.
    """
    sent = unsure = 0
    try:
        with producer_of(url, feed) as producer:
            for together, size in _chunks(entries(rows, arrays, are_labels), chunk):
                with deferred_interrupt() as interrupt:
                    unsure = len(together)
                    sent += _send(producer, url, together, sent, skipped)
                    unsure = 0
                if interrupt.came:
                    raise KeyboardInterrupt
                if sent == len(together):
                    producer.register()
                if measure is not None:
                    measure(size)
                if throttle is not None:
                    throttle(sent)
    except KeyboardInterrupt:
        raise PushInterrupted(sent, unsure) from None
    return sent


def _size(fields: Fields) -> int:
    """Return the bytes of an entry."""
    return sum(len(part if isinstance(part, bytes) else part.encode()) for part in fields)


def producer_of(url: str, feed: str) -> Producer:
    """Return the producer of a feed.

    Raises
    ------
    WorkerError
        If Redis does not answer, or refuses.
    """
    try:
        return Producer(url, feed)
    except redis.RedisError as error:
        raise translated(error, url) from None


def rows_pushed(count: int) -> str:
    """Return how many rows an interrupted push has sent, as the beginning of a sentence.

    Examples
    --------
    >>> rows_pushed(1), rows_pushed(500)
    ('1 row was pushed', '500 rows were pushed')
    """
    return f"{counted(count, 'row')} {'was' if count == 1 else 'were'} pushed"


def _send(
    producer: Producer, url: str, entries: Sequence[Fields], before: int, skipped: int
) -> int:
    """Append entries; return their number."""
    try:
        replies = producer.append(entries)
    except redis.RedisError as error:
        raise PushStopped(
            f"{translated(error, url)}. {rows_pushed(before)}, and up to {len(entries)} more "
            "may have been: compare with online-svm status before going on with "
            f"--skip {skipped + before}"
        ) from None
    refused = [i for i, reply in enumerate(replies) if isinstance(reply, redis.RedisError)]
    if refused:
        done = before + len(entries) - len(refused)
        named = translated(replies[refused[0]], url)
        if isinstance(named, RedisUnsuitable):
            raise named from None
        raise PushStopped(
            f"{named}. {rows_pushed(done)}; {_resume_hint(refused, len(entries), skipped + before)}"
        ) from None
    return len(entries)


def _resume_hint(refused: Sequence[int], count: int, before: int) -> str:
    """Return how to push the rest, so that no row is missing or sent twice.

    Parameters
    ----------
    refused : sequence of int
        Places in the chunk of the entries that Redis refused, at least one, in order.
    count : int
        Entries of the chunk.
    before : int
        Rows of the source before the chunk.

    Examples
    --------
    >>> _resume_hint([3, 4], 5, 100)
    'go on with --skip 103'
    >>> _resume_hint([1, 2, 4], 6, 100)
    'later rows than the refused were taken: push --skip 101 --limit 2, --skip 104 --limit 1, then \
go on with --skip 106'
    """
    runs: list[list[int]] = []
    for place in refused:
        if runs and place == runs[-1][0] + runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([place, 1])
    if len(runs) == 1 and sum(runs[0]) == count:
        return f"go on with --skip {before + runs[0][0]}"
    missing = ", ".join(f"--skip {before + first} --limit {length}" for first, length in runs)
    rest = f"go on with --skip {before + count}"
    return f"later rows than the refused were taken: push {missing}, then {rest}"


def _chunks(entries: Iterable[Fields], count: int) -> Iterator[tuple[list[Fields], int]]:
    """Yield so many entries at a time, fewer where they are large; and their bytes."""
    chunk: list[Fields] = []
    held = 0
    for each in entries:
        chunk.append(each)
        held += _size(each)
        if len(chunk) >= count or held >= CHUNK_BYTES:
            yield chunk, held
            chunk, held = [], 0
    if chunk:
        yield chunk, held


class PushRate:
    """Waits so that no more than `rate` rows a second are sent.

    Parameters
    ----------
    rate : float
        Rows a second.

    Examples
    --------
    >>> pace = PushRate(1e6)
    >>> pace(10)
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._began = time.monotonic()

    def __call__(self, sent: int) -> None:
        """Wait until `sent` rows are due."""
        time.sleep(max(0.0, self._began + sent / self._rate - time.monotonic()))

    @property
    def chunk(self) -> int:
        """Rows to send at once: a tenth of a second's worth, at most `CHUNK`."""
        return max(1, min(CHUNK, int(self._rate / 10)))
