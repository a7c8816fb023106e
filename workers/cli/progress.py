"""Progress output: bars on a terminal, else plain lines; and the progress lines of a worker."""

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

from workers.cli.common import PROGRESS_SECONDS, note
from workers.text import counted, printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from online_svm.stream.alarm import Alarm
    from online_svm.stream.validity_report import LabelReport
    from workers.feed.position import Position
    from workers.session.answer import Outcome


Done = TypeVar("Done")

SHOWN_FEEDS = 3  # feeds named in a line: those with the most answers since the last line
_ALARM_FIELDS = (
    "n", "kind", "scope", "name", "monitor", "since", "announced", "estimate", "lower", "upper",
    "examples", "action",
)  # fmt: skip


@contextmanager
def doing(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show what is done while the block runs, if that takes longer than `PROGRESS_SECONDS`.

    It is a bar on a terminal, else lines on standard error. The callback takes the number that is
    done so far, of `total`; without it the lines have the seconds.
    """
    if sys.stderr.isatty():
        with _bar(total, what) as (bar, task):
            yield lambda count: bar.update(task, completed=count)
        return
    count, speed, ended = 0, _Speed(), Event()

    def tick() -> None:
        while not ended.wait(PROGRESS_SECONDS):
            note(f"{what}: {_done(count, total, speed)}" if count else f"{what} ({speed.elapsed})")

    def update(done: int) -> None:
        nonlocal count
        count = done

    thread = Thread(target=tick, name="progress", daemon=True)
    thread.start()
    try:
        yield update
    finally:
        ended.set()
        thread.join()


@contextmanager
def push_progress(total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a callback for the number of rows sent so far."""
    if not sys.stderr.isatty():
        yield plain_progress(total)
        return
    with _bar(total, "pushing") as (bar, task):
        speed = _Speed()
        yield lambda sent: bar.update(task, completed=sent, rate=f"{speed(sent):,.0f}/s")


@contextmanager
def _bar(total: int | None, text: str) -> "Iterator[tuple[Progress, TaskID]]":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn(text), BarColumn(), MofNCompleteColumn(), rate, Remaining())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar, bar.add_task("", total=total, rate="")


@contextmanager
def backtest_progress(
    names: Sequence[str], total: int
) -> Iterator[Callable[[Sequence[int]], None]]:
    """Yield a callback for the number of the `total` entries that each configuration answered."""
    if not sys.stderr.isatty():
        yield at_intervals(lambda counts: _running(names, total, counts))
        return
    with _bar(total, "{task.description}") as (bar, first):
        bar.update(first, description=names[0])
        tasks = [first, *(bar.add_task(name, total=total, rate="") for name in names[1:])]

        def update(counts: Sequence[int]) -> None:
            for task, count in zip(tasks, counts, strict=True):
                bar.update(task, completed=count)

        yield update


def _running(names: Sequence[str], total: int, counts: Sequence[int]) -> str:
    """Return the progress of the running configurations; "" between two of them."""
    if not any(counts):
        return f"of {total:,}: the first model is fitted"
    pairs = zip(names, counts, strict=True)
    running = [f"{name} {count:,}" for name, count in pairs if 0 < count < total]
    return f"of {total:,}: {', '.join(running)}" if running else ""


def at_intervals(line: Callable[[Done], str], at_once: bool = False) -> Callable[[Done], None]:
    """Return a callback that prints a line on standard error, at most every `PROGRESS_SECONDS`.

    An empty `line` is not printed. The first is due at once, or after an interval.
    """
    printed = float("-inf") if at_once else time.monotonic()

    def update(done: Done) -> None:
        nonlocal printed
        if time.monotonic() - printed < PROGRESS_SECONDS:
            return
        printed = time.monotonic()
        if text := line(done):
            print(text, file=sys.stderr, flush=True)

    return update


def plain_progress(total: int | None, done: str = "pushed") -> Callable[[int], None]:
    """Return a callback that prints at intervals the number of rows that are done."""
    speed = _Speed()
    return at_intervals(lambda count: _done(count, total, speed, f" {done}"))


def _done(count: int, total: int | None, speed: "_Speed", done: str = "") -> str:
    if total and count >= total:
        return f"all {total:,}{done}, finishing ({speed.elapsed})"
    rate = speed(count)
    left = f", {_duration((total - count) / rate)} left" if total and rate else ""
    return f"{count:,}{'' if total is None else f' of {total:,}'}{done}, {rate:,.0f}/s{left}"


class _Speed:
    """Rows a second since the beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def elapsed(self) -> str:
        return _duration(time.monotonic() - self._began)

    def __call__(self, count: int) -> float:
        return count / max(1e-3, time.monotonic() - self._began)


def _duration(seconds: float) -> str:
    """Return a duration in its largest fitting unit.

    Examples
    --------
    >>> _duration(-1), _duration(59), _duration(600), _duration(9000)
    ('0 s', '59 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{max(0.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def waiting_progress(mark: int, mark_bytes: int = 0) -> Callable[[int], None]:
    """Return a callback that prints the entries that a push waits for, and the high-water marks."""
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

    While one feed was answered, a line has its position and the validity of its answers. For more
    feeds it has the number of all answers, and the feeds with the most. A thread prints a line that
    is due while no outcome comes. If quiet, only alarms and the last line are printed.
    """

    def __init__(
        self,
        target: TextIO | None = None,
        every: float = PROGRESS_SECONDS,
        *,
        is_quiet: bool = False,
    ) -> None:
        self._target, self._every, self._is_quiet = target or sys.stderr, every, is_quiet
        self._printed = time.monotonic()  # time of the last line
        self._feeds: set[str] = set()
        self._answers: Counter[str] = Counter()  # by feed, since the last line
        self._total = self._rejected = 0
        self._first_seq = 0  # entries answered before the first outcome
        self._last: tuple[str, Position] | None = None  # feed and position of the last outcome
        self._validity: LabelReport | None = None
        self._lock, self._ended = Lock(), Event()
        self._thread: Thread | None = None  # started by the first outcome

    def __call__(self, feed: str, outcome: "Outcome") -> None:
        """Count an outcome, print its alarms, and print a line if one is due."""
        with self._lock:
            if self._last is None:
                self._first_seq = outcome.before.seq
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
            self._write_if_due()
        if self._thread is None:
            self._thread = Thread(target=self._tick, name="progress", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Print the last line, unless nothing was answered."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._last is not None:
            self._write(None)

    def _tick(self) -> None:
        while not self._ended.wait(self._every):
            with self._lock:
                self._write_if_due()

    def _write_if_due(self) -> None:
        """Print a line if anything was answered since the last one, and the interval is over."""
        elapsed = time.monotonic() - self._printed
        answers = self._answers.total()
        if answers and elapsed >= self._every:
            self._write(answers / elapsed)

    def _write(self, rate: float | None) -> None:
        """Print a line; None for the rate means the last line."""
        assert self._last is not None
        feed, position = self._last
        if len(self._feeds) == 1:
            self._write_one(feed, position, rate)
        else:
            self._write_many(self._answers.most_common(SHOWN_FEEDS), rate)
        self._printed = time.monotonic()
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
        # Unlike the other counts, which are stored with the feed, this one starts with the worker.
        since = " since this worker began" if self._first_seq else ""
        return f", {self._rejected:,} rejected{since} (online-svm tail {feed} --stream dlq)"


class LoggedProgress(WorkerProgress):
    """Logs the progress of a worker as events, with a field for each figure."""

    @override
    def _write_alarms(self, feed: str, payload: bytes) -> None:
        from workers.log import Logger

        for alarm in _alarms(payload):
            figures = {name: getattr(alarm, name) for name in _ALARM_FIELDS}
            Logger("online_svm.worker").warning("alarm", feed=feed, **figures, words=alarm.words)

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
