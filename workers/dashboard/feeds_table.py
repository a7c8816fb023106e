"""The table of all feeds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workers.dashboard.drawings import sparkline
from workers.dashboard.excerpt import Choice
from workers.dashboard.feed_view import FeedView
from workers.dashboard.reports import as_dict, as_list, recent
from workers.dashboard.text import probability, rate, safe, seconds, whole

STATES = (
    "cannot be read",
    "gone",
    "no worker",
    "not begun",
    "behind",
    "idle",
    "running",
    "loading",
)
"""States of a feed, the worst first."""

BEHIND = 10.0
"""Seconds of lag from which a feed is called behind."""


@dataclass(frozen=True, slots=True)
class FeedRow:
    """A line of the table."""

    feed: str
    state: str
    failure: str
    rate: float
    lag: int
    lag_is_at_least: bool
    behind: float
    guarantee: str
    reason: str
    accuracy: float
    announced: float
    curve: str
    n: int
    alarms: int
    open_alarms: int

    @property
    def gap(self) -> float:
        """Distance of accuracy from what was announced; -1 where it is not known."""
        gap = abs(self.accuracy - self.announced)
        return -1.0 if math.isnan(gap) else gap


def state_of(view: FeedView) -> str:
    """Return how a feed stands, in words."""
    sample = view.last_sample
    if view.problem:
        return "cannot be read"
    if not view.is_loaded:
        return "loading"
    if not view.exists:
        return "gone"
    if view.holder is None:
        return "no worker" if view.has_begun else "not begun"
    if sample and sample.behind > BEHIND:
        return "behind"
    return "running" if sample and sample.rate > 0 else "idle"


def row_of(view: FeedView) -> FeedRow:
    """Return the line of a feed."""
    figures = recent(list(view.reports))
    sample = view.last_sample
    newest = view.newest
    return FeedRow(
        feed=view.feed,
        state=state_of(view),
        failure=safe(view.failure, 200),
        rate=sample.rate if sample else 0.0,
        lag=sample.waiting if sample else 0,
        lag_is_at_least=view.waiting_is_at_least,
        behind=sample.behind if sample else 0.0,
        guarantee=safe(newest.get("guarantee")) if newest.get("guarantee") else "–",
        reason=safe(newest.get("reason") or "", 200),
        accuracy=float(figures[-1, 0]) if len(figures) else math.nan,
        announced=float(figures[-1, 2]) if len(figures) else math.nan,
        curve=sparkline(figures[:, 0].tolist(), figures[:, 2].tolist()),
        n=view.n,
        alarms=len(view.alarms),
        open_alarms=_open_alarms(view),
    )


def _open_alarms(view: FeedView) -> int:
    """Return the alarms that are open by the newest report, and those raised since then."""
    newest = view.reports[-1] if view.reports else None
    told = as_dict(newest.message.get("monitors")).get("open") if newest else []
    since = newest.n if newest else -1
    return len(as_list(told)) + sum(raised.alarm.n > since for raised in view.alarms)


_COLUMNS: dict[str, tuple[str, Callable[[FeedRow], object]]] = {
    "feed": ("feed", lambda row: row.feed),
    "state": ("state", lambda row: STATES.index(row.state)),
    "alarms": ("alarms<br>open, kept", lambda row: (-row.open_alarms, -row.alarms)),
    "accuracy": ("accuracy / announced<br>windowed", lambda row: -row.gap),
    "rate": ("rate<br>entries / s", lambda row: -row.rate),
    "lag": ("lag<br>entries, time", lambda row: (-row.lag, -row.behind)),
    "guarantee": ("guarantee", lambda row: row.guarantee),
    "learned": ("examples<br>learned", lambda row: -row.n),
}
"""Columns: their heading, and the order when the table is sorted by them."""


def table(views: Sequence[FeedView], choice: Choice) -> str:
    """Return the table as HTML, sorted as was asked."""
    by = choice.sort if choice.sort in _COLUMNS else "feed"
    rows = sorted(map(row_of, views), key=lambda row: row.feed)
    rows.sort(key=_COLUMNS[by][1])  # type: ignore[arg-type]  # each key compares with its own kind
    heads = "".join(_heading(name, title, by, choice) for name, (title, _) in _COLUMNS.items())
    body = "".join(_line(row, choice) for row in rows)
    return (
        f'<div class="scroll"><table><tr>{heads}<th class="left">accuracy, announced</th></tr>'
        f"{body}</table></div>"
    )


def _heading(name: str, title: str, by: str, choice: Choice) -> str:
    mark = " ▾" if name == by else ""
    kind = ' aria-sort="ascending"' if name == by else ""
    side = ' class="left"' if name in ("feed", "state", "guarantee") else ""
    return f'<th{side}{kind}><a href="{choice.address(sort=name)}">{title}{mark}</a></th>'


def _line(row: FeedRow, choice: Choice) -> str:
    link = choice.address(feed=row.feed)
    lag = whole(row.lag) + "+" * row.lag_is_at_least
    lag += f", {seconds(row.behind)}" if row.behind >= 1 else ""
    kind = "good" if row.state in ("running", "idle") else "bad" if row.state != "loading" else ""
    cells = (
        f'<a href="{link}">{safe(row.feed, 64)}</a>',
        f'<span class="{kind}" title="{row.failure}">{row.state}</span>',
        f'<span class="{"bad" * (row.open_alarms > 0)}">{row.open_alarms:,}, {row.alarms:,}</span>',
        f"{probability(row.accuracy)} / {probability(row.announced)}",
        rate(row.rate),
        lag,
        f'<span title="{row.reason}">{row.guarantee}</span>',
        whole(row.n),
        row.curve,
    )
    left = (0, 1, 6, 8)
    return "<tr>{}</tr>".format(
        "".join(
            f"<td{' class=left' if place in left else ''}>{cell}</td>"
            for place, cell in enumerate(cells)
        )
    )
