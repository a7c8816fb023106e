"""HTML fragments of the page: escaped text from Redis, small drawings and verdicts."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from workers.reading.verdict import Level, Verdict
from workers.text import printable, share

# Okabe and Ito (2008), "Color Universal Design": distinct with any colour vision, on white and on
# black. A colour is never the only sign: lines also differ in dash or width; states have words.
ACCURACY = "#D55E00"  # vermillion
ANNOUNCED = "#0072B2"  # blue
BAND = "#56B4E9"  # sky blue
OTHER = "#009E73"  # bluish green
ALARM = "#CC79A7"  # reddish purple
NOTED = "#7D7D7D"  # grey, with a text next to it
MAX_CHARS = 60  # characters shown of a text, at most
HELP = "help"  # path of the page with docs/monitoring.md

_MAX_SENTENCE_CHARS = 500

_MARKS: dict[Level, str] = {"bad": "✕", "care": "!", "wait": "…", "well": "✓"}

_WIDTH, _HEIGHT = 160, 16  # pixels of the drawing of an interval
_CURVE_WIDTH, _CURVE_HEIGHT = 110, 22  # pixels of a sparkline
_MAX_POINTS = 60  # points of a sparkline


def safe(value: Any, max_chars: int = MAX_CHARS) -> str:
    """Return a value as escaped HTML text: one line of at most `max_chars` characters.

    Examples
    --------
    >>> safe("<script>alert(1)</script>")
    '&lt;script&gt;alert(1)&lt;/script&gt;'
    >>> safe("abcdef", max_chars=4), safe(None)
    ('abc…', '–')
    """
    if value is None:
        return "–"
    text = printable(str(value)[: 4 * max_chars])
    return html.escape(text if len(text) <= max_chars else text[: max_chars - 1] + "…")


def figures(values: Iterable[tuple[str, str]]) -> str:
    """Return figures side by side, given the name and the value of each as HTML."""
    drawn = "".join(f"<div><b>{value}</b><span>{name}</span></div>" for name, value in values)
    return f'<div class="figures">{drawn}</div>'


def probability(value: float) -> str:
    """Return a probability as text."""
    return "–" if isnan(value) else share(value)


def signed(value: float, places: int) -> str:
    """Return a difference with its sign as text."""
    return "–" if isnan(value) else f"{value:+.{places}f}"


def whole(value: float) -> str:
    """Return a count as text."""
    return "–" if isnan(value) else f"{value:,.0f}"


def seconds(value: float) -> str:
    """Return a duration as text.

    Examples
    --------
    >>> seconds(0.25), seconds(75), seconds(7300), seconds(200_000)
    ('0.2 s', '75 s', '122 min', '56 h')
    """
    if value < 120:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7_400 else f"{value / 3600:.0f} h"


def rate(value: float) -> str:
    """Return a number of entries a second as text.

    Examples
    --------
    >>> rate(0.0), rate(2.345), rate(1234.5)
    ('0', '2.3', '1,234')
    """
    if value <= 0:
        return "0"
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


@dataclass(frozen=True, slots=True)
class Markup:
    """A piece of text whose HTML is more than that: coloured, or drawn."""

    text: str
    html: str


def interval(low: float, point: float, high: float) -> Markup:
    """Return a drawing of an interval in [0, 1], with a mark at the probability.

    Examples
    --------
    >>> interval(0.2, 0.3, 0.4).text, interval(float("nan"), 0.3, 0.4)
    ('.200 to .400', Markup(text='', html=''))
    """
    if not (0 <= low <= high <= 1 and 0 <= point <= 1):
        return Markup("", "")
    words = f"{share(low)} to {share(high)}"
    return Markup(words, _drawing((low, point, high), words))


def scale(low: float, point: float, high: float) -> str:
    """Return a drawing of a difference and its interval, clipped to [-0.5, 0.5]."""
    clipped = [min(1.0, max(0.0, value + 0.5)) for value in (low, point, high)]
    return _drawing(clipped, f"{signed(low, 3)} to {signed(high, 3)}")


def _drawing(interval: Sequence[float], words: str) -> str:
    left, mark, right = (_WIDTH * value for value in interval)
    middle = _HEIGHT / 2
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{words}">'
        f'<line x1="0" y1="{middle}" x2="{_WIDTH}" y2="{middle}" stroke="currentColor" '
        'stroke-opacity=".3"/>'
        f'<rect x="{left:.1f}" y="3" width="{max(1.0, right - left):.1f}" height="{_HEIGHT - 6}" '
        f'fill="{BAND}"/>'
        f'<line x1="{mark:.1f}" y1="0" x2="{mark:.1f}" y2="{_HEIGHT}" stroke="{ANNOUNCED}" '
        'stroke-width="3"/></svg>'
    )


def sparkline(accuracy: Sequence[float], announced: Sequence[float]) -> str:
    """Return accuracy and announced probability as an SVG picture.

    Examples
    --------
    >>> sparkline([0.5], [0.5])
    ''
    >>> sparkline([0.5, 0.75], [0.5, 0.5]).count("<polyline")
    2
    """
    every = max(1, len(accuracy) // _MAX_POINTS)
    thinned = list(zip(accuracy, announced, strict=True))[::-every][::-1]
    pairs = [pair for pair in thinned if not any(map(isnan, pair))]
    if len(pairs) < 2:
        return ""
    low = min(map(min, pairs))
    span = max(map(max, pairs)) - low or 1.0
    curves = "".join(
        _polyline([(pair[index] - low) / span for pair in pairs], colour, width)
        for index, colour, width in ((1, ANNOUNCED, 1.5), (0, ACCURACY, 2))
    )
    return (
        f'<svg width="{_CURVE_WIDTH}" height="{_CURVE_HEIGHT}" role="img" '
        f'aria-label="accuracy and what was announced">{curves}</svg>'
    )


def _polyline(heights: Sequence[float], colour: str, width: float) -> str:
    step = (_CURVE_WIDTH - 4) / (len(heights) - 1)
    points = " ".join(
        f"{2 + i * step:.1f},{_CURVE_HEIGHT - 2 - height * (_CURVE_HEIGHT - 4):.1f}"
        for i, height in enumerate(heights)
    )
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def marked(verdict: Verdict) -> str:
    """Return the sentence of a verdict in its colour, after its mark."""
    return f'<span class="verdict-{verdict.level}">{_sentence(verdict)}</span>'


def banner(verdict: Verdict) -> str:
    """Return a verdict and its advice for the head of a page."""
    advice = f"<p>{safe(verdict.advice, _MAX_SENTENCE_CHARS)}</p>" if verdict.advice else ""
    sentence = f"<p><b>{_sentence(verdict)}.</b></p>"
    return f'<div class="verdict is-{verdict.level}">{sentence}{advice}</div>'


def _sentence(verdict: Verdict) -> str:
    mark = f'<span class="mark" aria-hidden="true">{_MARKS[verdict.level]}</span>'
    return f"{mark} {safe(verdict.sentence, _MAX_SENTENCE_CHARS)}"
