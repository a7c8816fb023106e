"""Progress output: a bar on a terminal, plain lines otherwise; a line for all feeds of a worker."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, TextIO, TypeVar

import orjson
from typing_extensions import override

from workers.cli.common import PROGRESS_SECONDS
from workers.text import counted, printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from online_svm.stream.alarm import Alarm
    from online_svm.stream.validity_report import LabelReport
    from workers.feed.position import Position
    from workers.session.answer import Outcome


Done = TypeVar("Done")

SHOWN_FEEDS = 3  # feeds that a line names: those with the most answers since the last one
_ALARM_FIELDS = (
    "n", "kind", "scope", "name", "monitor", "since", "estimate", "lower", "upper", "action",
)  # fmt: skip


@contextmanager
def push_progress(total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of rows sent so far."""
    if not sys.stderr.isatty():
        yield plain_progress(total)
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
        yield at_intervals(lambda done: _at_work(names, total, done))
        return
    with _bar(total, "{task.description}") as (bar, first):
        bar.update(first, description=names[0])
        tasks = [first, *(bar.add_task(name, total=total) for name in names[1:])]

        def tell(done: Sequence[int]) -> None:
            for task, count in zip(tasks, done, strict=True):
                bar.update(task, completed=count)

        yield tell


def _at_work(names: Sequence[str], total: int, done: Sequence[int]) -> str:
    """Return how far the configurations at work are; an empty text if none is."""
    places = zip(names, done, strict=True)
    at_work = [f"{name} {count:,}" for name, count in places if 0 < count < total]
    return f"of {total:,}: {', '.join(at_work)}" if at_work else ""


def at_intervals(line: Callable[[Done], str], at_once: bool = False) -> Callable[[Done], None]:
    """Return a function that prints a line on standard error, at most every `PROGRESS_SECONDS`.

    It prints nothing where `line` returns an empty text; `at_once` prints the first line at once.
    """
    told = float("-inf") if at_once else time.monotonic()

    def tell(done: Done) -> None:
        nonlocal told
        if time.monotonic() - told < PROGRESS_SECONDS:
            return
        told = time.monotonic()
        if text := line(done):
            print(text, file=sys.stderr, flush=True)

    return tell


def plain_progress(total: int | None, done: str = "pushed") -> Callable[[int], None]:
    """Return what tells at intervals how many of so many are done."""
    of = ("" if total is None else f" of {total:,}") + f" {done}"
    return at_intervals(lambda count: f"{count:,}{of}")


def waiting_progress(mark: int, mark_bytes: int = 0) -> Callable[[int], None]:
    """Return a function that tells how many entries a push waits for, and the marks it waits at."""
    marks = [f"{mark:,}"] * (mark > 0) + [f"{mark_bytes:,} bytes"] * (mark_bytes > 0)
    return at_intervals(
        lambda waiting: (
            f"waiting for the worker: {waiting:,} entries are beyond its cursor (high "
            f"water {' or '.join(marks)})"
        ),
        at_once=True,
    )


class WorkerProgress:
    """Prints the progress of a worker and its alarms; call it with each committed outcome.

    Of a worker with one feed so far a line tells where the feed stands and how valid its answers
    are; of one with more, how much was answered in all, and where most of it. A thread prints the
    line that is due when no outcome follows. If quiet, only alarms and the last line are printed.
    """

    def __init__(
        self,
        target: TextIO | None = None,
        every: float = PROGRESS_SECONDS,
        *,
        is_quiet: bool = False,
    ) -> None:
        self._target, self._every, self._is_quiet = target or sys.stderr, every, is_quiet
        self._told = time.monotonic()
        self._feeds: set[str] = set()
        self._answers: Counter[str] = Counter()  # since the last line
        self._total = self._rejected = 0
        self._began = 0  # where the first outcome began
        self._last: tuple[str, Position] | None = None  # of the last outcome
        self._validity: LabelReport | None = None
        self._lock, self._ended = Lock(), Event()
        self._thread: Thread | None = None  # begun by the first outcome

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
        if self._thread is None:
            self._thread = Thread(target=self._tick, name="progress", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Print what was done, unless there was no input."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._last is not None:
            self._tell(None)

    def _tick(self) -> None:
        while not self._ended.wait(self._every):
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
            self._write_many(self._answers.most_common(SHOWN_FEEDS), rate)
        self._told = time.monotonic()
        self._answers.clear()

    def _write_alarms(self, feed: str, payload: bytes) -> None:
        from workers.reading.incidents import alarm_line

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
        # The feed has the other counts; it does not count rejected entries.
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
    from workers.reading.incidents import raised_alarms

    return [raised.alarm for raised in raised_alarms(b"0-0", orjson.loads(payload))]
