"""Examples that come at a steady rate, spread over feeds in turn, and how long answers take."""

import threading
import time
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np

from scripts.bench.feed import Pairs, fields
from scripts.bench.processes import Measured, WorkerEnded
from scripts.command_line import tell
from workers.broker.client import TIMEOUT, client
from workers.feed.keys import FeedKeys

_WAIT_MS = 500
_TOGETHER = 64
"""Streams of answers in one read: Redis looks at each of them when one has something."""
_LAST_SECONDS = 60.0


def steady(
    url: str,
    process: Measured,
    feeds: Sequence[str],
    watched: Sequence[str],
    examples: Pairs,
    rate: float,
    seconds: float,
) -> dict[str, float]:
    """Push examples to the feeds in turn, evenly in time, whatever the answers take.

    The examples are sent again and again, `rate` a second over all feeds. Answers are waited for of
    those that are `watched`: to read the answers of all of them would take as much time as to make
    them.

    Returns
    -------
    dict
        Quantiles of the waits from before a push to after its answer; microseconds of processor
        time of the process for an example; by how much one was sent later than due, at most; how
        many were sent.

    Raises
    ------
    WorkerEnded
        If the process ends, or the last answer does not come within a minute.
    """
    tell(f"{len(set(feeds))} feeds, {rate:g} examples a second for {seconds:g} s")
    sent, at, count, late = dict[tuple[str, bytes], float](), time.perf_counter, 0, 0.0
    before = process.processor_seconds
    with _Answers(url, watched) as answers, client(url, TIMEOUT) as connected:
        turns, rows, keys = cycle(feeds), cycle(examples), {f: FeedKeys(f).input for f in feeds}
        watching, began = set(watched), at()
        while (due := began + count / rate) < began + seconds:
            time.sleep(max(0.0, due - at()))
            feed, row = next(turns), fields(next(rows))
            now = at()
            late = max(late, now - due)
            entry = connected.execute_command("XADD", keys[feed], "*", *row)
            if feed in watching:
                sent[feed, entry] = now
            count += 1
        deadline = time.monotonic() + _LAST_SECONDS
        while not sent.keys() <= answers.at.keys():
            process.check()
            if time.monotonic() > deadline:
                raise WorkerEnded(f"answers are missing: {process.said}")
            time.sleep(0.05)
    waits = [answers.at[key] - now for key, now in sent.items()]
    median, p90, p99 = (1e3 * np.percentile(waits, (50, 90, 99))).tolist()
    return {
        "median_ms": median,
        "p90_ms": p90,
        "p99_ms": p99,
        "processor_us": 1e6 * (process.processor_seconds - before) / count,
        "late_ms": 1e3 * late,
        "sent": count,
    }


class _Answers:
    """Threads that note when each answer can be read: `at` has it by feed and ID."""

    def __init__(self, url: str, feeds: Sequence[str]) -> None:
        self.at: dict[tuple[str, bytes], float] = {}
        self._url, self._is_over = url, False
        groups = [feeds[first : first + _TOGETHER] for first in range(0, len(feeds), _TOGETHER)]
        self._threads = [
            threading.Thread(target=self._read, args=(self._newest(group),), daemon=True)
            for group in groups
        ]

    def __enter__(self) -> "_Answers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        for thread in self._threads:
            thread.join()

    def _newest(self, feeds: Sequence[str]) -> dict[bytes, tuple[str, bytes]]:
        """Return each feed and the ID of its newest answer, by the key of its answers."""
        found = {}
        with client(self._url, TIMEOUT) as connected:
            for feed in feeds:
                key = FeedKeys(feed).out
                newest: Any = connected.execute_command("XREVRANGE", key, "+", "-", "COUNT", 1)
                found[key.encode()] = feed, newest[0][0] if newest else b"0-0"
        return found

    def _read(self, last: dict[bytes, tuple[str, bytes]]) -> None:
        with client(self._url, TIMEOUT) as connected:
            while not self._is_over:
                cursors = [cursor for _, cursor in last.values()]
                reply: Any = connected.execute_command(
                    "XREAD", "BLOCK", _WAIT_MS, "STREAMS", *last, *cursors
                )
                now = time.perf_counter()
                for key, entries in reply or ():
                    feed = last[key][0]
                    last[key] = feed, entries[-1][0]
                    self.at.update(((feed, entry[0]), now) for entry in entries)
