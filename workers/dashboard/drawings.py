"""Small drawings inside tables, as SVG."""

from collections.abc import Sequence
from math import isnan

from workers.dashboard.card import ACCURACY, ANNOUNCED, BAND

_WIDTH, _HEIGHT = 160, 16  # pixels of an interval
_CURVE_WIDTH, _CURVE_HEIGHT = 110, 22
_MOST = 60  # points of a curve


def interval(low: float, point: float, high: float) -> str:
    """Return a drawing of an interval between 0 and 1, with a mark at the probability.

    Examples
    --------
    >>> "0.2 to 0.4" in interval(0.2, 0.3, 0.4), interval(float("nan"), 0.3, 0.4)
    (True, '')
    """
    if not (0 <= low <= high <= 1 and 0 <= point <= 1):
        return ""
    return _drawing(low, point, high, f"{low:.3g} to {high:.3g}")


def scale(low: float, point: float, high: float) -> str:
    """Return a drawing of a difference between -0.5 and 0.5, cut off at its ends.

    Examples
    --------
    >>> "-0.1 to 0.7" in scale(-0.1, 0.2, 0.7)
    True
    """
    left, mark, right = (min(1.0, max(0.0, value + 0.5)) for value in (low, point, high))
    return _drawing(left, mark, right, f"{low:.3g} to {high:.3g}")


def _drawing(low: float, point: float, high: float, words: str) -> str:
    left, mark, right = (_WIDTH * value for value in (low, point, high))
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
    """Return accuracy beside what was announced as an SVG picture.

    Examples
    --------
    >>> sparkline([0.5], [0.5])
    ''
    >>> sparkline([0.5, 0.75], [0.5, 0.5]).count("<polyline")
    2
    """
    every = max(1, len(accuracy) // _MOST)
    pairs = [
        (a, b)
        for a, b in list(zip(accuracy, announced, strict=True))[::-every][::-1]
        if not (isnan(a) or isnan(b))
    ]
    if len(pairs) < 2:
        return ""
    low = min(min(pair) for pair in pairs)
    span = max(max(pair) for pair in pairs) - low or 1.0
    curves = "".join(
        _polyline([(pair[place] - low) / span for pair in pairs], colour, width)
        for place, colour, width in ((1, ANNOUNCED, 1.5), (0, ACCURACY, 2))
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
