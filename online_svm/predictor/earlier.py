"""What was said of examples when they were answered, kept until their late labels come."""

from typing import NamedTuple

import numpy as np

from online_svm.storage.arrays import require
from online_svm.storage.fields import Fields, floats
from online_svm.types import Arrays, Bools, Floats, Ints

_SAID = Fields(floats("odds", "m i s"), floats("parts", "m k c"))


class Earlier(NamedTuple):
    """What was said of m rows when they were answered, where their labels come late.

    Attributes
    ----------
    learns : ndarray of shape (m,)
        Which rows are learned; the others are answered here.
    rows : ndarray of shape (m,)
        The row of the same call in which a row that is learned was answered; -1 if there is none.
    answers : list of m dict or None
        Of the other rows that are learned, what `Lately.answer` returned beside the point, if
        there was a model.
    """

    learns: Bools
    rows: Ints
    answers: list[dict[str, Floats] | None]


def said_from_state(state: Arrays) -> dict[str, Floats]:
    """Return what was said of waiting examples, as `Lately.answer` did.

    Raises
    ------
    InvalidSnapshot, ValueError
        If an array is absent, of another type or out of range.
    """
    said = _SAID.values("waiting answers", None, state)
    parts = said["parts"]
    require(bool(((parts >= 0.0) & (parts <= 1.0 + 1e-9)).all()), "parts")
    return said


def put_earlier(earlier: Earlier, rows: range, parts: Floats, odds: Floats, spoke: Bools) -> None:
    """Put what was said before in the place of what is said of rows that are learned now.

    Of the headline it is the mean of both. The odds of a row of which nothing was said, or of other
    classes, are NaN, and all its parts are the headline. It is noted where the stacks spoke.
    """
    for i in np.flatnonzero(earlier.learns[rows.start : rows.stop]).tolist():
        row, now = rows[i], parts[:, rows[i]]
        here, answer = int(earlier.rows[row]), earlier.answers[row]
        if here >= 0:
            answer = {"odds": odds[here], "parts": parts[:, here]}
        if answer is None or not _fits(answer, now, odds[row]):
            odds[row], now[1:] = np.nan, now[0]
            continue
        then = answer["parts"]
        odds[row], now[1:] = answer["odds"], then[1:]
        now[0] = 0.5 * (now[0] + then[0])
        spoke[row] = not np.array_equal(then[0], then[1])


def _fits(answer: dict[str, Floats], parts: Floats, odds: Floats) -> bool:
    return answer["parts"].shape == parts.shape and answer["odds"].shape == odds.shape
