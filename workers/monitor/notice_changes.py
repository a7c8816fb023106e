"""The beginnings and ends of a feed's notices, one at a time, from a consumer group of `met`."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from workers.broker.feed_reader import FeedReader
from workers.reading.answers import message
from workers.reading.benefit import as_object
from workers.reading.notices import AnyNotice, NoticeKey, key_of, open_notices

GROUP = "osvm-notices"

_REPORTS_PER_SAVE = 100  # reports without a change, after which the position is stored


class NoticeStep(NamedTuple):
    """A notice that began or ended between two reports."""

    step: Literal["began", "ended"]
    entry: bytes  # ID of the later report
    number: int  # of the change, in that report
    notice: AnyNotice
    report: Mapping[str, Any]


class NoticeChanges:
    """Finds the changes of open notices; the position in `met` moves after the last of a report."""

    def __init__(self, reader: FeedReader) -> None:
        self._reader, self._group = reader, reader.group(reader.keys.met, GROUP)
        self.after = b"0-0"  # start of a new group
        self.reset()

    def reset(self) -> None:
        """Make `next` read the position again."""
        self._at: bytes | None = None
        self._open: dict[NoticeKey, AnyNotice] = {}
        self._left = deque[NoticeStep]()
        self._passed = 0

    def next(self) -> NoticeStep | None:
        """Return the next change, until it is `done`; None if there is none.

        After a WorkerError it is `reset`.
        """
        if self._left:
            return self._left[0]
        at, known = self._at, self._open
        self.reset()  # undone below unless Redis fails
        if at is None:
            if (at := self._position()) is None:
                return None
            before = self._reader.last_entry(self._reader.keys.met, at)
            known = _open_in({} if before is None else as_object(message(before)))
        for page in self._reader.pages(self._reader.keys.met, at):
            for entry in page:
                report, at = as_object(message(entry)), entry[0]
                self._passed += 1
                if "monitors" in report:
                    found = _open_in(report)
                    self._left = deque(_changes(known, found, at, report))
                    known = found
                if self._left:
                    self._at, self._open = at, known
                    return self._left[0]
        self._at, self._open = at, known
        if self._passed >= _REPORTS_PER_SAVE:
            self._save(at)
        return None

    def done(self) -> None:
        """Go on to the next change."""
        change = self._left.popleft()
        if not self._left:
            self._save(change.entry)

    def _save(self, at: bytes) -> None:
        self._group.move(at)
        self._passed = 0

    def _position(self) -> bytes | None:
        """Return the position, after creating the group unless it exists; None without reports."""
        if not self._reader.exists(self._reader.keys.met):
            return None
        self._group.create(self.after)
        info = self._group.info()
        assert info is not None
        return info.last_delivered


def _open_in(report: Mapping[str, Any]) -> dict[NoticeKey, AnyNotice]:
    return {key_of(notice): notice for notice in open_notices(report)}


def _changes(
    before: Mapping[NoticeKey, AnyNotice],
    now: Mapping[NoticeKey, AnyNotice],
    entry: bytes,
    report: Mapping[str, Any],
) -> list[NoticeStep]:
    """Return the changes from one report to the next: ends first."""
    found = [NoticeStep("ended", entry, 0, before[key], report) for key in before.keys() - now]
    found += [NoticeStep("began", entry, 0, now[key], report) for key in now.keys() - before]
    found.sort(key=lambda change: (change.step == "began", key_of(change.notice)))
    return [change._replace(number=number) for number, change in enumerate(found)]
