"""Summarize the first rows of a source, before any of them is sent."""

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from online_svm.stream.cells import time_of
from workers.plural import counted
from workers.push.rows import Layout, Row

HEAD = 1000
"""Largest number of rows that are summarized."""

CELLS = 1_000_000
"""Largest number of cells that are summarized."""

_SHOWN = 8  # names of columns or classes in one line
_NAMES = ("id", "uuid", "guid", "key", "index", "rowid", "row")
_ENOUGH = 20  # rows: in fewer, consecutive whole numbers may be chance


def head_of(rows: Iterator[Row], count: int = HEAD) -> list[Row]:
    """Return the first rows; fewer if they are very wide."""
    head: list[Row] = []
    cells = 0
    for row in rows:
        head.append(row)
        cells += len(row.x)
        if len(head) >= count or cells >= CELLS:
            break
    return head


def summary(head: Sequence[Row], layout: Layout, arrays: bool = False) -> list[str]:
    """Return lines that say how the first rows of a source are read.

    Examples
    --------
    >>> rows = [Row({"age": 39, "id": 1}, "ham"), Row({"age": None, "id": 2}, "spam")]
    >>> for line in summary(rows, Layout("kind", dropped=["name"])):
    ...     print(line)
    the first 2 rows are read like this:
      label     kind: ham 1, spam 1
      features  2 numbers, sent by name: age, id
      left out  name
      blank     age 1: sent as null, a gap
      warning   id looks like an identifier and is a feature: --id id sends it as the id, \
--drop id leaves it out
    """
    if not head:
        return ["the source has no rows"]
    lines = [f"the first {counted(len(head), 'row')} are read like this:"]
    if len(head) == 1:
        lines = ["the first row is read like this:"]
    names = list(dict.fromkeys(name for row in head for name in _columns(row)))
    lines.append(f"  label     {_label(head, layout)}")
    lines += [f"  {kind:<10}{name}" for kind, name in _others(layout)]
    lines.append(f"  features  {_features(head, names, arrays)}")
    if layout.dropped:
        lines.append(f"  left out  {_listed(layout.dropped)}")
    if blank := _blank(head):
        where = _listed([f"{name} {count:,}" for name, count in blank.items()])
        is_array = arrays or not isinstance(head[0].x, Mapping)
        means = "which a feed rejects unless its worker has --missing mean"
        lines.append(f"  blank     {where}: sent as null, {means if is_array else 'a gap'}")
    lines += [_warning(name) for name in names if _is_identifier(name, head)]
    return lines


def _columns(row: Row) -> Sequence[str]:
    if isinstance(row.x, Mapping):
        return list(row.x)
    return [f"[{i}]" for i in range(len(row.x))]


def _values(row: Row) -> Sequence[Any]:
    return list(row.x.values()) if isinstance(row.x, Mapping) else row.x


def _label(head: Sequence[Row], layout: Layout) -> str:
    if layout.label is None:
        return "none"
    classes = Counter(row.y for row in head if row.y is not None)
    told = _listed([f"{name} {count:,}" for name, count in classes.most_common()])
    without = sum(row.y is None and row.p is None for row in head)
    blank = f"; {counted(without, 'row')} without, answered and not learned" if without else ""
    guess = "; the last column, as no --label names one" if layout.label_is_last else ""
    return f"{layout.label}: {told or 'no class'}{blank}{guess}"


def _others(layout: Layout) -> list[tuple[str, str]]:
    given = (("id", layout.id), ("prob", layout.prob), ("time", layout.time))
    told = [(kind, name) for kind, name in given if name is not None]
    return told + ([("slices", _listed(layout.slices))] if layout.slices else [])


def _features(head: Sequence[Row], names: Sequence[str], arrays: bool) -> str:
    first = head[0].x
    if not isinstance(first, Mapping):
        return f"{counted(len(first), 'number')}, sent as an array"
    how = "as an array" if arrays else "by name"
    rows = [row.x for row in head if isinstance(row.x, Mapping)]
    others = [name for name in names if any(_is_other(row.get(name)) for row in rows)]
    times = [name for name in others if _are_times([row.get(name) for row in rows])]
    kinds = [counted(len(names) - len(others), "number")] if len(others) < len(names) else []
    if times:
        kinds.append(counted(len(times), "time"))
    if len(others) > len(times):
        kinds.append(f"{len(others) - len(times)} of text")
    told = " and ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)
    return f"{told}, sent {how}: {_listed(names)}"


def _are_times(values: Sequence[object]) -> bool:
    """Return whether all values that are there are texts that a feed reads as times.

    Examples
    --------
    >>> _are_times(["2024-01-05", None, "2024-01-05 10:30"]), _are_times(["2024-01-05", "soon"])
    (True, False)
    """
    there = [value for value in values if value is not None]
    return all(isinstance(value, str) and time_of(value) is not None for value in there)


def _is_other(value: object) -> bool:
    """Return whether a value is there, and no number."""
    return value is not None and (isinstance(value, bool) or not isinstance(value, int | float))


def _blank(head: Sequence[Row]) -> dict[str, int]:
    """Return the number of blanks in each column that has any."""
    count: Counter[str] = Counter()
    for row in head:
        count.update(
            name for name, value in zip(_columns(row), _values(row), strict=True) if value is None
        )
    return dict(count.most_common())


def _is_identifier(name: str, head: Sequence[Row]) -> bool:
    """Return whether a named column seems to identify rows rather than to describe them."""
    if name.startswith("["):
        return False
    plain = name.strip().lower()
    if plain in _NAMES or plain.endswith(("_id", " id", "-id")):
        return True
    values = [row.x.get(name) for row in head if isinstance(row.x, Mapping)]
    whole = [value for value in values if _is_whole(value)]
    return len(values) >= _ENOUGH and len(whole) == len(values) and _are_counted(whole)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value == int(value)


def _are_counted(values: Sequence[Any]) -> bool:
    """Return whether each value is one more than the last: a row number."""
    return all(later - value == 1 for value, later in pairwise(values))


def _warning(name: str) -> str:
    quoted = shlex.quote(name)
    return (
        f"  warning   {name} looks like an identifier and is a feature: --id {quoted} sends it as "
        f"the id, --drop {quoted} leaves it out"
    )


def _listed(names: Sequence[str]) -> str:
    """Return the first names, shortened, and the number of the others."""
    shown = ", ".join(name[:40] for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown
