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

from workers.dashboard.excerpt import Axis, Excerpt
from workers.dashboard.text import HELP, safe

# Okabe and Ito (2008), "Color Universal Design": told apart with any colour vision, on white and on
# black. A colour is never the only sign: lines differ in dash or width too, and states are words.
ACCURACY = "#D55E00"  # vermillion
ANNOUNCED = "#0072B2"  # blue
BAND = "#56B4E9"  # sky blue
OTHER = "#009E73"  # bluish green
ALARM = "#CC79A7"  # reddish purple
NOTED = "#7D7D7D"  # grey, with a text beside it
BAND_ALPHA = 0.3

ASSETS = Path(__file__).parent / "assets"
PARTS = (ASSETS / "parts.css").read_text("utf-8")
_LEGEND = ":host .bk-label { color: var(--ink) !important; }"
_CONTROL = """:host { color: var(--ink); }
.bk-input, .bk-input option { background-color: var(--card); color: var(--ink);
  border-color: var(--line); }"""
TABS_SCRIPT = (ASSETS / "tabs.js").read_text("utf-8")
PLOTS = (ASSETS / "plots.css").read_text("utf-8")

HEIGHT = 260  # pixels of a plot
COUNTS = 110  # pixels of the bars below the reliability diagram


def markup(text: str = "", **properties: object) -> Div:
    """Return a piece of HTML. Formulas are not rendered in it: a label may hold dollar signs."""
    return Div(
        text=text,
        disable_math=True,
        stylesheets=[InlineStyleSheet(css=PARTS)],
        sizing_mode="stretch_width",
        **properties,
    )


class Card(ABC):
    """A part of the page about one feed.

    Attributes
    ----------
    title, words, section : str
        The heading, one sentence with the units, and the section of docs/monitoring.md.
    root : bokeh.models.Column
        What is shown.
    """

    title: str
    words: str
    section: str
    is_wide = False
    is_of_samples = False

    def __init__(self, axis: Axis = "n", is_linked: bool = True) -> None:
        self.axis, self._is_linked = axis, is_linked
        self._head = markup(self._heading(), css_classes=["card-head"])
        self._empty = markup(visible=False)
        self._body = self.body()
        style = {"min-width": "0", "max-width": "100%"}
        if self.is_wide:
            style["grid-column"] = "1 / -1"
        self.root = Column(
            children=[self._head, self._empty, *self._body],
            sizing_mode="stretch_width",
            styles=style,
        )

    def _heading(self) -> str:
        link = f'<a href="{HELP}#{self.section}" target="_blank" rel="noopener">what it means</a>'
        if not self._is_linked:
            link = ""
        return f'<h2>{self.title} {link}</h2><p class="soft">{self.words}</p>'

    @abstractmethod
    def body(self) -> Sequence[UIElement]:
        """Make and return what is under the heading."""

    @abstractmethod
    def fill(self, excerpt: Excerpt) -> str:
        """Show an excerpt; return why there is nothing to show, or an empty text."""

    def refresh(self, excerpt: Excerpt) -> None:
        """Show an excerpt, or why there is nothing to show."""
        why = self.fill(excerpt)
        text = f'<p class="empty">{safe(why, 300)}</p>' if why else ""
        if self._empty.text != text:
            self._empty.text = text
        self._empty.visible = bool(why)
        for part in self._body:
            part.visible = not why


class TextCard(Card):
    """A card of text and tables; its `fill` ends with `show`."""

    @override
    def body(self) -> Sequence[UIElement]:
        """Make the place of the text."""
        self._text = markup()
        return [self._text]

    def show(self, text: str) -> str:
        """Show HTML; return the empty text: there is something to show."""
        if self._text.text != text:
            self._text.text = text
        return ""


def plot(axis: Axis | None, y_label: str, height: int = HEIGHT, **options: object) -> figure:
    """Return an empty plot. Its colours come from the style sheet, so that both themes fit.

    Parameters
    ----------
    axis : "n", "time" or None
        What runs along; None for a plot of its own.
    y_label : str
        With the unit.
    """
    drawn = figure(
        height=height,
        sizing_mode="stretch_width",
        x_axis_type="datetime" if axis == "time" else "linear",
        tools="xbox_zoom,reset,save",
        active_drag=None,
        min_border_right=12,
        stylesheets=[InlineStyleSheet(css=PLOTS)],
        **options,
    )
    drawn.toolbar.autohide = True
    drawn.toolbar.logo = None
    drawn.yaxis.axis_label = y_label
    for one in (*drawn.xaxis, *drawn.yaxis):
        one.axis_label_text_font_style = "normal"
        one.axis_label_text_font_size = one.major_label_text_font_size = "12px"
    if axis == "n":
        drawn.xaxis.axis_label = "examples learned"
        drawn.xaxis.formatter = NumeralTickFormatter(format="0,0")
        drawn.xaxis.ticker.desired_num_ticks = 5
    elif axis == "time":
        drawn.xaxis.axis_label = "time (UTC)"
        drawn.xaxis.formatter = DatetimeTickFormatter()
    return drawn


def legend(drawn: figure, items: Sequence[tuple[str, Sequence[object]]]) -> None:
    """Put a legend above a plot, where it hides no data."""
    shown = Legend(
        items=[(name, list(renderers)) for name, renderers in items],
        orientation="horizontal",
        ncols=2,
        label_text_font_size="12px",
        border_line_color=None,
        background_fill_alpha=0.0,
        padding=0,
        margin=2,
        click_policy="hide",
        stylesheets=[InlineStyleSheet(css=_LEGEND)],
    )
    drawn.add_layout(shown, "above")


def mark_notes(drawn: figure, notes: ColumnDataSource) -> None:
    """Mark notes in a plot, columns `x` and `text`, each by a line with its text along it."""
    drawn.vspan("x", source=notes, color=NOTED, width=2, line_dash="dotted")
    texts = LabelSet(
        x="x",
        y=8,
        y_units="screen",
        text="text",
        source=notes,
        angle=math.pi / 2,
        x_offset=-4,
        text_baseline="bottom",
        text_font_size="12px",
        text_color=NOTED,
    )
    drawn.add_layout(texts)


def choice_of(title: str, value: str, options: Sequence[tuple[str, str]]) -> Select:
    """Return a control that chooses one of some values, each with its text."""
    return Select(
        title=title,
        value=value,
        options=list(options),
        width=200,
        sizing_mode="fixed",
        stylesheets=[InlineStyleSheet(css=_CONTROL)],
    )


def source(*columns: str) -> ColumnDataSource:
    """Return an empty table of columns."""
    return ColumnDataSource({name: [] for name in columns})


def grid(least: str, gap: str = "1.5rem 1.25rem") -> Column:
    """Return a box whose parts stand beside one another where there is room for them.

    Parameters
    ----------
    least, gap : str
        Least width of a part and the space between two, as CSS lengths.
    """
    columns = f"repeat(auto-fit, minmax(min(100%, {least}), 1fr))"
    style = {"display": "grid", "grid-template-columns": columns, "gap": gap}
    return Column(children=[], sizing_mode="stretch_width", styles=style)
