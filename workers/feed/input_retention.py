"""Decide which input of a feed to keep: at least the last `window` learned examples.

Redis trims entries by ID, but the window counts learned examples, and rejected or repeated entries
are not learned. So a feed keeps marks: pairs of a number of learned examples and the cursor at that
number. Input is trimmed up to the newest mark that is a whole window back. Of marks that are closer
together than an eighth of the window some are dropped. So their number is bounded, and a little
more than the window is kept.
"""

from collections.abc import Sequence
from typing import NamedTuple

from workers.feed.position import parse_id
from workers.feed.state_fields import Mark

SPACING = 8
"""Approximate number of marks in one window. At most 1 / SPACING of a window is kept beyond it, and
the input between two snapshots."""


class KeptInput(NamedTuple):
    """What to keep of the input after a new snapshot.

    Attributes
    ----------
    marks : tuple of Mark
        To store, the oldest first.
    trim : bytes
        Trim input before this ID; empty trims nothing.
    """

    marks: tuple[Mark, ...]
    trim: bytes


def known_marks(marks: Sequence[Mark], pointers: Sequence[Mark | None]) -> tuple[Mark, ...]:
    """Return the marks of a feed; if it has none, those of its kept snapshots.

    Parameters
    ----------
    marks : sequence of Mark
        As stored; empty in a feed that has made no snapshot, or was restored.
    pointers : sequence of Mark or None
        Positions of the kept snapshots, the older one first; input since then is kept. None is
        the start of the feed.
    """
    if marks:
        return tuple(marks)
    return tuple(dict.fromkeys(Mark() if at is None else at for at in pointers))


def keep(
    marks: Sequence[Mark], newest: Mark, previous: bytes | None, window: int | None
) -> KeptInput:
    """Return the marks with one for a new snapshot, and up to which ID to trim.

    Parameters
    ----------
    marks : sequence of Mark
        The present ones, the oldest first.
    newest : Mark
        Position of the new snapshot.
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
        # All input is kept, and one mark is enough.
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
