"""Progress output: a bar on a terminal, plain lines otherwise."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from threading import Lock
from typing import TYPE_CHECKING, TextIO

from typing_extensions import override

from workers.cli.ticker import Ticker
from workers.printable import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from online_svm.stream.prediction import LabelReport
    from workers.feed.position import Position
    from workers.session.answer import Outcome

EVERY = 2.0
"""Seconds between two plain lines."""

_ALARM_FIELDS = (
    "n", "kind", "scope", "name", "monitor", "since", "estimate", "lower", "upper", "action",
)  # fmt: skip


def print_alarms(feed: str, payload: bytes, target: TextIO) -> None:
    """Print a line for each alarm of one answer."""
    from workers.cli.stream_text import alarm_texts

    for text in alarm_texts(payload):
        print(printable(f"{feed}: alarm: {text}"), file=target, flush=True)


def log_alarms(feed: str, payload: bytes) -> None:
    """Log an event for each alarm of one answer."""
    import orjson
    import structlog

    from online_svm.stream.alarm import Alarm

    for alarm in orjson.loads(payload)["alarms"]:
        told = {name: alarm[name] for name in _ALARM_FIELDS}
        told["words"] = Alarm.of(alarm).words
        structlog.get_logger("online_svm.worker").warning("alarm", feed=feed, **told)


class WorkerProgress:
    """Prints the progress of a worker and its alarms; call it with each committed outcome.

    A thread of its own prints the line that is due when no outcome follows, so that the last line
    of a feed that waits is true.

    Parameters
    ----------
    feed : str
    target : text file
    every : float
        Seconds between two lines, at least.
    is_quiet : bool
        Print alarms and the final position alone.
    """

    def __init__(
        self,
        feed: str,
        target: TextIO | None = None,
        every: float = EVERY,
        *,
        is_quiet: bool = False,
    ) -> None:
        self._feed, self._target, self._every = feed, target or sys.stderr, every
        self._is_quiet = is_quiet
        self._told = time.monotonic()
        self._seq = self._began = -1
        self._rejected = 0
        self._last: Outcome | None = None
        self._validity: LabelReport | None = None
        self._lock, self._ticker = Lock(), Ticker(self._tell_what_is_due, every)

    def __call__(self, outcome: "Outcome") -> None:
        """Count an outcome, print its alarms, and print a line if one is due."""
        with self._lock:
            if self._seq < 0:
                self._seq = self._began = outcome.before.seq
            self._last = outcome
            self._rejected += len(outcome.dlq)
            for report in outcome.reports:
                if report.headline.predicted.accuracy is not None:
                    self._validity = report.headline.predicted
            for _, payload in outcome.alarms:
                self._write_alarms(payload)
            if self._is_quiet:
                return
            self._tell_if_due()
        self._ticker.start()

    def close(self) -> None:
        """Print the final position, unless there was no input."""
        self._ticker.close()
        if self._last is not None:
            self._tell(self._last, None)

    def _tell_what_is_due(self) -> None:
        with self._lock:
            self._tell_if_due()

    def _tell_if_due(self) -> None:
        """Print a line if the last one is old, and no longer true."""
        elapsed = time.monotonic() - self._told
        if self._last is not None and elapsed >= self._every and self._last.after.seq > self._seq:
            self._tell(self._last, (self._last.after.seq - self._seq) / elapsed)

    def _tell(self, outcome: "Outcome", rate: float | None) -> None:
        """Tell how far the feed is; without a rate, for the last time."""
        self._write(outcome.after, rate)
        self._told, self._seq = time.monotonic(), outcome.after.seq

    def _write_alarms(self, payload: bytes) -> None:
        print_alarms(self._feed, payload, self._target)

    def _write(self, at: "Position", rate: float | None) -> None:
        counts = f"{at.seq:,} answered, {at.n:,} learned{self._rejections()}"
        note = ", stopped" if rate is None else f", {rate:,.0f}/s"
        validity, own = "", self._validity
        if own is not None:
            validity = (
                f"  accuracy {own.accuracy:.3f}, announced [{own.lower:.3f}, {own.upper:.3f}]"
            )
        print(f"{self._feed}: {counts}{note}{validity}", file=self._target, flush=True)

    def _rejections(self) -> str:
        """Return the number of rejected entries, and the command that lists them."""
        if not self._rejected:
            return ""
        # The other counts are those of the feed, which does not count rejected entries.
        since = " since this worker began" if self._began else ""
        return f", {self._rejected:,} rejected{since} (online-svm tail {self._feed} --stream dlq)"


class LoggedProgress(WorkerProgress):
    """Logs the progress of a worker as events, each figure a field of its own."""

    @override
    def _write_alarms(self, payload: bytes) -> None:
        log_alarms(self._feed, payload)

    @override
    def _write(self, at: "Position", rate: float | None) -> None:
        import structlog

        figures: dict[str, float] = {"answered": at.seq, "learned": at.n}
        if rate is not None:
            figures["answers_per_second"] = round(rate, 1)
        if self._rejected:
            figures["rejected"] = self._rejected
        if self._validity is not None:
            figures |= asdict(self._validity)
        structlog.get_logger("online_svm.worker").info(
            "stopped" if rate is None else "progress", feed=self._feed, **figures
        )


@contextmanager
def push_progress(total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of rows sent so far."""
    if not sys.stderr.isatty():
        yield PlainProgress(total)
        return
    with _bar(total, "pushing") as (bar, task):
        yield lambda sent: bar.update(task, completed=sent)


@contextmanager
def _bar(total: int | None, text: str) -> "Iterator[tuple[Progress, TaskID]]":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn(text), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar, bar.add_task("", total=total)


@contextmanager
def backtest_progress(
    names: Sequence[str], total: int
) -> Iterator[Callable[[Sequence[int]], None]]:
    """Yield what to call with how many of `total` entries each configuration has answered."""
    if not sys.stderr.isatty():
        yield PlainBacktest(names, total)
        return
    with _bar(total, "{task.description}") as (bar, first):
        bar.update(first, description=names[0])
        tasks = [first, *(bar.add_task(name, total=total) for name in names[1:])]

        def tell(done: Sequence[int]) -> None:
            for task, count in zip(tasks, done, strict=True):
                bar.update(task, completed=count)

        yield tell


class PlainBacktest:
    """Tells every two seconds how far the configurations at work are.

    Parameters
    ----------
    names : sequence of str
    total : int
        Entries that each of them answers.
    """

    def __init__(self, names: Sequence[str], total: int) -> None:
        self._names, self._total = names, total
        self._told = time.monotonic()

    def __call__(self, done: Sequence[int]) -> None:
        """Print a line if one is due."""
        if time.monotonic() - self._told < EVERY:
            return
        self._told = time.monotonic()
        places = zip(self._names, done, strict=True)
        at_work = [f"{name} {count:,}" for name, count in places if 0 < count < self._total]
        if at_work:
            print(f"of {self._total:,}: {', '.join(at_work)}", file=sys.stderr, flush=True)


class PlainProgress:
    """Prints a line every two seconds; call it with the number done so far.

    Parameters
    ----------
    total : int, optional
        How many there are.
    done : str
        What is done to them.
    """

    def __init__(self, total: int | None, done: str = "pushed") -> None:
        self._of = ("" if total is None else f" of {total:,}") + f" {done}"
        self._told = time.monotonic()

    def __call__(self, sent: int) -> None:
        """Print a line if one is due."""
        if time.monotonic() - self._told >= EVERY:
            print(f"{sent:,}{self._of}", file=sys.stderr, flush=True)
            self._told = time.monotonic()


def waiting_progress(mark: int, mark_bytes: int = 0) -> Callable[[int], None]:
    """Return a function that prints, at intervals, how many entries a push waits for.

    Parameters
    ----------
    mark : int
        Entries at which the push began to wait; 0 for none.
    mark_bytes : int
        Bytes of them, in the same way.
    """
    marks = [f"{mark:,}"] * (mark > 0) + [f"{mark_bytes:,} bytes"] * (mark_bytes > 0)
    told = float("-inf")

    def tell(waiting: int) -> None:
        nonlocal told
        if time.monotonic() - told >= EVERY:
            print(
                f"waiting for the worker: {waiting:,} entries are beyond its cursor (high water "
                f"{' or '.join(marks)})",
                file=sys.stderr,
                flush=True,
            )
            told = time.monotonic()

    return tell
