"""A card of the page: a title, a sentence that explains it, and a plot or a table."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from bokeh.models import (
    Column,
    ColumnDataSource,
    DatetimeTickFormatter,
    Div,
    InlineStyleSheet,
    LabelSet,
    Legend,
    NumeralTickFormatter,
    Select,
    UIElement,
)
from bokeh.plotting import figure
from typing_extensions import override

from workers.dashboard.section import Section
from workers.dashboard.shown_feed import Axis, Excerpt
from workers.dashboard.text import BAND, HELP, NOTED, safe

ASSETS = Path(__file__).parent / "assets"
PARTS = (ASSETS / "parts.css").read_text("utf-8")
PLOTS = (ASSETS / "plots.css").read_text("utf-8")
_LEGEND = ":host .bk-label { color: var(--ink) !important; }"
_CONTROL = """:host { color: var(--ink); }
.bk-input, .bk-input option { background-color: var(--card); color: var(--ink);
  border-color: var(--line); }
select:not([multiple]).bk-input { appearance: auto; background-image: none; }"""

HEIGHT = 260  # pixels of a plot
COUNTS = 110  # pixels of the bars below the reliability diagram


def markup(text: str = "", **properties: object) -> Div:
    """Return a piece of HTML, without rendering of formulas: a label may hold dollar signs."""
    return Div(
        text=text, disable_math=True, stylesheets=[InlineStyleSheet(css=PARTS)],
        sizing_mode="stretch_width", **properties,
    )  # fmt: skip


class Card(ABC):
    """A part of the page about one feed; `root` is its Bokeh model."""

    title: str
    words: str  # an explanation with the units
    section: str  # anchor in docs/monitoring.md
    is_wide = False  # whether it fills a row of the grid
    is_of_flow = False  # whether it shows `Excerpt.flow`, which only the live page has

    def __init__(self, axis: Axis = "n", is_linked: bool = True) -> None:
        self.axis = axis
        link = f'<a href="{HELP}#{self.section}" target="_blank" rel="noopener">what it means</a>'
        heading = f"<h2>{self.title} {link * is_linked}</h2>"
        head = markup(f'{heading}<p class="soft">{self.words}</p>', css_classes=["card-head"])
        self._empty = markup(visible=False)
        self._body = self.body()
        style = {"min-width": "0", "max-width": "100%"}
        if self.is_wide:
            style["grid-column"] = "1 / -1"
        self.root = Column(
            children=[head, self._empty, *self._body], sizing_mode="stretch_width", styles=style
        )

    @abstractmethod
    def body(self) -> Sequence[UIElement]:
        """Return the elements under the heading."""

    @abstractmethod
    def fill(self, excerpt: Excerpt) -> str:
        """Show an excerpt; return "", or the reason if there is nothing to show."""

    def refresh(self, excerpt: Excerpt) -> None:
        """Show an excerpt, or the reason why there is nothing to show."""
        reason = self.fill(excerpt)
        text = f'<p class="empty">{safe(reason, 300)}</p>' if reason else ""
        if self._empty.text != text:
            self._empty.text = text
        self._empty.visible = bool(reason)
        for part in self._body:
            part.visible = not reason


class TextCard(Card):
    """A card of sentences and tables, which page, report and model card show alike."""

    @staticmethod
    @abstractmethod
    def sections(excerpt: Excerpt) -> Sequence[Section] | str:
        """Return what the card shows, or the reason if there is nothing to show."""

    @override
    def body(self) -> Sequence[UIElement]:
        self._text = markup()
        return [self._text]

    @override
    def fill(self, excerpt: Excerpt) -> str:
        found = self.sections(excerpt)
        text = "" if isinstance(found, str) else "".join(each.html() for each in found)
        if self._text.text != text:
            self._text.text = text
        return found if isinstance(found, str) else ""


def plot(axis: Axis | None, y_label: str, height: int = HEIGHT, **options: object) -> figure:
    """Return an empty plot; None for `axis` means another quantity than examples and time.

    Its colours come from the style sheet, so that they fit both themes.
    """
    drawn = figure(
        height=height, sizing_mode="stretch_width",
        x_axis_type="datetime" if axis == "time" else "linear", tools="xbox_zoom,reset,save",
        active_drag=None, min_border_right=12, stylesheets=[InlineStyleSheet(css=PLOTS)], **options,
    )  # fmt: skip
    drawn.toolbar.autohide = True
    drawn.toolbar.logo = None
    drawn.yaxis.axis_label = y_label
    for ruler in (*drawn.xaxis, *drawn.yaxis):
        ruler.axis_label_text_font_style = "normal"
        ruler.axis_label_text_font_size = ruler.major_label_text_font_size = "12px"
    if axis == "n":
        drawn.xaxis.axis_label = "examples learned"
        drawn.xaxis.formatter = NumeralTickFormatter(format="0,0")
        drawn.xaxis.ticker.desired_num_ticks = 5
    elif axis == "time":
        drawn.xaxis.axis_label = "time (UTC)"
        drawn.xaxis.formatter = DatetimeTickFormatter()
    return drawn


def band(drawn: figure, x: str, columns: ColumnDataSource) -> object:
    """Draw the band between the columns `lower` and `upper`."""
    return drawn.varea(x, "lower", "upper", source=columns, color=BAND, alpha=0.3)


def legend(drawn: figure, items: Sequence[tuple[str, object]]) -> None:
    """Add a legend of names and renderers above a plot, where it hides no data."""
    shown = Legend(
        items=[(name, [renderer]) for name, renderer in items], orientation="horizontal", ncols=2,
        label_text_font_size="12px", border_line_color=None, background_fill_alpha=0.0, padding=0,
        margin=2, spacing=6, click_policy="hide", stylesheets=[InlineStyleSheet(css=_LEGEND)],
    )  # fmt: skip
    drawn.add_layout(shown, "above")


def mark_notes(drawn: figure, notes: ColumnDataSource) -> None:
    """Draw a vertical line with its text for each note in the columns `x` and `text`."""
    drawn.vspan("x", source=notes, color=NOTED, width=2, line_dash="dotted")
    texts = LabelSet(
        x="x", y=8, y_units="screen", text="text", source=notes, angle=math.pi / 2, x_offset=-4,
        text_baseline="bottom", text_font_size="12px", text_color=NOTED,
    )  # fmt: skip
    drawn.add_layout(texts)


def choice_of(title: str, value: str, options: Sequence[tuple[str, str]]) -> Select:
    """Return a control with options, each a value and its text."""
    return Select(
        title=title, value=value, options=list(options), width=200, sizing_mode="fixed",
        stylesheets=[InlineStyleSheet(css=_CONTROL)],
    )  # fmt: skip


def source(*columns: str) -> ColumnDataSource:
    """Return an empty table of columns."""
    return ColumnDataSource({name: [] for name in columns})


def grid(min_width: str, gap: str = "1.5rem 1.25rem") -> Column:
    """Return a grid with columns of at least this width and this gap, as CSS lengths."""
    columns = f"repeat(auto-fit, minmax(min(100%, {min_width}), 1fr))"
    style = {"display": "grid", "grid-template-columns": columns, "gap": gap}
    return Column(children=[], sizing_mode="stretch_width", styles=style)
