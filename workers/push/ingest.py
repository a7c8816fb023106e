"""Send rows as entries of the input stream, a chunk at a time."""

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import numpy as np
import orjson

from workers.broker.producer import Producer
from workers.errors import RedisUnsuitable, WorkerError
from workers.push.sources import BadSource, Row
from workers.text import counted

CHUNK_ENTRIES = 500  # entries sent before their replies are read; more would not be faster
CHUNK_BYTES = 1 << 22  # bytes from which a chunk is complete

Fields = list[bytes | str]


@dataclass(frozen=True, slots=True)
class Pacing:
    """The speed of a push, and where it begins."""

    chunk: int = CHUNK_ENTRIES  # rows sent at once, unless these exceed `CHUNK_BYTES`
    # Called after each chunk with the rows and the bytes sent so far; it may wait
    throttle: Callable[[int, int], None] | None = None
    skipped: int = 0  # rows of the source before the first one, for messages


class PushStopped(WorkerError):
    """Redis refused an entry, or its replies did not arrive; the message tells how to continue."""


class PushInterrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C after Redis accepted `sent` rows.

    The replies to `unsure` rows after them were not read; Redis may have accepted some.
    """

    def __init__(self, sent: int, unsure: int = 0) -> None:
        super().__init__(sent, unsure)
        self.sent, self.unsure = sent, unsure


def entry(row: Row) -> Fields:
    """Return the input entry of a row."""
    fields: Fields = [b"x", orjson.dumps(row.x)] if len(row.x) or row.score is None else []
    if row.score is not None:
        fields += [b"score", orjson.dumps(row.score)]
    if row.score_version is not None:
        fields += [b"score_version", str(row.score_version)]
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
    """Return the input entry for the label of an earlier example.

    Raises BadSource if the row has no id, or no label.
    """
    if row.id is None or row.y is None:
        missing = "id" if row.id is None else "label"
        raise BadSource(f"a label needs the id of its example: a row has no {missing}")
    return [b"for", row.id, b"y", row.y]


def encoded(row: Row) -> list[bytes]:
    """Return the fields of `entry` as Redis returns them: all as bytes."""
    return [part.encode() if isinstance(part, str) else part for part in entry(row)]


def shuffled(rows: Iterable[Row], seed: int) -> list[Row]:
    """Return the rows in the order of ``numpy.random.default_rng(seed).permutation(n)``."""
    held = list(rows)
    return [held[i] for i in np.random.default_rng(seed).permutation(len(held))]


def push(
    rows: Iterable[Row],
    url: str,
    feed: str,
    *,
    encode: Callable[[Row], Fields] = entry,
    check: Callable[[Sequence[Fields], int], None] | None = None,
    pacing: Pacing | None = None,
) -> int:
    """Append rows to the input of a feed, in order; return their number.

    The feed is added to the list of feeds, if this user may write that list. `encode` returns the
    fields of an entry: `entry`, or `label_entry`, which may raise BadSource. `check` may raise
    it for a chunk of entries before they are sent; it also gets the number of rows before them.

    Raises BadSource if a row cannot be read; the rows before its chunk were sent, and the message
    tells how to continue. Raises PushStopped if Redis refused an entry, or its replies did not
    arrive; no entry is sent again. Raises PushInterrupted after Ctrl-C, when the replies to the
    last chunk were read, so that the number of accepted rows is exact; a second Ctrl-C does not
    wait for them.
    """
    pacing = pacing or Pacing()
    skipped = pacing.skipped
    sent = unsure = sent_bytes = 0
    try:
        with Producer(url, feed) as producer:
            for chunk, size in chunks(map(encode, rows), pacing.chunk):
                if check is not None:
                    check(chunk, skipped + sent)
                with deferred_interrupt() as interrupt:
                    unsure = len(chunk)
                    sent += _send(producer, chunk, sent, skipped)
                    unsure = 0
                if interrupt.came:
                    raise KeyboardInterrupt
                if sent == len(chunk):  # the first chunk
                    producer.register()
                sent_bytes += size
                if pacing.throttle is not None:
                    pacing.throttle(sent, sent_bytes)
    except KeyboardInterrupt:
        raise PushInterrupted(sent, unsure) from None
    except BadSource as error:
        if not sent:
            raise
        raise BadSource(
            f"{error}. {rows_pushed(sent)}; correct the source, then go on with "
            f"--skip {skipped + sent}"
        ) from None
    return sent


def rows_pushed(count: int) -> str:
    """Return the number of sent rows as the beginning of a sentence."""
    return f"{counted(count, 'row')} {'was' if count == 1 else 'were'} pushed"


def _send(producer: Producer, entries: Sequence[Fields], before: int, skipped: int) -> int:
    try:
        replies = producer.append(entries)
    except WorkerError as error:
        raise PushStopped(
            f"{error}. {rows_pushed(before)}, and up to {len(entries)} more "
            "may have been: compare with online-svm status before going on with "
            f"--skip {skipped + before}"
        ) from None
    refused = {i: reply for i, reply in enumerate(replies) if isinstance(reply, WorkerError)}
    if refused:
        done = before + len(entries) - len(refused)
        first = next(iter(refused.values()))
        if isinstance(first, RedisUnsuitable):
            raise first
        hint = _resume_hint([*refused], len(entries), skipped + before)
        raise PushStopped(f"{first}. {rows_pushed(done)}; {hint}")
    return len(entries)


def _resume_hint(refused: Sequence[int], count: int, before: int) -> str:
    """Return the commands that push the rest, so that no row is missing or sent twice.

    `refused` are indices in a chunk of `count` entries, in order; `before` is the number of rows
    before the chunk.
    """
    runs: list[list[int]] = []  # first index and length
    for index in refused:
        if runs and index == runs[-1][0] + runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([index, 1])
    if len(runs) == 1 and sum(runs[0]) == count:
        return f"go on with --skip {before + runs[0][0]}"
    missing = ", ".join(f"--skip {before + first} --limit {length}" for first, length in runs)
    rest = f"go on with --skip {before + count}"
    return f"later rows than the refused were taken: push {missing}, then {rest}"


def chunks(entries: Iterable[Fields], count: int) -> Iterator[tuple[list[Fields], int]]:
    """Yield chunks of `count` entries, or of about `CHUNK_BYTES`, with their bytes."""
    chunk: list[Fields] = []
    size = 0
    for fields in entries:
        chunk.append(fields)
        size += sum(len(part if isinstance(part, bytes) else part.encode()) for part in fields)
        if len(chunk) >= count or size >= CHUNK_BYTES:
            yield chunk, size
            chunk, size = [], 0
    if chunk:
        yield chunk, size


class PushRate:
    """Waits so that at most `rate` rows a second are sent."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._began = time.monotonic()

    def __call__(self, sent: int, _size: int = 0) -> None:
        """Wait until `sent` rows are due."""
        time.sleep(max(0.0, self._began + sent / self._rate - time.monotonic()))

    @property
    def chunk(self) -> int:
        """Rows to send at once: as many as in a tenth of a second, at most `CHUNK_ENTRIES`."""
        return max(1, min(CHUNK_ENTRIES, int(self._rate / 10)))


class Interrupt:
    """Whether Ctrl-C was pressed while it was deferred."""

    came = False


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """Defer a Ctrl-C until the end of the block; a second one takes effect at once."""
    interrupt = Interrupt()
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        if interrupt.came and callable(before):
            before(number, frame)
        interrupt.came = True

    # Only the main thread handles signals. An ignored Ctrl-C stays ignored.
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
