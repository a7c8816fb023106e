"""Examples that come at a steady rate, spread over feeds in turn, and how long answers take."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from scripts.bench.feed import Pairs, fields
from scripts.bench.processes import Measured, WorkerEnded
from workers.broker.client import TIMEOUT, client
from workers.feed.keys import FeedKeys

_WAIT_MS = 500
_TOGETHER = 64
"""Streams of answers in one read: Redis looks at each of them when one has something."""
_LAST_SECONDS = 60.0


@dataclass(slots=True)
class Load:
    """What came of a steady stream of examples.

    Attributes
    ----------
    seconds : list of float
        From before the push of an example to after the answer, of the feeds that were watched.
    sent : int
        Examples, of all feeds.
    late : float
        Seconds by which an example was sent later than it was due, at most.
    """

    seconds: list[float] = field(default_factory=list)
    sent: int = 0
    late: float = 0.0


def steady(
    url: str,
    process: Measured,
    feeds: Sequence[str],
    watched: Sequence[str],
    examples: Pairs,
    rate: float,
    seconds: float,
) -> Load:
    """Push examples to the feeds in turn, evenly in time, whatever the answers take.

    Parameters
    ----------
    url : str
    process : Measured
        Answers them.
    feeds : sequence of str
    watched : sequence of str
        Those whose answers are waited for: to read the answers of all of them would take as much
        time as to make them.
    examples : list of pairs
        Sent again and again.
    rate : float
        Examples a second, of all feeds together.
    seconds : float

    Raises
    ------
    WorkerEnded
        If the process ends, or the last answer does not come within a minute.
    """
    load, sent = Load(), dict[tuple[str, bytes], float]()
    with _Answers(url, watched) as answers, client(url, TIMEOUT) as connected:
        turns, rows, keys = cycle(feeds), cycle(examples), {f: FeedKeys(f).input for f in feeds}
        watching, began = set(watched), time.perf_counter()
        while (due := began + load.sent / rate) < began + seconds:
            time.sleep(max(0.0, due - time.perf_counter()))
            feed, row = next(turns), fields(next(rows))
            before = time.perf_counter()
            load.late = max(load.late, before - due)
            entry = connected.execute_command("XADD", keys[feed], "*", *row)
            if feed in watching:
                sent[feed, entry] = before
            load.sent += 1
        deadline = time.monotonic() + _LAST_SECONDS
        while not sent.keys() <= answers.at.keys():
            process.check()
            if time.monotonic() > deadline:
                raise WorkerEnded(f"answers are missing: {process.said}")
            time.sleep(0.05)
        load.seconds = [answers.at[key] - before for key, before in sent.items()]
    return load


class _Answers:
    """Threads that note when each answer can be read.

    Attributes
    ----------
    at : dict of (feed, ID) to float
        By `time.perf_counter`.
    """

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
