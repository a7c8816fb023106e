"""The last answers as a table, with their intervals drawn."""

from collections.abc import Sequence

from bokeh.models import UIElement

from workers.dashboard.card import Card, markup
from workers.dashboard.colours import ANNOUNCED, BAND
from workers.dashboard.excerpt import Excerpt
from workers.dashboard.feed_view import ShownAnswer
from workers.dashboard.reports import number
from workers.dashboard.text import probability, safe, whole

ROWS = 12
_WIDTH, _HEIGHT = 160, 16  # pixels of the drawn interval

_HEAD = (
    '<tr><th class="left">entry</th><th class="left">answer</th><th>probability</th>'
    '<th class="left">true label</th><th class="left">interval, 0 to 1</th>'
    '<th class="left">id</th></tr>'
)


class AnswersCard(Card):
    """The newest answers, and whether they were right."""

    title = "Last answers"
    words = (
        "Each answer with its probability and interval (0 to 1), the newest first, and the true "
        "label once it is known."
    )
    section = "the-live-page"
    is_wide = True

    def body(self) -> Sequence[UIElement]:
        """Make the place of the table."""
        self._table = markup()
        return [self._table]

    def fill(self, excerpt: Excerpt) -> str:
        """Write the table."""
        if not excerpt.answers:
            return "No answer is kept yet. The first comes as soon as a worker has an example."
        rows = "".join(_row(answer) for answer in reversed(excerpt.answers[-ROWS:]))
        text = f'<div class="scroll"><table>{_HEAD}{rows}</table></div>'
        if self._table.text != text:
            self._table.text = text
        return ""


def _row(answer: ShownAnswer) -> str:
    message = answer.message
    seq, name = whole(number(message.get("seq"))), safe(message.get("id"), 24)
    if message.get("status") != "ok" or message.get("label") is None:
        why = message.get("reason") or message.get("label") or ""
        return (
            f'<tr><td class="left">{seq}</td><td class="left soft" colspan="4">'
            f"{safe(message.get('status'), 12)}: {safe(why, 80)}</td>"
            f'<td class="text">{name}</td></tr>'
        )
    point, drawing = _announced(message)
    return (
        f'<tr><td class="left">{seq}</td><td class="text">{safe(message["label"], 24)}</td>'
        f'<td>{point}</td><td class="text">{_truth(answer)}</td><td>{drawing}</td>'
        f'<td class="text">{name}</td></tr>'
    )


def _announced(message: dict[str, object]) -> tuple[str, str]:
    """Return the probability, and a drawing of the interval."""
    low, point, high = (number(message.get(name)) for name in ("lower", "probability", "upper"))
    return probability(point), interval(low, point, high)


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


def _truth(answer: ShownAnswer) -> str:
    truth = answer.truth
    if truth.label is None:
        return '<span class="soft">not known</span>'
    told = {
        None: "",
        True: '<span class="good">✓ right</span>',
        False: '<span class="bad">✗ wrong</span>',
    }[truth.is_right]
    return f"{told} {safe(truth.label, 24)}"
