"""Kinds of columns: what the values of a named feature are, declared or found by one rule.

========  ==================================================  ====================================
kind      values                                              a gap
========  ==================================================  ====================================
number    numbers                                             the mean, and an indicator
boolean   true and false; as texts too, and 1 and 0           a value of its own
category  any: equal cells are one category                   a value of its own
time      ISO 8601 texts; numbers are seconds since 1970,     left out, and an indicator
          or milliseconds from 1e11 on
text      texts that hardly ever repeat: the column is set
          aside
========  ==================================================  ====================================

What is no value of the kind of its column is a gap, so it rejects no row.

A column whose kind is not declared has the one that the rule finds in the proper training set T,
at each freeze:

1. A column of which fewer than one row in a hundred of T have a value is not known yet.
2. A kind that nine in ten of its values have - number, boolean or time - is its kind.
3. Otherwise it is a category; but where more than half of the values occur once, it is text.

Only T is looked at. A kind, a category or a name that were known because an example that calibrates
has it would make that example unlike the one to come, and `exact` would be void. Once `FIXED_FROM`
values of a column were seen in one T, its kind stays.
"""

from typing import get_args

import numpy as np

from online_svm.config import KindName
from online_svm.stream.cells import BOOLEAN, NOTHING, NUMBER, TIME
from online_svm.types import Floats, Ints

KINDS = (*get_args(KindName), "text")
"""Names of all kinds, by code; the last cannot be declared."""

FIXED_FROM = 200
"""Values of a column in T from which on its kind stays."""

_MOST = {NUMBER: "number", BOOLEAN: "boolean", TIME: "time"}


def found_kind(cells: Floats, sorts: Ints) -> int:
    """Return the code of the kind that the rule finds for a column; -1 if it has no value.

    Parameters
    ----------
    cells : ndarray of shape (n,)
        Of the examples of T.
    sorts : ndarray of shape (n,)
        What they are; see `cells.sorts`.

    Examples
    --------
    >>> from online_svm.stream.cells import cell, sorts
    >>> def kind(*values):
    ...     cells = np.array([cell(value) for value in values])
    ...     code = found_kind(cells, sorts(cells))
    ...     return None if code < 0 else KINDS[code]
    >>> kind("1", "0", None), kind("yes", "no", "no", "yes"), kind("2024-01-05"), kind("", "NA")
    ('number', 'category', 'time', None)
    >>> kind("Ann called.", "No reply", "Second visit"), kind(True, False), kind("007", "007")
    ('text', 'boolean', 'category')
    """
    counts = np.bincount(sorts, minlength=NOTHING + 1).tolist()
    values = len(cells) - counts[NOTHING]
    if not values:
        return -1
    for sort, name in _MOST.items():
        if 10 * counts[sort] >= 9 * values:
            return KINDS.index(name)
    once = int(np.count_nonzero(np.unique(cells[sorts != NOTHING], return_counts=True)[1] == 1))
    return KINDS.index("text" if 2 * once > values else "category")
