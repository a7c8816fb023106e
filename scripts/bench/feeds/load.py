"""Processes of many feeds under measurement: their feeds, their start, their load, their rest.

Feeds in any number, each of which has learned, are copies of one that a worker filled. Of what
Redis keeps of a feed only the keys and the snapshot name it. So copies of its keys, and of the
snapshot, under another name are a feed that goes on from where the first one was stopped.
"""

import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np

from scripts.bench import harness
from scripts.bench.harness import Measured
from scripts.command_line import tell
from workers.broker import embedded
from workers.broker.client import TIMEOUT, client
from workers.broker.store import Store
from workers.feed.keys import REGISTRY, FeedKeys
from workers.feed.state import Pointer
from workers.push.ingest import entry
from workers.push.sources import Row
from workers.session import snapshots

TEMPLATE = "bench-template"
KEPT_ANSWERS = 10  # answers and reports that a copy keeps: they only cost memory of Redis
PHASES = 5  # templates with different numbers of examples, so that copies refit at different times
FEEDS_PER_LOOK = 20  # asking about a thousand feeds would take processor time from the measurement
STREAMS_PER_READ = 64  # Redis looks at each stream of a read whenever one gets an entry
MAX_FEEDS = 10_000

_LOOK_SECONDS = 0.05
_LIMIT_SECONDS = 600.0  # for all answers of a step, on a busy machine
_LAST_ANSWER_SECONDS = 60.0
_BLOCK_MS = 500
_REST_SHARE = 0.1  # processor seconds in one second below which a process is at rest


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a run is."""

    idle: int = 1000  # feeds at rest
    learning: int = 12  # feeds that learn
    busy: int = 200  # feeds with a steady rate
    rate: float = 5.0  # examples a second of each of these
    seconds: float = 60.0  # of load; twice as many on one feed alone
    window: int = 2000
    refit_every: int = 250
    replayed: int = 20  # entries of each feed after its snapshot when its process is killed
    rest: float = 30.0  # seconds at rest
    counts: tuple[int, ...] = (1, 4, 16, 200, 1000)  # of feeds, for the part `sizes`
    backlog: int = 40_000  # examples of full load
    moderate: float = 100.0  # examples a second over all feeds
    steady: float = 12.0  # seconds of moderate load

    @property
    def options(self) -> tuple[str, ...]:
        """The settings, as options of the command."""
        most = max(self.idle, self.busy, self.learning, *self.counts, PHASES)
        window, refit_every = f"--window={self.window}", f"--refit-every={self.refit_every}"
        return ("--classes=a,b", window, refit_every, f"--max-feeds={most}")

    @property
    def key(self) -> str:
        """The sizes as text, under which results are kept."""
        return repr(self)


def names(count: int) -> list[str]:
    """Return the names of copies."""
    return [f"bench-feeds-{number:04d}" for number in range(count)]


def fill(
    url: str,
    examples: Sequence[Row],
    options: Sequence[str],
    feeds: Sequence[str] = (TEMPLATE,),
    step: int = 0,
) -> None:
    """Let a process answer examples and stop, with snapshots: the feeds that are copied."""
    counts = [len(examples) - step * i for i in reversed(range(len(feeds)))]
    with ExitStack() as opened:
        stores = [opened.enter_context(Store(url, feed)) for feed in feeds]
        for store, count in zip(stores, counts, strict=True):
            harness.push(store, examples[:count])
        with harness.python(*harness.worker(feeds, url, options)) as process:
            process.wait_until(lambda: answered(url, feeds) == counts)
        for store in stores:
            for stream in (store.keys.out, store.keys.met, store.keys.events):
                store.call("XTRIM", stream, "MAXLEN", KEPT_ANSWERS)


def copy(url: str, feeds: Sequence[str], template: str = TEMPLATE) -> None:
    """Copy a filled feed, and list the copies."""
    with Store(url, template) as store:
        state, own = store.state(), store.keys
        assert state is not None
        pointer, config_hash = state.snapshot, state.pinned.config_hash
        assert pointer is not None
        kept = snapshots.read(store, pointer, config_hash)
        for feed in feeds:
            other = FeedKeys(feed)
            targets = (other.input, *other.outputs, other.state)
            for key, target in zip((own.input, *own.outputs, own.state), targets, strict=True):
                store.call("COPY", key, target, "REPLACE")
            # A snapshot names its feed.
            there, data = snapshots.encode(feed, config_hash, kept.position, kept.body)
            store.call("SET", other.snapshot(there.n, there.sha256), data)
            store.call("HSET", other.state, "snapshot", there.encode())
            store.call("SADD", REGISTRY, feed)


def push(url: str, feeds: Sequence[str], examples: Sequence[Row]) -> None:
    """Push the same examples to each of the feeds, one after the other in turn."""
    rows = map(entry, examples)
    harness.send(url, ((FeedKeys(feed).input, row) for row in rows for feed in feeds))


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


@contextmanager
def redis() -> Iterator[str]:
    """Give a Redis: the system's own if there is one, as in production."""
    with embedded.temporary(shutil.which("redis-server")) as server:
        yield server.url


@contextmanager
def filled(sizes: Sizes, feeds: Sequence[str]) -> Iterator[tuple[str, list[Row]]]:
    """Yield a Redis with feeds whose windows are full, and examples that are new to them."""
    learned = sizes.window + sizes.refit_every
    rows = harness.stream(learned + 4 * sizes.refit_every + sizes.replayed)
    with redis() as url:
        tell(f"a feed learns {learned:,} examples")
        fill(url, rows[:learned], sizes.options)
        tell(f"{len(feeds):,} copies of it")
        copy(url, feeds)
        _wait_for_rewrite(url)
        yield url, rows[learned:]


@contextmanager
def started(
    url: str, sizes: Sizes, feeds: Sequence[str], row: Row
) -> Iterator[tuple[Measured, float]]:
    """Run a process on feeds; yield it, and the seconds until each had answered an entry."""
    expected = [seq + 1 for seq in answered(url, feeds)]
    push(url, feeds, [row])
    began = time.perf_counter()
    with harness.python(*harness.worker(feeds, url, sizes.options)) as process:
        _until(url, process, feeds, expected)
        yield process, time.perf_counter() - began


def answer(url: str, process: Measured, feeds: Sequence[str], rows: Sequence[Row]) -> None:
    """Push examples to each feed, and wait for the answers."""
    expected = [seq + len(rows) for seq in answered(url, feeds)]
    push(url, feeds, rows)
    _until(url, process, feeds, expected)


def _until(url: str, process: Measured, feeds: Sequence[str], expected: Sequence[int]) -> None:
    left = list(zip(feeds, expected, strict=True))

    def are_answered() -> bool:
        late: list[tuple[str, int]] = []
        while left and not late:
            some = left[:FEEDS_PER_LOOK]
            found = answered(url, [feed for feed, _ in some])
            late = [one for one, seq in zip(some, found, strict=True) if one[1] != seq]
            left[:FEEDS_PER_LOOK] = late
        return not left

    late = "feeds were not answered in {:g} s"
    process.wait_until(are_answered, _LIMIT_SECONDS, late, _LOOK_SECONDS)


def _wait_for_rewrite(url: str) -> None:
    """Wait until Redis has rewritten its append-only file, which it does when that has grown."""
    deadline = time.monotonic() + _LIMIT_SECONDS
    with client(url, TIMEOUT) as connected:
        info: Any = b""
        while not all(
            b"aof_rewrite_%s:0" % part in info for part in (b"in_progress", b"scheduled")
        ):
            if time.monotonic() > deadline:
                raise harness.WorkerEnded("Redis has not rewritten its append-only file")
            if info:
                time.sleep(_LOOK_SECONDS)
            info = connected.execute_command("INFO", "persistence")


def stagger(
    url: str, process: Measured, feeds: Sequence[str], rows: Sequence[Row], refit_every: int
) -> None:
    """Bring each feed to a different place between two refits; wait until all refits are done."""
    tell(f"feeds begin their refits at different times: {len(feeds)}")
    for number in range(1, refit_every):
        later = [feed for i, feed in enumerate(feeds) if i * refit_every // len(feeds) >= number]
        if later:
            push(url, later, [rows[number]])
    before = 0
    while (now := sum(answered(url, feeds))) != before:
        before = now
        time.sleep(10 * _LOOK_SECONDS)
    wait_for_refits(process)


def wait_for_refits(process: Measured) -> None:
    """Wait until a process and its refit processes are at rest."""
    before = float("-inf")
    while (now := process.processor_seconds) - before > _REST_SHARE:
        process.check()
        before = now
        time.sleep(1.0)


def settled(process: Measured) -> int:
    """Return the bytes that a process holds, once they stay the same."""
    before = now = 0
    for _ in range(20):
        time.sleep(20 * _LOOK_SECONDS)
        before, now = now, harness.resident(process.pid)
        if abs(now - before) < 0.002 * now:
            break
    return now


@dataclass(frozen=True, slots=True)
class SteadyLoad:
    """Examples to feeds in turn, evenly in time.

    Only answers of the feeds `watched` are timed: to read all answers would take as much processor
    time as to make them.
    """

    rate: float  # examples a second, of all feeds together
    seconds: float
    watched: Sequence[str]


def steady(
    url: str, process: Measured, feeds: Sequence[str], examples: Sequence[Row], load: SteadyLoad
) -> dict[str, float]:
    """Push examples to the feeds, and time the answers.

    `late_ms` is by how much an example was sent later than due, at most.
    """
    rate, seconds, watched = load.rate, load.seconds, load.watched
    tell(f"{len(set(feeds))} feeds, {rate:g} examples a second for {seconds:g} s")
    sent, at, count, late = dict[tuple[str, bytes], float](), time.perf_counter, 0, 0.0
    before = process.processor_seconds
    with _answer_times(url, watched) as answers, client(url, TIMEOUT) as connected:
        turns, rows, keys = cycle(feeds), cycle(examples), {f: FeedKeys(f).input for f in feeds}
        watching, began = set(watched), at()
        while (due := began + count / rate) < began + seconds:
            time.sleep(max(0.0, due - at()))
            feed, row = next(turns), entry(next(rows))
            now = at()
            late = max(late, now - due)
            added = connected.execute_command("XADD", keys[feed], "*", *row)
            if feed in watching:
                sent[feed, added] = now
            count += 1
        process.wait_until(
            lambda: sent.keys() <= answers.keys(),
            _LAST_ANSWER_SECONDS,
            "answers are missing",
            _LOOK_SECONDS,
        )
    waits = [answers[key] - now for key, now in sent.items()]
    median, p90, p99 = (1e3 * np.percentile(waits, (50, 90, 99))).tolist()
    return {
        "median_ms": median,
        "p90_ms": p90,
        "p99_ms": p99,
        "processor_us": 1e6 * (process.processor_seconds - before) / count,
        "late_ms": 1e3 * late,
        "sent": count,
    }


@contextmanager
def _answer_times(url: str, feeds: Sequence[str]) -> Iterator[dict[tuple[str, bytes], float]]:
    """Let threads note when each answer can be read, by feed and ID."""
    times, is_over = dict[tuple[str, bytes], float](), threading.Event()

    def read(last: dict[bytes, tuple[str, bytes]]) -> None:
        with client(url, TIMEOUT) as connected:
            while not is_over.is_set():
                cursors = [cursor for _, cursor in last.values()]
                reply: Any = connected.execute_command(
                    "XREAD", "BLOCK", _BLOCK_MS, "STREAMS", *last, *cursors
                )
                now = time.perf_counter()
                for key, entries in reply or ():
                    feed = last[key][0]
                    last[key] = feed, entries[-1][0]
                    times.update(((feed, entry[0]), now) for entry in entries)

    groups = [feeds[i : i + STREAMS_PER_READ] for i in range(0, len(feeds), STREAMS_PER_READ)]
    threads = [
        threading.Thread(target=read, args=(_newest(url, group),), daemon=True) for group in groups
    ]
    for thread in threads:
        thread.start()
    try:
        yield times
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def _newest(url: str, feeds: Sequence[str]) -> dict[bytes, tuple[str, bytes]]:
    """Return each feed and the ID of its newest answer, by the key of its answers."""
    found = {}
    with client(url, TIMEOUT) as connected:
        for feed in feeds:
            key = FeedKeys(feed).out
            newest: Any = connected.execute_command("XREVRANGE", key, "+", "-", "COUNT", 1)
            found[key.encode()] = feed, newest[0][0] if newest else b"0-0"
    return found
