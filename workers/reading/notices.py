"""The open notices of the newest report."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from online_svm.stream.notice import FeatureNotice, Notice
from workers.reading.benefit import as_object

AnyNotice = Notice | FeatureNotice
NoticeKey = tuple[str, int]  # its code, and the examples learned when it opened
MAX_NOTICES = 100  # of each sort, that are read of a report


@dataclass(frozen=True, slots=True)
class SilencedNotice:
    """An open notice that a person silenced, with that person's note."""

    notice: AnyNotice
    by: str
    note: str

    @property
    def since(self) -> int:
        """Examples learned when the change began."""
        return self.notice.since

    @property
    def words(self) -> str:
        """The notice and the note in one sentence."""
        return self.words_since()

    def words_since(self, date: str = "") -> str:
        """Return `words` with the date of the example `since`, if it is known."""
        return f"{self.notice.words_since(date)}; silenced by {self.by}: {self.note}"


def key_of(notice: AnyNotice) -> NoticeKey:
    """Return what identifies a notice: one that ends and begins anew has another key."""
    return notice.code, notice.opened


def open_notices(report: Mapping[str, Any] | None) -> tuple[AnyNotice, ...]:
    """Return the open notices of a report, of features first; what is no notice is left out.

    Examples
    --------
    >>> found = {"n": 12900, "scope": "class", "name": "b", "direction": "high", "since": 12300}
    >>> shares = {"announced": 0.9, "happened": 0.85, "lower": 0.81, "upper": 0.884}
    >>> missing = {"since": 900, "feature": "age", "direction": "missing", "rank": 0.98}
    >>> given = {"notices": [found | {"examples": 640} | shares, {"n": 3}], "features": [missing]}
    >>> for notice in open_notices({"monitors": given}):
    ...     print(notice.words)
    feature age is missing more often than usual, since example 900
    class b: announced 90 of 100, true were 85 (81 to 88), in 640 since example 12,300
    """
    given = as_object(as_object(report).get("monitors"))
    return (*_read(given.get("features"), FeatureNotice), *_read(given.get("notices"), Notice))


def _read(given: Any, of: type[AnyNotice]) -> list[AnyNotice]:
    found = list[AnyNotice]()
    for fields in given[:MAX_NOTICES] if isinstance(given, list) else ():
        try:
            notice = of.of(fields)
            notice.words  # noqa: B018 - raises if a number is a text
        except (AttributeError, LookupError, TypeError, ValueError):
            continue
        found.append(notice)
    return found
