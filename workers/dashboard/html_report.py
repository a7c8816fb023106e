"""The report of a past run: a summary, and one HTML file with all its scripts, styles and data."""

import math
from collections.abc import Iterator

from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.models import Column
from bokeh.resources import Resources

from workers.dashboard.answer_cards import worst
from workers.dashboard.card import grid, markup
from workers.dashboard.handlers import asset, template
from workers.dashboard.page import CARDS
from workers.dashboard.reports import as_dict, as_list, cumulative, recent, windows
from workers.dashboard.shown_feed import Excerpt
from workers.dashboard.text import banner, safe
from workers.reading.answers import number
from workers.reading.events import moment
from workers.reading.given_score import score_text
from workers.reading.incidents import RaisedAlarm
from workers.text import counted, printable, promise_text

MAX_SENTENCES = 5  # alarms, and notes, that get a sentence each
_FAR_Z = 3.0  # |z| from which a part is named: chance exceeds it for three of a thousand parts

_MAX_FINDING = 400  # characters of the finding of an alarm
_MAX_NAME = 60  # characters of a label or a name
_MAX_SENTENCE = 1000  # characters


def html_report(past: Excerpt) -> str:
    """Return the report of a past run as HTML."""
    cards = [kind(past.axis, is_linked=False) for kind in CARDS if not kind.is_of_flow]
    for card in cards:
        card.refresh(past)
    place = grid("28rem")
    place.children = [card.root for card in cards]
    items = "".join(f"<li>{safe(text, _MAX_SENTENCE)}</li>" for text in sentences(past)[1:])
    head = markup(
        f"<h1>{safe(past.feed, 64)}</h1>{banner(past.trust())}<h2>Summary</h2><ul>{items}</ul>"
        '<p class="soft">docs/monitoring.md of online-svm says what each figure means.</p>'
    )
    document = Document()
    document.add_root(Column(children=[head, place], sizing_mode="stretch_width"))
    text: str = file_html(
        document,
        Resources(mode="inline"),
        title=f"{past.feed} - online-svm report",
        template=template(),
        template_variables={
            "links": [], "theme": "auto", "script": "", "style": asset("page.css"),
        },
        suppress_callback_warning=True,
    )  # fmt: skip
    return text


def sentences(past: Excerpt) -> list[str]:
    """Return the summary as plain text, a line an item; the first item is the verdict."""
    parts = (
        _verdict, _span, _accuracy, _score, _notes, _alarms, _parts, _costs, _promise, _budget,
        _guarantee,
    )  # fmt: skip
    return [printable(text) for part in parts for text in part(past)]


def _verdict(past: Excerpt) -> Iterator[str]:
    verdict = past.trust()
    yield f"{verdict.sentence}. {verdict.advice}".strip()


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
    overall, last = cumulative(past.reports, "headline")[-1], recent(past.reports)[-1]
    if math.isnan(overall[0]):
        yield "No answer was scored: none carried a probability and then got a label."
        return
    yield f"Over all scored examples {_compared(overall[0], overall[2])}."
    if not math.isnan(last[0]):
        yield f"Over the last ones {_compared(last[0], last[2])}."


def _score(past: Excerpt) -> Iterator[str]:
    text = score_text(past.last.message)
    if text is not None:
        yield f"The given score: {text}."


def _compared(accuracy: float, announced: float) -> str:
    return f"{_percent(accuracy)} were right and {_percent(announced)} was announced"


def _percent(share: float) -> str:
    return "an unknown share" if math.isnan(share) else f"{100 * share:.1f} %"


def _notes(past: Excerpt) -> Iterator[str]:
    notes = [event for event in past.events if event.is_note]
    for event in notes[-MAX_SENTENCES:]:
        yield f"{event.writer[:_MAX_NAME]} noted at example {event.n:,.0f}: {event.detail}."


def _alarms(past: Excerpt) -> Iterator[str]:
    if not past.has_alarms:
        yield "An exported file does not tell of alarms: see the feed itself."
        return
    if not past.alarms:
        yield "No alarm was raised."
        return
    count = len(past.alarms)
    yield f"{counted(count, 'alarm')} {'was' if count == 1 else 'were'} raised."
    yield from _incidents(past)
    for alarm in past.alarms[:MAX_SENTENCES]:
        yield _alarm(alarm, past)
    rest = count - MAX_SENTENCES
    if rest > 0:
        last = past.alarms[-1]
        yield f"{counted(rest, 'alarm')} followed, the last at {moment(last.time)}."


def _incidents(past: Excerpt) -> Iterator[str]:
    if not past.incidents:
        return
    last = past.incidents[-1]
    until = "and is open" if last.until is None else f"until example {last.until:,}"
    count = counted(len(past.incidents), "incident")
    yield (
        f"They are of {count}; the last one began at example {last.since:,} {until}: {last.cause}."
    )


def _alarm(raised: RaisedAlarm, past: Excerpt) -> str:
    alarm = raised.alarm
    text = f"At {moment(raised.time)}, example {alarm.n:,}: {alarm.words[:_MAX_FINDING]}"
    committed = past.committed.get(raised.entry)
    if committed is not None:
        text += f", committed at {moment(committed)}"
    return f"{text}{_class_figures(raised, past)}."


def _class_figures(raised: RaisedAlarm, past: Excerpt) -> str:
    """Return the frequency and probability of an alarm's class, by the first report after it."""
    alarm = raised.alarm
    report = next((r for r in past.reports if r.n >= alarm.n), None)
    if alarm.scope not in ("class", "labels") or report is None:
        return ""
    classes = map(as_dict, as_list(windows(report).get("classes")))
    found = next((each for each in classes if str(each.get("label")) == alarm.name), None)
    if found is None:
        return ""
    frequency, announced = (number(found.get(name)) for name in ("frequency", "probability"))
    return f"; it was announced at {announced:.3f} and came at {frequency:.3f}"


def _parts(past: Excerpt) -> Iterator[str]:
    for part in worst(past.last)[:1]:
        if abs(part.z) >= _FAR_Z:
            yield (
                f"Of the parts, {part.name[:_MAX_NAME]} is farthest off at the end: "
                f"{_percent(part.happened)} came true and {_percent(part.announced)} was "
                f"announced, over {part.examples:,.0f} examples."
            )


def _costs(past: Excerpt) -> Iterator[str]:
    costs = past.last.part("costs")
    mean, by_label = number(costs.get("mean")), number(costs.get("by_label"))
    if not math.isnan(mean):
        yield (
            f"The actions that answers named cost {mean:.4g} an example, those of the most "
            f"probable label {by_label:.4g}."
        )


def _budget(past: Excerpt) -> Iterator[str]:
    budget = past.last.part("budget")
    labelled, missing = number(budget.get("labelled")), number(budget.get("missing"))
    if not math.isnan(labelled):
        yield (
            f"Figures are weighted to hold for all examples: they rest on {labelled:,.0f} labels "
            f"that were wanted by chance; {missing:,.0f} wanted ones did not come."
        )


def _promise(past: Excerpt) -> Iterator[str]:
    promise = past.last.part("promise")
    if promise:
        yield f"The promised error rate: {promise_text(promise)}."


def _guarantee(past: Excerpt) -> Iterator[str]:
    last = next((a.message for a in reversed(past.answers) if "guarantee" in a.message), None)
    if last is None:
        return
    reason = last.get("reason")
    because = f": {str(reason)[:300].rstrip('.')}" if reason else ""
    yield f"The last answer has the guarantee {str(last['guarantee'])[:_MAX_NAME]}{because}."
