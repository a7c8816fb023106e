"""The report as one HTML file: its scripts, styles and data are all in it."""

from collections.abc import Sequence

from bokeh.core.templates import get_env
from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.models import Column
from bokeh.resources import Resources

from workers.dashboard.card import ASSETS, Card, grid, markup
from workers.dashboard.excerpt import Excerpt
from workers.dashboard.page import CARDS
from workers.dashboard.report.summary import sentences
from workers.dashboard.text import safe
from workers.dashboard.verdicts import banner

_SENTENCE = 1000  # characters


def html_report(past: Excerpt) -> str:
    """Return the report of a past run as HTML."""
    cards: Sequence[Card] = [
        kind(past.axis, is_linked=False) for kind in CARDS if not kind.is_of_samples
    ]
    for card in cards:
        card.refresh(past)
    place = grid("28rem")
    place.children = [card.root for card in cards]
    document = Document()
    document.add_root(Column(children=[_head(past), place], sizing_mode="stretch_width"))
    text: str = file_html(
        document,
        Resources(mode="inline"),
        title=f"{past.feed} - online-svm report",
        template=get_env().from_string((ASSETS / "page.html").read_text("utf-8")),
        template_variables={
            "links": [],
            "theme": "auto",
            "script": "",
            "style": (ASSETS / "page.css").read_text("utf-8"),
        },
        suppress_callback_warning=True,
    )
    return text


def _head(past: Excerpt) -> object:
    told = "".join(f"<li>{safe(text, _SENTENCE)}</li>" for text in sentences(past)[1:])
    return markup(
        f"<h1>{safe(past.feed, 64)}</h1>{banner(past.trust())}<h2>Summary</h2><ul>{told}</ul>"
        '<p class="soft">docs/monitoring.md of online-svm says what each figure means.</p>'
    )
