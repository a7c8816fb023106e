"""The table of all feeds: the verdict on each, the worst first."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from workers.dashboard.reports import recent
from workers.dashboard.shown_feed import Choice, ShownFeed
from workers.dashboard.text import marked, rate, safe, seconds, sparkline, whole
from workers.reading.status import FeedStatus
from workers.reading.verdict import LEVELS, Verdict, summary


class FeedRow(NamedTuple):
    """A row of the table."""

    shown: ShownFeed
    status: FeedStatus
    verdict: Verdict


_COLUMNS: dict[str, tuple[str, Callable[[FeedRow], object]]] = {
    "verdict": ("verdict", lambda row: LEVELS.index(row.verdict.level)),
    "feed": ("feed", lambda row: row.status.feed),
    "rate": ("rate, entries / s", lambda row: -row.shown.rate),
    "lag": ("lag, entries", lambda row: (-row.status.waiting, -row.status.waiting_seconds)),
    "learned": ("examples learned", lambda row: -row.status.n),
}
"""Heading and sort key of each column."""

_CURVE = "accuracy, announced"
_LEFT = ("verdict", "feed", _CURVE)


def table(shown: Sequence[ShownFeed], choice: Choice) -> str:
    """Return the table as HTML, sorted by `choice.sort`; a narrow screen shows rows as cards."""
    by = choice.sort if choice.sort in _COLUMNS else "verdict"
    rows = [FeedRow(feed, feed.status, feed.verdict()) for feed in shown]
    rows.sort(key=lambda row: row.status.feed)
    rows.sort(key=_COLUMNS[by][1])  # type: ignore[arg-type]  # keys of one column have one type
    heads = "".join(_heading(name, title, by, choice) for name, (title, _) in _COLUMNS.items())
    body = "".join(_row(row, choice) for row in rows)
    # Explicit table roles: the style that shows rows as cards would otherwise remove them.
    return (
        f"<h1>{summary([row.verdict for row in rows])}</h1>"
        '<table class="feeds" role="table" aria-label="Feeds"><thead role="rowgroup">'
        f'<tr role="row">{heads}<th role="columnheader" class="left">{_CURVE}</th></tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table>'
    )


def _heading(name: str, title: str, by: str, choice: Choice) -> str:
    mark = " ▾" if name == by else ""
    kind = ' aria-sort="ascending"' if name == by else ""
    side = ' class="left"' if name in _LEFT else ""
    link = f'<a href="{choice.address(sort=name)}">{title}{mark}</a>'
    return f'<th role="columnheader"{side}{kind}>{link}</th>'


def _row(row: FeedRow, choice: Choice) -> str:
    status, figures = row.status, recent(list(row.shown.reports))
    link = choice.address(feed=status.feed)
    age = f", {seconds(status.waiting_seconds)}" if status.waiting_seconds >= 1 else ""
    cells = {
        "verdict": marked(row.verdict),
        "feed": f'<a href="{link}">{safe(status.feed, 64)}</a>',
        "rate, entries / s": rate(row.shown.rate),
        "lag, entries": waiting_text(status) + age,
        "examples learned": whole(status.n),
        _CURVE: sparkline(figures[:, 0].tolist(), figures[:, 2].tolist()),
    }
    line = "".join(_cell(name, cell) for name, cell in cells.items())
    return f'<tr role="row" class="is-{row.verdict.level}">{line}</tr>'


def waiting_text(status: FeedStatus) -> str:
    """Return the number of waiting entries, with a + if more may wait."""
    return whole(status.waiting) + "+" * status.waiting_is_at_least


def _cell(name: str, cell: str) -> str:
    side = ' class="left"' if name in _LEFT else ""
    return f'<td role="cell" data-name="{name}"{side}>{cell}</td>'
