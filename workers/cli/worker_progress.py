"""Progress output of a worker: one line for all of its feeds, at intervals, and one an alarm."""

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, TextIO

from typing_extensions import override

from workers.cli.common import EVERY
from workers.plural import counted
from workers.printable import printable

if TYPE_CHECKING:
    from online_svm.stream.alarm import Alarm
    from online_svm.stream.prediction import LabelReport
    from workers.feed.position import Position
    from workers.session.answer import Outcome

SHOWN = 3
"""Feeds that a line names: those with the most answers since the last one."""

_ALARM_FIELDS = (
    "n", "kind", "scope", "name", "monitor", "since", "estimate", "lower", "upper", "action",
)  # fmt: skip


class WorkerProgress:
    """Prints the progress of a worker and its alarms; call it with each committed outcome.

    Of a worker with one feed so far a line tells where the feed stands and how valid its answers
    are; of one with more, how much was answered in all, and where most of it. A thread of its own
    prints the line that is due when no outcome follows.

    Parameters
    ----------
    target : text file
    every : float
        Seconds between two lines, at least.
    is_quiet : bool
        Print alarms and what was done in all alone.
    """

    def __init__(
        self, target: TextIO | None = None, every: float = EVERY, *, is_quiet: bool = False
    ) -> None:
        self._target, self._every, self._is_quiet = target or sys.stderr, every, is_quiet
        self._told = time.monotonic()
        self._feeds: set[str] = set()
        self._answers: Counter[str] = Counter()  # since the last line
        self._total = self._rejected = 0
        self._began = 0  # where the first outcome began
        self._last: tuple[str, Position] | None = None  # of the last outcome
        self._validity: LabelReport | None = None
        self._lock, self._ticker = Lock(), _Ticker(self._tell_what_is_due, every)

    def __call__(self, feed: str, outcome: "Outcome") -> None:
        """Count an outcome, print its alarms, and print a line if one is due."""
        with self._lock:
            if self._last is None:
                self._began = outcome.before.seq
            self._feeds.add(feed)
            self._answers[feed] += len(outcome.ids)
            self._total += len(outcome.ids)
            self._rejected += len(outcome.dlq)
            self._last = feed, outcome.after
            for report in outcome.reports:
                if report.headline.predicted.accuracy is not None:
                    self._validity = report.headline.predicted
            for _, payload in outcome.alarms:
                self._write_alarms(feed, payload)
            if self._is_quiet:
                return
            self._tell_if_due()
        self._ticker.start()

    def close(self) -> None:
        """Print what was done, unless there was no input."""
        self._ticker.close()
        if self._last is not None:
            self._tell(None)

    def _tell_what_is_due(self) -> None:
        with self._lock:
            self._tell_if_due()

    def _tell_if_due(self) -> None:
        """Print a line if the last one is old, and no longer true."""
        elapsed = time.monotonic() - self._told
        answers = self._answers.total()
        if answers and elapsed >= self._every:
            self._tell(answers / elapsed)

    def _tell(self, rate: float | None) -> None:
        """Tell what was answered; without a rate, for the last time."""
        assert self._last is not None
        feed, position = self._last
        if len(self._feeds) == 1:
            self._write_one(feed, position, rate)
        else:
            self._write_many(self._answers.most_common(SHOWN), rate)
        self._told = time.monotonic()
        self._answers.clear()

    def _write_alarms(self, feed: str, payload: bytes) -> None:
        from workers.reading.alarms import alarm_line

        for alarm in _alarms(payload):
            print(printable(f"{feed}: alarm: {alarm_line(alarm)}"), file=self._target, flush=True)

    def _write_one(self, feed: str, at: "Position", rate: float | None) -> None:
        counts = f"{at.seq:,} answered, {at.n:,} learned{self._rejections(feed)}"
        note = ", stopped" if rate is None else f", {rate:,.0f}/s"
        validity, own = "", self._validity
        if own is not None:
            validity = (
                f"  accuracy {own.accuracy:.3f}, announced [{own.lower:.3f}, {own.upper:.3f}]"
            )
        print(f"{feed}: {counts}{note}{validity}", file=self._target, flush=True)

    def _write_many(self, most: list[tuple[str, int]], rate: float | None) -> None:
        rejected = f", {self._rejected:,} rejected" if self._rejected else ""
        note = ", stopped" if rate is None else f", {rate:,.0f}/s"
        named = "" if rate is None else f"  most: {', '.join(f'{f} {n:,}' for f, n in most)}"
        print(
            f"{counted(len(self._feeds), 'feed')}: {self._total:,} answered{rejected}{note}{named}",
            file=self._target,
            flush=True,
        )

    def _rejections(self, feed: str) -> str:
        """Return the number of rejected entries, and the command that lists them."""
        if not self._rejected:
            return ""
        # The other counts are those of the feed, which does not count rejected entries.
        since = " since this worker began" if self._began else ""
        return f", {self._rejected:,} rejected{since} (online-svm tail {feed} --stream dlq)"


class LoggedProgress(WorkerProgress):
    """Logs the progress of a worker as events, each figure a field of its own."""

    @override
    def _write_alarms(self, feed: str, payload: bytes) -> None:
        from workers.log import Logger

        for alarm in _alarms(payload):
            told = {name: getattr(alarm, name) for name in _ALARM_FIELDS} | {"words": alarm.words}
            Logger("online_svm.worker").warning("alarm", feed=feed, **told)

    @override
    def _write_one(self, feed: str, at: "Position", rate: float | None) -> None:
        figures: dict[str, object] = {"feed": feed, "answered": at.seq, "learned": at.n}
        validity = {} if self._validity is None else asdict(self._validity)
        self._log(figures, rate, validity)

    @override
    def _write_many(self, most: list[tuple[str, int]], rate: float | None) -> None:
        self._log({"feeds": len(self._feeds), "answered": self._total}, rate, {})

    def _log(self, figures: dict[str, object], rate: float | None, more: dict[str, object]) -> None:
        from workers.log import Logger

        if rate is not None:
            figures["answers_per_second"] = round(rate, 1)
        if self._rejected:
            figures["rejected"] = self._rejected
        Logger("online_svm.worker").info(
            "stopped" if rate is None else "progress", **figures, **more
        )


def _alarms(payload: bytes) -> "list[Alarm]":
    """Return the alarms of an entry."""
    import orjson

    from workers.reading.alarms import raised_alarms

    return [raised.alarm for raised in raised_alarms(b"0-0", orjson.loads(payload))]


class _Ticker:
    """Calls a function every so many seconds from `start` until `close`.

    Parameters
    ----------
    tick : callable
        Called in a thread of its own.
    every : float
        Seconds between two calls.
    """

    def __init__(self, tick: Callable[[], None], every: float) -> None:
        self._tick, self._every, self._ended = tick, every, Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="progress", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End; no call is under way afterwards."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            self._tick()
