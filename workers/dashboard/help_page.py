"""docs/monitoring.md as a page, for the links beside the plots."""

import html
import re
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from tornado.web import RequestHandler

SOURCE = Path(__file__).parents[2] / "docs" / "monitoring.md"

_STYLE = (Path(__file__).parent / "assets" / "page.css").read_text("utf-8")
_FRAME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><title>Monitoring - online-svm</title><style>{style}
body {{ max-width: 50rem; overflow-wrap: anywhere; }}
table {{ display: block; overflow-x: auto; border-collapse: collapse; }}
td, th {{ border: 1px solid var(--line); padding: .2rem .5rem; text-align: left; }}
pre {{ overflow-x: auto; }}</style></head><body>{text}</body></html>"""

_LEFT_OUT = ((r"<p><img [^>]*></p>", ""), (r'<a href="(?!https?:|#)[^"]*">(.*?)</a>', r"\1"))
"""Pictures, and links to other files: they are not here."""


class HelpPage(RequestHandler):
    """What each figure means and what to do."""

    def get(self) -> None:
        """Show the page."""
        self.write(rendered())


@cache
def rendered() -> str:
    """Return docs/monitoring.md as HTML; where it is not installed, say where it is."""
    if not SOURCE.is_file():
        return _FRAME.format(
            style=_STYLE, text="<p>See <code>docs/monitoring.md</code> in the sources.</p>"
        )
    made = MarkdownIt("commonmark", {"html": False}).enable("table")
    text = made.render(SOURCE.read_text("utf-8"))
    text = text.replace("<table>", '<table tabindex="0">').replace("<pre>", '<pre tabindex="0">')
    for pattern, instead in _LEFT_OUT:
        text = re.sub(pattern, instead, text)
    return _FRAME.format(style=_STYLE, text=re.sub(r"<h([1-6])>(.*?)</h\1>", _with_anchor, text))


def _with_anchor(heading: re.Match[str]) -> str:
    level, words = heading[1], heading[2]
    return (
        f'<h{level} id="{anchor(html.unescape(re.sub("<[^>]*>", "", words)))}">{words}</h{level}>'
    )


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it.

    Examples
    --------
    >>> anchor("The `met` stream: what it says")
    'the-met-stream-what-it-says'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
