"""A past run in sentences, for a reader who looks at no plot."""

import math
from collections.abc import Iterator

from online_svm.stream.alarm import Alarm
from workers.dashboard.excerpt import Excerpt
from workers.dashboard.recent_cards import PartFigures, worst
from workers.dashboard.reports import Report, as_dict, as_list, cumulative, recent
from workers.plural import counted
from workers.printable import printable
from workers.reading.alarms import RaisedAlarm
from workers.reading.answers import number
from workers.reading.events import moment

TOLD = 5
"""Alarms that have a sentence of their own, and notes."""

_FAR = 3.0
"""Standard deviations from which a part is named: one of a thousand is off so far by chance."""

_MOST_WORDS = 400  # characters of what an alarm found
_SHOWN = 60  # characters of a label or a name


def sentences(past: Excerpt) -> list[str]:
    """Return the summary, a sentence an item, as plain text on one line each."""
    found = [
        *_verdict(past),
        *_span(past),
        *_accuracy(past),
        *_notes(past),
        *_alarms(past),
        *_parts(past),
    ]
    found += [*_costs(past), *_guarantee(past)]
    return [printable(text) for text in found]


def _verdict(past: Excerpt) -> Iterator[str]:
    """Yield the verdict at the end, in one item: the page of the report has it as its head."""
    found = past.trust()
    yield f"{found.sentence}. {found.advice}".strip()


def _span(past: Excerpt) -> Iterator[str]:
    reports = past.reports
    if not reports:
        yield f"Feed {past.feed} has answers of this time, but no validity report yet."
        return
    first, last = reports[0], reports[-1]
    yield (
        f"The reports of feed {past.feed} from {moment(first.time)} to {moment(last.time)} (UTC) "
        f"end with {counted(last.n, 'example')} learned, of which {last.scored:,} were scored."
    )


def _accuracy(past: Excerpt) -> Iterator[str]:
    if not past.reports:
        return
    every, last = cumulative(past.reports, "headline")[-1], recent(past.reports)[-1]
    if math.isnan(every[0]):
        yield "No answer was scored: none carried a probability and then got a label."
        return
    yield f"Over all scored examples {_beside(every[0], every[2])}."
    if not math.isnan(last[0]):
        yield f"Over the last ones {_beside(last[0], last[2])}."


def _beside(accuracy: float, announced: float) -> str:
    return f"{_percent(accuracy)} were right and {_percent(announced)} was announced"


def _percent(share: float) -> str:
    return "an unknown share" if math.isnan(share) else f"{100 * share:.1f} %"


def _notes(past: Excerpt) -> Iterator[str]:
    said = [event for event in past.events if event.is_note]
    for event in said[-TOLD:]:
        yield f"{event.writer[:_SHOWN]} noted at example {event.n:,.0f}: {event.detail}."


def _alarms(past: Excerpt) -> Iterator[str]:
    if not past.has_alarms:
        yield "An exported file does not tell of alarms: see the feed itself."
        return
    if not past.alarms:
        yield "No alarm was raised."
        return
    yield f"{counted(len(past.alarms), 'alarm')} {_were(len(past.alarms))} raised."
    yield from _incidents(past)
    for alarm in past.alarms[:TOLD]:
        yield alarm_sentence(alarm, past)
    rest = len(past.alarms) - TOLD
    if rest > 0:
        last = past.alarms[-1]
        yield f"{counted(rest, 'alarm')} followed, the last at {moment(last.time)}."


def _incidents(past: Excerpt) -> Iterator[str]:
    """Yield how many incidents the alarms are of, and how long the last one was open."""
    if not past.incidents:
        return
    last = past.incidents[-1]
    until = "and is open" if last.until is None else f"until example {last.until:,}"
    count = counted(len(past.incidents), "incident")
    yield (
        f"They are of {count}; the last one began at example {last.since:,} {until}: {last.cause}."
    )


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def alarm_sentence(raised: RaisedAlarm, past: Excerpt) -> str:
    """Return what an alarm said, and when."""
    alarm = raised.alarm
    text = f"At {moment(raised.time)}, example {alarm.n:,}: {alarm.words[:_MOST_WORDS]}"
    committed = past.committed.get(raised.entry)
    if committed is not None:
        text += f", committed at {moment(committed)}"
    return f"{text}{_class_figures(alarm, past)}."


def _class_figures(alarm: Alarm, past: Excerpt) -> str:
    """Return how often the class of an alarm came, by the first report that covers it."""
    report = next((r for r in past.reports if r.n >= alarm.n), None)
    if alarm.scope != "class" or report is None:
        return ""
    found = _class_of(report, alarm.name)
    if found is None:
        return ""
    came, said = (number(found.get(name)) for name in ("frequency", "probability"))
    return f"; it was announced at {said:.3f} and came at {came:.3f}"


def _class_of(report: Report, name: str | None) -> dict[str, object] | None:
    classes = as_list(as_dict(report.message.get("windowed")).get("classes"))
    return next((c for c in map(as_dict, classes) if str(c.get("label")) == name), None)


def _parts(past: Excerpt) -> Iterator[str]:
    off = worst(past.reports[-1])[:1] if past.reports else []
    for part in off:
        if abs(part.z) >= _FAR:
            yield _part(part)


def _part(part: PartFigures) -> str:
    return (
        f"Of the parts, {part.name[:_SHOWN]} is farthest off at the end: {_percent(part.happened)} "
        f"came true and {_percent(part.announced)} was announced, over {part.examples:,.0f} "
        "examples."
    )


def _costs(past: Excerpt) -> Iterator[str]:
    told = as_dict(past.reports[-1].message.get("costs")) if past.reports else {}
    own, by_label = number(told.get("mean")), number(told.get("by_label"))
    if not math.isnan(own):
        yield (
            f"The actions that answers named cost {own:.4g} an example, those of the most probable "
            f"label {by_label:.4g}."
        )


def _guarantee(past: Excerpt) -> Iterator[str]:
    last = next((a.message for a in reversed(past.answers) if "guarantee" in a.message), None)
    if last is None:
        return
    reason = last.get("reason")
    because = f": {str(reason)[:300]}" if reason else ""
    yield f"The last answer has the guarantee {str(last['guarantee'])[:_SHOWN]}{because}."
