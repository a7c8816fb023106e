"""The report of a past run: one HTML file with all its scripts, styles and data."""

from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.models import Column
from bokeh.resources import Resources

from workers.dashboard.card import grid, markup
from workers.dashboard.handlers import asset, template
from workers.dashboard.page import CARDS
from workers.dashboard.shown_feed import Excerpt
from workers.dashboard.text import banner, safe


def html_report(past: Excerpt) -> str:
    """Return the report of a past run as HTML: the verdict, and the cards of the page."""
    cards = [kind(past.axis, is_linked=False) for kind in CARDS if not kind.is_of_flow]
    for card in cards:
        card.refresh(past)
    place = grid("28rem")
    place.children = [card.root for card in cards]
    head = markup(
        f"<h1>{safe(past.feed, 64)}</h1>{banner(past.trust())}"
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
