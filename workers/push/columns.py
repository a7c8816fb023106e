"""Columns of a source: a summary of its first rows, and the error for columns of text."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, islice
from typing import Any

from workers.push import preview
from workers.push.preview import TableFinding
from workers.push.reading import BadSource
from workers.push.rows import Layout, Row, number
from workers.text import counted

MAX_ROWS = 1000  # rows that are examined, at most
MAX_CELLS = 1_000_000  # cells of these rows, at most
_MAX_NAMES_SHOWN = 8  # names of columns or classes in one line
_ID_NAMES = ("id", "uuid", "guid", "key", "index", "rowid", "row")
_MIN_ROWS_FOR_ID = 20  # rows in which consecutive whole numbers are no chance
_MAX_TEXTS = 5  # distinct texts that may all stand for missing values in a column of numbers
_MAX_COLUMNS_SHOWN = 6  # columns with their texts in an error
_MAX_OPTIONS_LENGTH = 400  # characters of options
_MAX_NAME_LENGTH = 200  # characters of a name


def head_of(rows: Iterator[Row], count: int = MAX_ROWS) -> list[Row]:
    """Return the first rows; fewer if they are very wide."""
    head: list[Row] = []
    cells = 0
    for row in rows:
        head.append(row)
        cells += len(row.x)
        if len(head) >= count or cells >= MAX_CELLS:
            break
    return head


def summary(head: Sequence[Row], layout: Layout) -> list[TableFinding]:
    """Return a summary of the columns in the first rows of a source.

    Examples
    --------
    >>> rows = [Row({"age": 39, "id": 1}, "ham"), Row({"age": None, "id": 2}, "spam")]
    >>> for line in summary(rows, Layout("kind", dropped=["name"])):
    ...     print(line)
      label     kind: ham 1, spam 1
      features  2 numbers, sent by name: age, id
      left out  name
      blank     age 1: sent as null, a gap
      warning   id looks like an identifier and is a feature: --id id sends it as the id, \
--drop id leaves it out
    """
    if not head:
        return []
    names = list(dict.fromkeys(name for row in head for name in _columns(row)))
    found = [TableFinding("label", _label(head, layout))]
    others = {
        "id": layout.id, "slices": _listed(layout.slices) or None, "scores": layout.score
    }  # fmt: skip
    found += [TableFinding(kind, name) for kind, name in others.items() if name is not None]
    found += preview.times(head, layout)
    found.append(TableFinding("features", _features(head, names)))
    if layout.dropped:
        found.append(TableFinding("left out", _listed(layout.dropped), "columns"))
    if blank := _blank(head):
        where = _listed([f"{name} {count:,}" for name, count in blank.items()])
        is_named = isinstance(head[0].x, Mapping)
        means = "which a feed rejects unless its worker has --missing mean"
        text = f"{where}: sent as null, {'a gap' if is_named else means}"
        found.append(TableFinding("blank", text))
    found += preview.form(layout)
    found += [_warning(name) for name in names if _is_identifier(name, head)]
    return [*found, *preview.warnings(head, layout)]


def _columns(row: Row) -> Sequence[str]:
    if isinstance(row.x, Mapping):
        return list(row.x)
    return [f"[{i}]" for i in range(len(row.x))]


def _label(head: Sequence[Row], layout: Layout) -> str:
    if layout.label is None:
        return "none"
    classes = Counter(row.y for row in head if row.y is not None)
    shown = _listed([f"{name} {count:,}" for name, count in classes.most_common()])
    without = sum(row.y is None and row.p is None for row in head)
    blank = f"; {counted(without, 'row')} without, answered and not learned" if without else ""
    guess = "; the last column, as no --label names one" if layout.label_is_last else ""
    return f"{layout.label}: {shown or 'no class'}{blank}{guess}"


def _features(head: Sequence[Row], names: Sequence[str]) -> str:
    first = head[0].x
    if not isinstance(first, Mapping):
        return f"{counted(len(first), 'number')}, sent as an array"
    if not names:
        return "none"
    rows = [row.x for row in head if isinstance(row.x, Mapping)]
    kinds = Counter(preview.kind_of([row.get(name) for row in rows])[0] for name in names)
    kinds["number"] += kinds["none"]
    found = [counted(kinds[kind], kind) for kind in ("number", "time", "boolean") if kinds[kind]]
    found += [f"{kinds['words']} of words"] * (kinds["words"] > 0)
    shown = " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)
    return f"{shown}, sent by name: {_listed(names)}"


def _blank(head: Sequence[Row]) -> dict[str, int]:
    count: Counter[str] = Counter()
    for row in head:
        values = row.x.values() if isinstance(row.x, Mapping) else row.x
        pairs = zip(_columns(row), values, strict=True)
        count.update(name for name, value in pairs if value is None)
    return dict(count.most_common())


def _is_identifier(name: str, head: Sequence[Row]) -> bool:
    """Return whether a column seems to identify rows: by its name, or as a row number."""
    if name.startswith("["):
        return False
    plain = name.strip().lower()
    if plain in _ID_NAMES or plain.endswith(("_id", " id", "-id")):
        return True
    values = [row.x.get(name) for row in head if isinstance(row.x, Mapping)]
    if len(values) < _MIN_ROWS_FOR_ID:
        return False
    return preview.kind_of(values)[0] != "time" and preview.identifies_rows(values)


def _warning(name: str) -> TableFinding:
    quoted = shlex.quote(name)
    text = f"{name} looks like an identifier and is a feature: --id {quoted} sends it as the id, "
    return preview.warning("identifier", f"{text}--drop {quoted} leaves it out", name)


def _listed(names: Sequence[str]) -> str:
    """Return the first names, shortened, and the number of further ones."""
    shown = ", ".join(name[:40] for name in names[:_MAX_NAMES_SHOWN])
    more = len(names) - _MAX_NAMES_SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown


class NotNumbers(BadSource):
    """Columns with texts cannot be features; those in `mixed` also have numbers."""

    def __init__(self, texts: Mapping[str, Sequence[str]], mixed: Iterable[str], line: int) -> None:
        self.line = line
        first = islice(texts.items(), _MAX_COLUMNS_SHOWN)
        shown = [f"{name[:40]} is {found[0][:20]!r}" for name, found in first]
        rest = len(texts) - _MAX_COLUMNS_SHOWN
        more = f" and {rest:,} more" if rest > 0 else ""
        fault = "not a number: encode it" if len(texts) == 1 else "not numbers: encode them"
        super().__init__(
            f"{', '.join(shown)}{more}, {fault}, or type {_options(texts, mixed)} (--drop leaves a "
            "column out, --na says that a text stands for a missing value)"
        )


def _options(texts: Mapping[str, Sequence[str]], mixed: Iterable[str]) -> str:
    """Return the options that drop these columns, or read their texts as missing values."""
    numeric = {
        name
        for name in mixed
        if len(texts[name]) <= _MAX_TEXTS and max(map(len, texts[name])) < _MAX_NAME_LENGTH
    }
    missing = dict.fromkeys(text for name in texts if name in numeric for text in texts[name])
    options = [
        f"--drop {shlex.quote(name[:_MAX_NAME_LENGTH])}" for name in texts if name not in numeric
    ]
    options += [f"--na {shlex.quote(text)}" for text in missing]
    shown = sum(length <= _MAX_OPTIONS_LENGTH for length in accumulate(map(len, options)))
    more = [f"and {len(options) - shown:,} more"] if shown < len(options) else []
    return " ".join([*options[:shown], *more])


def not_numbers(
    first: Mapping[str, Any],
    later: Iterable[Mapping[str, Any]],
    names: Sequence[str],
    missing: frozenset[str],
    line: int,
) -> NotNumbers:
    """Return the error for the columns that have texts in the row `first` and later rows."""
    texts: dict[str, dict[str, None]] = {}
    mixed: set[str] = set()

    def examine(row: Mapping[str, Any]) -> None:
        for name in names:
            try:
                if number(row.get(name), missing) is not None:
                    mixed.add(name)
            except ValueError:
                found = texts.setdefault(name, {})
                if len(found) <= _MAX_TEXTS:
                    found[row[name].strip()[:_MAX_NAME_LENGTH]] = None

    examine(first)
    # The next run reports other errors in later rows.
    with suppress(Exception):
        for row in islice(later, min(MAX_ROWS, MAX_CELLS // len(names))):
            examine(row)
    return NotNumbers({name: [*found] for name, found in texts.items()}, mixed & {*texts}, line)
