"""The model card of a feed: one page of facts from its streams, as Markdown and as HTML.

It follows the questions of Mitchell et al. (2019), "Model cards for model reporting". Nothing on it
is written by hand except notes: a note that begins with `purpose:` states what the feed is for.
"""

import html
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from online_svm.metrics.binomial_interval import proportion
from online_svm.version import __version__
from workers.dashboard.class_cards import (
    ACTION_COLUMNS,
    DETECTION_COLUMNS,
    action_rows,
    detection_row,
)
from workers.dashboard.class_figures import of_every_class
from workers.dashboard.handlers import asset
from workers.dashboard.monitor_cards import Test, tests_of
from workers.dashboard.reports import as_dict, as_list, windows
from workers.dashboard.shown_feed import Excerpt
from workers.reading.answers import number
from workers.reading.events import moment
from workers.reading.incidents import alarm_line
from workers.text import counted, printable

_MAX_ROWS = 20  # rows of a table
_MAX_CHARS = 800  # characters of a cell or an item
_PURPOSE = "purpose:"


class Section(NamedTuple):
    """A part of the card."""

    title: str
    items: list[str]
    columns: Sequence[str] = ()  # of a table below the items
    rows: Sequence[Sequence[str]] = ()


def model_card(past: Excerpt) -> list[Section]:
    """Return the sections of the card of a feed."""
    found = of_every_class(past.answers, _MAX_ROWS)
    actions = action_rows(past.last)
    detected = [detection_row(each) for each in found]
    about = f"{len(past.answers):,} newest answers of the period were read"
    return [
        Section("Verdict", [f"{past.trust().sentence}. {past.trust().advice}".strip()]),
        Section("Purpose", _purpose(past)),
        Section("Data seen", list(_data(past)), ("feature", "kind", "missing"), _features(past)),
        Section("Settings", list(_settings(past))),
        Section("Figures", list(_figures(past))),
        Section("Classes", [about if found else "Too few labelled answers."],
                [name.removeprefix("<") for name in DETECTION_COLUMNS], detected),
        Section("Slices", [] if (slices := _slices(past)) else ["None are named (slices)."],
                ("slice", "examples", "accuracy", "announced"), slices),
        Section("Decisions", [] if actions else ["No costs are set: the label is the decision."],
                [name.removeprefix("<") for name in ACTION_COLUMNS], actions),
        Section("Known limits", list(_limits(past))),
        Section("Alarms and what was done", list(_alarms(past))),
        Section("Digest", [f"SHA-256 {past.digest}" if past.digest else "Not in this source.",
                           f"Written by online-svm {__version__} from what the feed stores."]),
    ]  # fmt: skip


def _purpose(past: Excerpt) -> list[str]:
    notes = [event.detail for event in past.events if event.is_note]
    stated = [text for text in notes if text.lower().startswith(_PURPOSE)]
    if stated:
        return [stated[-1][len(_PURPOSE) :].strip()]
    return [f"Not recorded. A note records it: online-svm note {past.feed} 'purpose: ...'"]


def _data(past: Excerpt) -> Iterator[str]:
    if not past.reports:
        yield "No validity report yet."
        return
    first, last = past.reports[0], past.reports[-1]
    yield f"Reports from {moment(first.time)} to {moment(last.time)} (UTC)."
    yield f"{counted(last.n, 'example')} learned, {last.scored:,} of them scored after warm-up."
    counts = as_dict(last.part("labels").get("counts"))
    given = (f"{name} {value:,}" for name, value in counts.items() if isinstance(value, int))
    if text := ", ".join(given):
        yield f"Delayed labels: {text}."


def _features(past: Excerpt) -> list[list[str]]:
    given = past.last.part("features")
    return [
        [name, str(as_dict(each).get("kind")), _percent(number(as_dict(each).get("missing")))]
        for name, each in list(given.items())[:_MAX_ROWS]
    ]


def _settings(past: Excerpt) -> Iterator[str]:
    for group, values in past.settings.items():
        for name, value in as_dict(values).items():
            if value is not None:
                yield f"{group}.{name} = {json.dumps(value, ensure_ascii=False)}"
    if not past.settings:
        yield "Not in this source."


def _figures(past: Excerpt) -> Iterator[str]:
    overall = as_dict(windows(past.last).get("overall"))
    scored, accuracy = number(overall.get("scored")), number(overall.get("accuracy"))
    if not scored > 0 or not 0.0 <= accuracy <= 1.0:
        yield "Nothing is scored yet, or the reports have no window (metrics_window)."
        return
    share = proportion(round(accuracy * scored), int(scored))
    yield f"Accuracy {share} over the last {scored:,.0f}, announced " + _three(
        overall.get("probability")
    )
    yield f"Log loss {_three(overall.get('log_loss'))}, Brier {_three(overall.get('brier'))}"
    yield f"Calibration error {_three(overall.get('calibration_error'))} beyond chance"


def _slices(past: Excerpt) -> list[list[str]]:
    found = []
    given = as_dict(windows(past.last).get("slices"))
    for name, values in given.items():
        for each in map(as_dict, as_list(values)):
            scores = as_dict(each.get("scores"))
            scored, accuracy = number(scores.get("scored")), number(scores.get("accuracy"))
            if scored > 0 and 0.0 <= accuracy <= 1.0:
                value = "all others" if each.get("value") is None else str(each["value"])
                share = str(proportion(round(accuracy * scored), int(scored)))
                announced = _three(scores.get("probability"))
                found.append([f"{name} = {value}", f"{scored:,.0f}", share, announced])
    return found[:_MAX_ROWS]


def _limits(past: Excerpt) -> Iterator[str]:
    answers = [each.message for each in past.answers if "guarantee" in each.message]
    if answers:
        reason = answers[-1].get("reason")
        because = f": {reason}" if reason else ""
        yield f"Guarantee of the last answer: {answers[-1]['guarantee']}{because}"
    tests: list[Test] = tests_of(past.last)
    for test in tests:
        if test.lower == test.lower:
            part = f"{test.scope} {test.name}".strip()
            yield (
                f"{test.kind}, {part}: frequency less probability between "
                f"{test.lower:+.3f} and {test.upper:+.3f} since example {test.since:,.0f} (95 %)"
            )
    if not tests:
        yield "No monitors in this source."
    yield "Probabilities hold for examples like those learned; an alarm voids the guarantee."


def _alarms(past: Excerpt) -> Iterator[str]:
    if not past.has_alarms:
        yield "An exported file has no alarms."
        return
    if not past.incidents and not past.alarms:
        yield "No alarm was raised."
    for incident in past.incidents[-_MAX_ROWS:]:
        until = "open" if incident.until is None else f"ended at example {incident.until:,}"
        yield f"Incident since example {incident.since:,}, {until}: {incident.cause}"
    for raised in past.alarms[-_MAX_ROWS:]:
        done = {"report": "no other action", "refit": "refits from later examples"}
        action = done.get(raised.alarm.action, "a new model, no answers of the old one")
        yield f"{moment(raised.time)}: {alarm_line(raised.alarm)}; done: {action}"
    notes = [e for e in past.events if e.is_note and not e.detail.lower().startswith(_PURPOSE)]
    for event in notes[-_MAX_ROWS:]:
        yield f"{event.writer} noted at example {event.n:,.0f}: {event.detail}"


def _three(value: Any) -> str:
    found = number(value)
    return "unknown" if found != found else f"{found:.3f}"


def _percent(share: float) -> str:
    return "unknown" if share != share else f"{100 * share:.1f} %"


def as_markdown(title: str, sections: Sequence[Section]) -> str:
    """Return a card as Markdown, in which text from the feed has no effect as markup."""
    lines = [f"# {_escaped(title)}"]
    for section in sections:
        lines += ["", f"## {section.title}", ""]
        lines += [f"- {_escaped(text)}" for text in section.items]
        if section.rows:
            lines += [""] if section.items else []
            lines.append(_row(section.columns))
            lines.append("|" + "---|" * len(section.columns))
            lines += [_row(cells) for cells in section.rows]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#&~])", r"\\\1", printable(text)[:_MAX_CHARS])


def as_html(title: str, sections: Sequence[Section]) -> str:
    """Return a card as one HTML file without scripts."""
    style = f"<style>{asset('page.css')}{asset('card.css')}</style>"
    parts = [
        '<!DOCTYPE html>\n<html lang="en" data-theme="auto"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_safe(title)}</title>{style}</head><body><main><h1>{_safe(title)}</h1>"
    ]
    for section in sections:
        items = "".join(f"<li>{_safe(text)}</li>" for text in section.items)
        parts.append(f"<h2>{section.title}</h2>" + (f"<ul>{items}</ul>" if items else ""))
        if section.rows:
            head = "".join(f'<th scope="col">{_safe(name)}</th>' for name in section.columns)
            body = "".join(
                "<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in cells) + "</tr>"
                for cells in section.rows
            )
            parts.append(
                f'<div class="scroll" tabindex="0"><table><tr>{head}</tr>{body}</table></div>'
            )
    return "\n".join(parts) + "\n</main></body></html>\n"


def _safe(text: str) -> str:
    return html.escape(printable(text)[:_MAX_CHARS])
