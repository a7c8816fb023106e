"""Progress output of a process of many feeds: one line for all of them."""

import sys
import time
from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, TextIO

from typing_extensions import override

from workers.cli.progress import EVERY, log_alarms, print_alarms
from workers.cli.ticker import Ticker
from workers.plural import counted

if TYPE_CHECKING:
    from workers.session.answer import Outcome

SHOWN = 3
"""Feeds that a line names: those with the most answers since the last one."""


class ManyProgress:
    """Prints the progress of many feeds and their alarms; call it with each committed outcome.

    A thread of its own prints the line that is due when no outcome follows.

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
        self._lock, self._ticker = Lock(), Ticker(self._tell_what_is_due, every)

    def __call__(self, feed: str, outcome: "Outcome") -> None:
        """Count an outcome, print its alarms, and print a line if one is due."""
        with self._lock:
            self._feeds.add(feed)
            self._answers[feed] += len(outcome.ids)
            self._total += len(outcome.ids)
            self._rejected += len(outcome.dlq)
            for _, payload in outcome.alarms:
                self._write_alarms(feed, payload)
            if self._is_quiet:
                return
            self._tell_if_due()
        self._ticker.start()

    def close(self) -> None:
        """Print what was done, unless there was no input."""
        self._ticker.close()
        if self._total:
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
        """Tell how much was answered; without a rate, for the last time."""
        self._write(self._answers.most_common(SHOWN), rate)
        self._told = time.monotonic()
        self._answers.clear()

    def _write_alarms(self, feed: str, payload: bytes) -> None:
        print_alarms(feed, payload, self._target)

    def _write(self, most: list[tuple[str, int]], rate: float | None) -> None:
        rejected = f", {self._rejected:,} rejected" if self._rejected else ""
        note = ", stopped" if rate is None else f", {rate:,.0f}/s"
        named = "" if rate is None else f"  most: {', '.join(f'{f} {n:,}' for f, n in most)}"
        print(
            f"{counted(len(self._feeds), 'feed')}: {self._total:,} answered{rejected}{note}{named}",
            file=self._target,
            flush=True,
        )


class LoggedProgress(ManyProgress):
    """Logs the progress of many feeds as events, each figure a field of its own."""

    @override
    def _write_alarms(self, feed: str, payload: bytes) -> None:
        log_alarms(feed, payload)

    @override
    def _write(self, most: list[tuple[str, int]], rate: float | None) -> None:
        import structlog

        figures: dict[str, float] = {"feeds": len(self._feeds), "answered": self._total}
        if rate is not None:
            figures["answers_per_second"] = round(rate, 1)
        if self._rejected:
            figures["rejected"] = self._rejected
        structlog.get_logger("online_svm.worker").info(
            "stopped" if rate is None else "progress", **figures
        )
