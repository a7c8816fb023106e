"""The look at a table before it is sent: how it is read, and probable leaks."""

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from itertools import pairwise

from workers.push.cell_reader import ColumnReading, shown_value
from workers.push.rows import Layout, Row
from workers.push.text_encoding import FALLBACK

_MAX_SHOWN = 3  # values in the short form
_MAX_COLUMNS = 200  # columns of a preview, and columns that are examined for leaks
_MIN_LABELLED = 50  # rows with a label, from which a leak is no chance
_MIN_OF_SECOND_CLASS = 5
_BINS = 20  # of a column of numbers
_UNEXPLAINED = 0.05  # share of the errors of "always the most frequent class" that a leak leaves
_NEARLY = 0.98  # share of distinct values from which on a column identifies rows
_MAX_CATEGORIES = 50  # values that are compared without case
_LEFT_OUT = "  left out  at the end: "
_WITH_WORD = re.compile(r"[-+]?[0-9][0-9.,'\s]*\s?(?:[^\W\d]{1,8}[.²³]?|‰|°C?)")
_NAME_OF_TIME = re.compile(r"(?i)\bdate|date\b|datum|fecha|zeit|(?:\b|_)(?:am|at|on)$")
_EXCEL_DAYS = (20_000, 80_000)  # from 1954 to 2119
_WORDS = {",": "decimal comma", ".": "decimal point", "dmy": "day first", "mdy": "month first",
          "ymd": "year first"}  # fmt: skip


def form(layout: Layout) -> list[str]:
    """Return a line about the form of a table and one of values, where they are not plain."""
    if layout.cells is None:
        return []
    signs = [layout.cells.decimal, layout.cells.order]
    parts = [part for part in layout.form if part != "separator comma"]
    if layout.encoding not in (None, "utf-8"):
        is_assumed = layout.encoding == FALLBACK
        parts.append(f"{layout.encoding}{', as it is not UTF-8' if is_assumed else ''}")
    samples = [
        f"{name} {column.sample[0]!r} is {shown_value(column.sample[1])}"
        for name, column in layout.cells.columns.items()
        if column.sample is not None and _is_converted(column)
    ]
    if samples:
        parts += [_WORDS[sign] for sign in signs if sign is not None]
    lines = [f"  table     {'; '.join(parts)}"] if parts else []
    if samples:
        lines.append(f"  values    {'; '.join(samples[:_MAX_SHOWN])}")
    return lines


def _is_converted(column: ColumnReading) -> bool:
    if column.sample is None:
        return False
    text, value = column.sample
    try:
        return float(text) != value
    except ValueError:
        return text != value


def columns(head: Sequence[Row], layout: Layout) -> list[str]:
    """Return a line for each column that is sent: its kind, one value, gaps and texts."""
    names = [*dict.fromkeys(name for row in head if isinstance(row.x, Mapping) for name in row.x)]
    if not names:
        return []
    width = min(30, max(map(len, names)))
    lines = [f"  {'column':<{width}}  kind    gaps   as text  a value"]
    for name in names[:_MAX_COLUMNS]:
        values = [row.x.get(name) for row in head if isinstance(row.x, Mapping)]
        known = layout.cells.columns.get(name) if layout.cells else None
        kind, others = _kind(values, known)
        gaps = sum(value is None for value in values) / len(values)
        aside = "" if kind == "text" else f"{others:.1%}"
        lines.append(
            f"  {name[:width]:<{width}}  {kind:<6}  {gaps:>4.0%}   {aside:>7}  "
            f"{_example(values, known)}"
        )
    more = len(names) - _MAX_COLUMNS
    return [*lines, f"  and {more:,} more"] if more > 0 else lines


def _kind(values: Sequence[object], column: ColumnReading | None) -> tuple[str, float]:
    """Return the kind of a column, and the share of its values that are only text."""
    counts = column.counts if column is not None else {"time": 0}
    numbers = sum(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    present = sum(value is not None for value in values)
    if not present:
        return "none", 0.0
    times = counts["time"]
    if column is not None and not column.is_text and numbers + times:
        kind = "time" if times > numbers else "number"
        return kind, counts["text"] / max(1, sum(counts.values()) - counts["gap"])
    return ("number", 1 - numbers / present) if 2 * numbers > present else ("text", 1.0)


def _example(values: Sequence[object], column: ColumnReading | None) -> str:
    if column is not None and column.sample is not None and _is_converted(column):
        return f"{column.sample[0]!r} is {shown_value(column.sample[1])}"
    found = next((value for value in values if value is not None), None)
    return "" if found is None else shown_value(found)[:40]


def warnings(head: Sequence[Row], layout: Layout) -> Iterator[str]:
    """Yield a line for each probable mistake in the first rows of a source."""
    classes = Counter(row.y for row in head if row.y is not None)
    yield from _one_class(classes)
    yield from at_end(layout)
    named = [row for row in head if isinstance(row.x, Mapping)]
    if named:
        names = [*dict.fromkeys(name for row in named for name in row.x)][:_MAX_COLUMNS]
        labelled = [row for row in named if row.y is not None]
        for name in names:
            column = [row.x.get(name) for row in named if isinstance(row.x, Mapping)]
            yield from _written_with_words(name, [v for v in column if v is not None])
        if _can_leak(classes):
            for name in names:
                values = [row.x.get(name) for row in labelled if isinstance(row.x, Mapping)]
                yield from _leak(name, values, labelled, classes)


def _one_class(classes: Mapping[str, int]) -> Iterator[str]:
    for labels in _same_but_case(classes):
        shown = ", ".join(f"{label[:40]} {classes[label]:,}" for label in labels)
        yield f"  warning   labels {shown} are probably one class: --label-case lower joins them"


def _same_but_case(texts: Iterable[str]) -> Iterator[list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for text in dict.fromkeys(texts):
        groups[text.strip().casefold()].append(text)
    return (group[:8] for group in groups.values() if len(group) > 1)


def _day(value: object) -> date | None:
    """Return the day that a number may stand for, counted as by Excel or written as 20251231."""
    if not isinstance(value, int | float):
        return None
    if _EXCEL_DAYS[0] < value < _EXCEL_DAYS[1]:
        return date(1899, 12, 30) + timedelta(int(value))
    with suppress(ValueError):
        return datetime.strptime(f"{value:.15g}", "%Y%m%d").date()
    return None


def at_end(layout: Layout, told: Sequence[str] = ()) -> Iterator[str]:
    """Yield what the rows so far show of a table; without columns that `told` lines name."""
    for line in _set_aside(layout):
        if not any(each.startswith(line.partition(":")[0]) for each in told):
            yield line
    if layout.left_out and not any(each.startswith(_LEFT_OUT) for each in told):
        yield f"{_LEFT_OUT}{'; '.join(layout.left_out)}"


def _written_with_words(name: str, values: Sequence[object]) -> Iterator[str]:
    """Yield a warning for numbers with a word behind them, for days of Excel, for cases."""
    texts = [value for value in values if isinstance(value, str)]
    if found := [text for text in texts if _WITH_WORD.fullmatch(text)]:
        if 2 * len(found) > len(values):
            yield (
                f"  warning   {name}: values such as {found[0][:40]!r} are text: write the number "
                "alone, or with a currency or %"
            )
    elif not texts and values and _NAME_OF_TIME.search(name):
        days = [_day(value) for value in values]
        if None not in days:
            yield (
                f"  warning   {name} is a number; if {values[0]:.15g} is the day {days[0]}, write "
                "it as that"
            )
    elif len({*texts}) <= _MAX_CATEGORIES:
        for group in _same_but_case(texts):
            yield f"  warning   {name}: {', '.join(group)} are probably one value"


def _set_aside(layout: Layout) -> Iterator[str]:
    """Yield a line for each column of numbers or times with other texts, or with bare numbers."""
    for name, column in layout.cells.columns.items() if layout.cells else ():
        texts, values = column.counts["text"], column.counts["number"] + column.counts["time"]
        if not column.is_text and texts and values:
            example = next((t for t, (kind, _) in column.remembered.items() if kind == "text"), "")
            yield (
                f"  warning   {name}: {texts:,} of {texts + values:,} values are text, such as "
                f"{example[:40]!r}: --na {shlex.quote(example[:40])} makes it a gap"
            )
        if {"", "%"} <= column.units:
            yield (
                f"  warning   {name} has values with % and without: 12 % and 12 are both read as 12"
            )


def _can_leak(classes: Mapping[str, int]) -> bool:
    counts = sorted(classes.values())
    return len(counts) > 1 and sum(counts) >= _MIN_LABELLED and counts[-2] >= _MIN_OF_SECOND_CLASS


def _leak(
    name: str, values: Sequence[object], rows: Sequence[Row], classes: Mapping[str, int]
) -> Iterator[str]:
    """Yield a warning if a column nearly determines the label, or is filled for a class alone."""
    labels = [row.y for row in rows]
    errors = len(labels) - max(classes.values())
    advice = f"known beforehand? If not: --drop {shlex.quote(name)}"
    pairs = {(value, label) for value, label in zip(values, labels, strict=True)}
    if _errors([value is None for value in values], labels) <= _UNEXPLAINED * errors:
        yield f"  warning   {name} is filled for some labels and empty for others: {advice}"
    elif len(pairs) == len(classes) == len({value for value, _ in pairs}):
        yield f"  warning   {name} is the label under another name: {advice}"
    elif _errors(_bins(values), labels) <= _UNEXPLAINED * errors:
        yield f"  warning   {name} nearly determines the label: {advice}"


def _bins(values: Sequence[object]) -> list[Hashable]:
    """Return values as few groups: numbers by rank, others as they are, rare ones as one group."""
    numbers = [v for v in values if isinstance(v, int | float) and v == v]
    counts = Counter(map(str, values))
    if len(counts) <= len(values) // 10:
        return [str(value) for value in values]
    if 2 * len(numbers) < len(values):
        return [str(v) if counts[str(v)] >= 10 else None for v in values]
    numbers.sort()
    edges = [numbers[len(numbers) * i // _BINS] for i in range(1, _BINS)]
    return [
        sum(v > edge for edge in edges) if isinstance(v, int | float) else str(v) for v in values
    ]


def _errors(groups: Sequence[Hashable], labels: Sequence[str | None]) -> int:
    """Return the errors of the rule that gives each group its most frequent label."""
    counts: dict[Hashable, Counter[str | None]] = defaultdict(Counter)
    for group, label in zip(groups, labels, strict=True):
        counts[group][label] += 1
    return sum(each.total() - max(each.values()) for each in counts.values())


def identifies_rows(values: Sequence[object]) -> bool:
    """Return whether nearly all values differ and are codes or rising whole numbers."""
    present = [value for value in values if value is not None]
    if len({*present}) < _NEARLY * len(present):
        return False
    if all(isinstance(value, str) for value in present):
        codes = [value for value in map(str, present) if " " not in value and _has_digit(value)]
        return len(codes) >= _NEARLY * len(present)
    if not all(isinstance(v, int | float) and v == v and v % 1 == 0 for v in present):
        return False
    rising = all(b > a for a, b in pairwise(present))  # type: ignore[operator]  # numbers
    return rising or len({len(f"{value:.0f}") for value in present if abs(value) >= 1e5}) == 1  # type: ignore[arg-type]  # numbers


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))
