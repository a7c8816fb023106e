"""Classes and slices over the last scored examples, the worst first."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bokeh.models import UIElement

from workers.dashboard.card import Card, markup
from workers.dashboard.excerpt import Excerpt
from workers.dashboard.reports import Report, as_dict, as_list, number
from workers.dashboard.text import probability, safe, whole

ROWS = 12
_MOST = 2000


class PartFigures(NamedTuple):
    """A class or a slice.

    Attributes
    ----------
    name : str
    examples : float
        Of the window.
    happened, announced : float
        Share of examples (that have the class; that were answered right in the slice), and the
        mean probability announced for it.
    z : float
        Their difference in standard deviations, if each probability is right.
    """

    name: str
    examples: float
    happened: float
    announced: float
    z: float


class PartsCard(Card):
    """A table of the classes and slices."""

    title = "Classes and slices, worst first"
    words = (
        "Over the last scored examples. A class: how often it came, beside the mean probability "
        "announced for it. A slice: accuracy, beside what was announced. z is the difference in "
        "standard deviations; it is looked at again and again, so it is no test."
    )
    section = "slices"

    def body(self) -> Sequence[UIElement]:
        """Make the place of the table."""
        self._table = markup()
        return [self._table]

    def fill(self, excerpt: Excerpt) -> str:
        """Write the table."""
        found = worst(excerpt.reports[-1]) if excerpt.reports else []
        if not found:
            return (
                "No windowed figures in the reports yet. A feed has them if metrics_window is set, "
                "and slices if they are named: --slices country."
            )
        rows = "".join(
            f'<tr><td class="text">{safe(part.name, 40)}</td><td>{whole(part.examples)}</td>'
            f"<td>{probability(part.happened)}</td><td>{probability(part.announced)}</td>"
            f"<td>{_signed(part.happened - part.announced, 3)}</td>"
            f"<td>{_signed(part.z, 1)}</td></tr>"
            for part in found[:ROWS]
        )
        head = (
            '<tr><th class="left">part</th><th>examples</th><th>came true</th><th>announced</th>'
            "<th>difference</th><th>z</th></tr>"
        )
        self._table.text = f'<div class="scroll"><table>{head}{rows}</table></div>'
        return ""


def worst(report: Report) -> list[PartFigures]:
    """Return the classes and slices of a report, those farthest off first."""
    found = [*_classes(report), *_slices(report)]
    found.sort(key=lambda part: (-abs(part.z) if not math.isnan(part.z) else 0.0, part.name))
    return found


def _classes(report: Report) -> Iterator[PartFigures]:
    window = as_dict(report.message.get("windowed"))
    for given in map(as_dict, as_list(window.get("classes"))[:_MOST]):
        label = given.get("label")
        name = "class not seen yet" if label is None else f"class {label}"
        keys = ("examples", "frequency", "probability", "z")
        yield PartFigures(name[:200], *(number(given.get(key)) for key in keys))


def _slices(report: Report) -> Iterator[PartFigures]:
    window = as_dict(report.message.get("windowed"))
    for name, values in list(as_dict(window.get("slices")).items())[:_MOST]:
        for given in map(as_dict, as_list(values)[:_MOST]):
            value, scores = given.get("value"), as_dict(given.get("scores"))
            title = f"{name}: all other values" if value is None else f"{name} = {value}"
            keys = ("scored", "accuracy", "probability", "z")
            yield PartFigures(title[:200], *(number(scores.get(key)) for key in keys))


def _signed(value: float, places: int) -> str:
    return "–" if math.isnan(value) else f"{value:+.{places}f}"
