"""Write answers as JSON text, with the numbers that are published: six decimals.

What the predictor returns is exact; its numbers are rounded here, and nowhere else. Reports, stored
states and pending examples use the exact numbers.

- *Numbers of classes* are whole millionths: `millionths / 1e6` is the same float again.
- A distribution is rounded cumulatively: a sum of 1 stays 1.
- The ends of intervals are rounded to the nearest; those around the first distribution then include
  its rounded probability.
- Other numbers are rounded to six decimals below 1e9, where a 64-bit float has hardly more.

Each number is the shortest decimal that reads back as the same float: 0.25, 1.0, 1e-6.
"""

from enum import IntEnum, auto

from online_svm.compiled.kernel import kernel
from online_svm.types import Bytes, Floats, Ints

LARGE = 1e9
"""Numbers from here on are not rounded: `FIRST_TEXT` plus the index of a text stands for them."""

FIRST_TEXT = 2e15  # more than the millionths of any smaller number


class Value(IntEnum):
    """A value of a plan, by the members `column` and `base` of its step."""

    NUMBER = 0  # of that column
    OWN_NUMBER = auto()  # of that column plus the whole number of column `base`
    WHOLE = auto()  # the whole number of that column; null if negative
    TEXT = auto()  # text `base` plus that whole number; null if that is negative
    NOTHING = auto()


@kernel
def write_rows(
    plan: Ints,
    fixed: Bytes,
    texts: tuple[Bytes, Ints],
    classes: int,
    distributions: int,
    numbers: Floats,
    wholes: Ints,
    out: Bytes,
    ends: Ints,
) -> None:
    """Round the numbers of each row to millionths, and write its text.

    `plan`, shape (p, 4): steps of a row: where its part of `fixed` ends, then a `Value`, `column`
        and `base`.
    `fixed`: the characters that all rows have, without the values.
    `texts`: characters, and where each text begins; its last number is where the last one ends.
    `numbers`, shape (m, w): `distributions` of so many `classes`; the lower ends of the first, the
        upper ends; then any other numbers. It is overwritten.
    `wholes`, shape (q, m): whole numbers, a row of the array for each column of the plan.
    `out`: room for the text of all rows.
    `ends`, shape (m,): where the text of each row ends.
    """
