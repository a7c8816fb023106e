"""A small curve inside a table."""

from collections.abc import Sequence
from math import isnan

from workers.dashboard.colours import ACCURACY, ANNOUNCED

_WIDTH, _HEIGHT = 110, 22  # pixels
_MOST = 60  # points


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
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="accuracy and what was announced">{curves}</svg>'
    )


def _polyline(heights: Sequence[float], colour: str, width: float) -> str:
    step = (_WIDTH - 4) / (len(heights) - 1)
    points = " ".join(
        f"{2 + i * step:.1f},{_HEIGHT - 2 - height * (_HEIGHT - 4):.1f}"
        for i, height in enumerate(heights)
    )
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
