"""The table of all feeds: the verdict on each, the worst first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workers.dashboard.drawings import sparkline
from workers.dashboard.excerpt import Choice
from workers.dashboard.feed_view import FeedView
from workers.dashboard.reports import recent
from workers.dashboard.text import rate, safe, seconds, whole
from workers.dashboard.verdicts import marked
from workers.reading.verdict import LEVELS, Verdict, summary


@dataclass(frozen=True, slots=True)
class FeedRow:
    """A line of the table."""

    feed: str
    verdict: Verdict
    rate: float
    lag: int
    lag_is_at_least: bool
    behind: float
    curve: str
    n: int


def row_of(view: FeedView) -> FeedRow:
    """Return the line of a feed."""
    figures = recent(list(view.reports))
    sample = view.last_sample
    return FeedRow(
        feed=view.feed,
        verdict=view.verdict(),
        rate=sample.rate if sample else 0.0,
        lag=sample.waiting if sample else 0,
        lag_is_at_least=view.waiting_is_at_least,
        behind=sample.behind if sample else 0.0,
        curve=sparkline(figures[:, 0].tolist(), figures[:, 2].tolist()),
        n=view.n,
    )


_COLUMNS: dict[str, tuple[str, Callable[[FeedRow], object]]] = {
    "verdict": ("verdict", lambda row: LEVELS.index(row.verdict.level)),
    "feed": ("feed", lambda row: row.feed),
    "rate": ("rate, entries / s", lambda row: -row.rate),
    "lag": ("lag, entries", lambda row: (-row.lag, -row.behind)),
    "learned": ("examples learned", lambda row: -row.n),
}
"""Columns: their heading, and the order when the table is sorted by them."""

_CURVE = "accuracy, announced"
_LEFT = ("verdict", "feed", _CURVE)


def table(views: Sequence[FeedView], choice: Choice) -> str:
    """Return the table as HTML, sorted as was asked; on a narrow screen each line is a card."""
    by = choice.sort if choice.sort in _COLUMNS else "verdict"
    rows = sorted(map(row_of, views), key=lambda row: row.feed)
    rows.sort(key=_COLUMNS[by][1])  # type: ignore[arg-type]  # each key compares with its own kind
    heads = "".join(_heading(name, title, by, choice) for name, (title, _) in _COLUMNS.items())
    body = "".join(_line(row, choice) for row in rows)
    # The roles are those that a table has; a style that shows lines as cards would take them away.
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


def _line(row: FeedRow, choice: Choice) -> str:
    link = choice.address(feed=row.feed)
    lag = whole(row.lag) + "+" * row.lag_is_at_least
    lag += f", {seconds(row.behind)}" if row.behind >= 1 else ""
    cells = {
        "verdict": marked(row.verdict),
        "feed": f'<a href="{link}">{safe(row.feed, 64)}</a>',
        "rate, entries / s": rate(row.rate),
        "lag, entries": lag,
        "examples learned": whole(row.n),
        _CURVE: row.curve,
    }
    told = "".join(_cell(name, cell) for name, cell in cells.items())
    return f'<tr role="row" class="is-{row.verdict.level}">{told}</tr>'


def _cell(name: str, cell: str) -> str:
    side = ' class="left"' if name in _LEFT else ""
    return f'<td role="cell" data-name="{name}"{side}>{cell}</td>'
