"""The alarms of a feed, and what happened to its workers, as tables."""

from collections.abc import Sequence

from bokeh.models import UIElement

from workers.dashboard.card import Card, markup
from workers.dashboard.excerpt import Excerpt
from workers.dashboard.text import safe, whole
from workers.reading.alarms import RaisedAlarm
from workers.reading.events import Event, moment

ROWS = 10


class AlarmsCard(Card):
    """The last alarms and events."""

    title = "Alarms and events"
    words = (
        "An alarm is a sequential test that was rejected: after how many examples, and what was "
        "found. Events tell what happened "
        "to the workers of the feed, and what people said. Times are UTC; an alarm has that of the "
        "entry that raised it, and that of its commit where it is known."
    )
    section = "monitors"
    is_wide = True

    def body(self) -> Sequence[UIElement]:
        """Make the place of the tables."""
        self._tables = markup()
        return [self._tables]

    def fill(self, excerpt: Excerpt) -> str:
        """Write the tables."""
        if not excerpt.has_alarms:
            return "An exported file holds answers alone: no alarms, and no events."
        if not (excerpt.alarms or excerpt.events):
            return "No alarm was raised, and nothing happened to a worker, as far as is kept."
        text = _alarms(excerpt) + _events(excerpt.events)
        if self._tables.text != text:
            self._tables.text = text
        return ""


def _alarms(excerpt: Excerpt) -> str:
    alarms = excerpt.alarms
    if not alarms:
        return '<p class="good">No alarm was raised, as far as is kept.</p>'
    head = (
        '<tr><th class="left">entry of</th><th class="left">committed</th><th>example</th>'
        '<th class="left">what</th><th class="left">found</th><th class="left">done</th></tr>'
    )
    shown = reversed(alarms[-ROWS:])
    rows = "".join(_alarm(alarm, excerpt.committed.get(alarm.entry)) for alarm in shown)
    more = len(alarms) - ROWS
    rest = f'<p class="soft">{more:,} older alarms are kept.</p>' if more > 0 else ""
    return f'<div class="scroll"><table>{head}{rows}</table></div>{rest}'


def _alarm(raised: RaisedAlarm, committed: int | None) -> str:
    alarm = raised.alarm
    known = "–" if committed is None else moment(committed)
    return (
        f'<tr><td class="left">{moment(raised.time)}</td><td class="left">{known}</td>'
        f"<td>{whole(alarm.n)}</td>"
        f'<td class="text bad">{safe(alarm.kind, 20)}</td>'
        f'<td class="text">{safe(alarm.words, 400)}</td>'
        f'<td class="text">{safe(alarm.action, 20)}</td></tr>'
    )


def _events(events: Sequence[Event]) -> str:
    if not events:
        return ""
    head = (
        '<tr><th class="left">at</th><th class="left">event</th><th class="left">worker</th>'
        '<th class="left">detail</th></tr>'
    )
    rows = "".join(
        f'<tr><td class="left">{moment(event.time)}</td>'
        f'<td class="text">{safe(event.code, 30)}</td>'
        f'<td class="text">{safe(event.writer, 30)}</td>'
        f'<td class="text">{safe(event.words, 120)}</td></tr>'
        for event in reversed(events[-ROWS:])
    )
    return f'<div class="scroll"><table>{head}{rows}</table></div>'
