"""The open notices of the newest report."""

from collections.abc import Mapping
from typing import Any

from online_svm.stream.notice import Notice
from workers.reading.benefit import as_object

MAX_NOTICES = 100  # that are read of a report


def open_notices(report: Mapping[str, Any] | None) -> tuple[Notice, ...]:
    """Return the open notices of a report, the oldest first; what is no notice is left out.

    Examples
    --------
    >>> found = {"n": 12900, "scope": "class", "name": "b", "direction": "high", "since": 12300}
    >>> shares = {"announced": 0.9, "happened": 0.85, "lower": 0.81, "upper": 0.884}
    >>> report = {"monitors": {"notices": [found | {"examples": 640} | shares, {"n": 3}]}}
    >>> [notice.words for notice in open_notices(report)]
    ['class b: announced 90 of 100, true were 85 (81 to 88), since example 12,300']
    """
    given = as_object(as_object(report).get("monitors")).get("notices")
    found = []
    for fields in given[:MAX_NOTICES] if isinstance(given, list) else ():
        try:
            notice = Notice.of(fields)
            notice.words  # noqa: B018 - raises if a number is a text
        except (AttributeError, LookupError, TypeError, ValueError):
            continue
        found.append(notice)
    return tuple(found)
