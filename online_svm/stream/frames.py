"""Examples from a data frame: of pandas, polars, Arrow, or whatever else narwhals reads."""

from collections.abc import Iterator
from math import isnan
from typing import Any

import numpy as np

from online_svm.errors import InvalidInput
from online_svm.stream.cells import cell, time_of
from online_svm.stream.input_batch import Example


def examples(
    frame: Any, label: str | None = None, *, id: str | None = None, time: str | None = None
) -> Iterator[Example]:
    """Yield the rows of a data frame as examples with named features, in order.

    A value is what it is in JSON or CSV: a number, a text, a boolean, a time, or a gap.

    Parameters
    ----------
    frame : data frame
        Of any library that narwhals reads, in memory.
    label : str, optional
        Column of the label; a gap in it is an example without one.
    id : str, optional
        Column of the producer's id.
    time : str, optional
        Column of the time of an example, for a horizon that counts it.

    Raises
    ------
    InvalidInput
        If there is no such column, or a time is none.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [39, None], "country": ["DE", "FR"], "y": ["no", "yes"]})
    >>> [(example.x, example.y) for example in examples(frame, "y")]
    [({'age': 39.0, 'country': 'DE'}, 'no'), ({'age': nan, 'country': 'FR'}, 'yes')]
    """
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    for name in (label, id, time):
        if name is not None and name not in table.columns:
            raise InvalidInput(f"no column {name!r}; there are {', '.join(table.columns)[:200]}")
    for row in table.iter_rows(named=True):
        y, sent, at = (None if name is None else row.pop(name) for name in (label, id, time))
        yield Example(
            row,
            None if _is_gap(y) else _label(y),
            id=None if _is_gap(sent) else str(sent),
            time=None if time is None else _time(at, time),
        )


def _is_gap(value: Any) -> bool:
    return not isinstance(value, str) and isnan(cell(value))


def _label(value: Any) -> str:
    """Return a label as it is sent: a whole number without a point, a boolean in small letters."""
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _time(value: Any, name: str) -> int:
    found = time_of(value)
    if found is None or found < 0:
        raise InvalidInput(f"{name} is {str(value)[:40]!r}, no time")
    return found
