"""Examples that come at a steady rate, spread over feeds in turn, and how long answers take."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from workers.broker.client import TIMEOUT, client
from workers.feed.keys import FeedKeys
from workers.lab.bench.feed import Pairs
from workers.lab.bench.feeds.copies import fields
from workers.lab.bench.processes import Measured, WorkerEnded

_WAIT_MS = 500
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
    """A thread that notes when each answer can be read.

    Attributes
    ----------
    at : dict of (feed, ID) to float
        By `time.perf_counter`.
    """

    def __init__(self, url: str, feeds: Sequence[str]) -> None:
        self.at: dict[tuple[str, bytes], float] = {}
        self._client: Any = client(url, TIMEOUT)
        self._feeds = {FeedKeys(feed).out.encode(): feed for feed in feeds}
        self._last = dict.fromkeys(self._feeds, b"$")
        self._is_over = False
        self._thread = threading.Thread(target=self._read, name="answers", daemon=True)

    def __enter__(self) -> "_Answers":
        for key in self._feeds:
            newest = self._client.execute_command("XREVRANGE", key, "+", "-", "COUNT", 1)
            self._last[key] = newest[0][0] if newest else b"0-0"
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()
        self._client.close()

    def _read(self) -> None:
        while not self._is_over:
            reply = self._client.execute_command(
                "XREAD", "BLOCK", _WAIT_MS, "STREAMS", *self._last.keys(), *self._last.values()
            )
            now = time.perf_counter()
            for key, entries in reply or ():
                self._last[key] = entries[-1][0]
                self.at.update(((self._feeds[key], entry[0]), now) for entry in entries)
