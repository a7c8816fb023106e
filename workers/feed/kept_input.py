"""From where on the input of a feed is kept, so that the last `window` learned examples stay in it.

Entries are trimmed by ID, while a window counts learned examples: a rejected or repeated entry is
none. So a feed keeps marks, "after so many learned examples the cursor was there", and trims up to
a mark that lies a whole window back. Marks that lie closer together than an eighth of a window are
thinned out, so their number is bounded, and a little more than the window is kept.
"""

from collections.abc import Sequence
from typing import NamedTuple

from workers.feed.position import parse_id
from workers.feed.state import Mark

SPACING = 8
"""Marks within one window, about: what is kept beyond it is at most this part of it, and one
snapshot's worth."""


class KeptInput(NamedTuple):
    """What a new snapshot means for the input.

    Attributes
    ----------
    marks : tuple of Mark
        To be stored, the oldest first.
    trim : bytes
        Input before this ID is given up; empty keeps all.
    """

    marks: tuple[Mark, ...]
    trim: bytes


def known_marks(marks: Sequence[Mark], pointers: Sequence[Mark | None]) -> tuple[Mark, ...]:
    """Return the marks of a feed; without any, those that its kept snapshots are.

    Parameters
    ----------
    marks : sequence of Mark
        As stored; none in a feed that an earlier version of this program wrote.
    pointers : sequence of Mark or None
        Where the kept snapshots stand, the older one first: the input is kept from there on. None
        is the start of the feed.
    """
    if marks:
        return tuple(marks)
    return tuple(dict.fromkeys(Mark() if at is None else at for at in pointers))


def keep(
    marks: Sequence[Mark], newest: Mark, previous: bytes | None, window: int | None
) -> KeptInput:
    """Return the marks with one at a new snapshot, and up to where the input may go.

    Parameters
    ----------
    marks : sequence of Mark
        Before, the oldest first.
    newest : Mark
        Where the new snapshot stands.
    previous : bytes or None
        Cursor of the older snapshot, from which a replay must be possible; None is the start.
    window : int or None
        Learned examples to keep; None keeps all.

    Examples
    --------
    >>> marks = [Mark(0, b"0-0"), Mark(40, b"50-0"), Mark(80, b"90-0")]
    >>> keep(marks, Mark(120, b"130-0"), b"90-0", window=60).trim
    b'50-0'
    >>> keep(marks, Mark(120, b"130-0"), b"90-0", window=None).trim
    b''
    """
    every = [mark for mark in marks if mark.n <= newest.n]
    if not every or every[-1] != newest:
        every.append(newest)
    if window is None:
        # All input stays, and one mark says from where on.
        return KeptInput((every[0],), b"")
    whole = [i for i, mark in enumerate(every) if mark.n <= newest.n - window]
    thinned = _thinned(every[whole[-1] if whole else 0 :], window)
    if not whole or previous is None:
        return KeptInput(thinned, b"")
    return KeptInput(thinned, min(thinned[0].cursor, previous, key=parse_id))


def _thinned(marks: Sequence[Mark], window: int) -> tuple[Mark, ...]:
    """Return the marks without those whose neighbours are close together."""
    left: list[Mark] = []
    for mark in marks:
        while len(left) > 1 and SPACING * (mark.n - left[-2].n) <= window:
            left.pop()
        left.append(mark)
    return tuple(left)
