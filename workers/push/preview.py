"""The look at a table: how it is read, and probable mistakes, as they come."""

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from string import whitespace
from unicodedata import category, normalize

import numpy as np

from online_svm.errors import InvalidExample
from online_svm.stream.cells import BOOLEAN, GAP, NOTHING, NUMBER, TEXT, TIME, cell, sorts
from workers.push.cell_reader import ColumnReading, shown_value
from workers.push.rows import Layout, Row
from workers.push.table_bounds import left_out_text
from workers.push.text_encoding import FALLBACK
from workers.push.times import iso
from workers.text import counted

_MAX_SHOWN = 3  # values in the short form
_MAX_COLUMNS = 200  # columns of a preview, and columns that are examined for leaks
_MIN_LABELLED = 50  # rows with a label, from which a leak is no chance
_MIN_OF_SECOND_CLASS = 5
_BINS = 20  # of a column of numbers
_UNEXPLAINED = 0.05  # share of the errors of "always the most frequent class" that a leak leaves
_NEARLY = 0.98  # share of distinct values from which on a column identifies rows
_MAX_CATEGORIES = 50  # values that are compared without case
_MAX_LABELS = 10_000  # labels whose spellings are compared
_NUMERAL = re.compile(r"[+\-\u2212]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:e[+-]?\d{1,4})?")
_AROUND = whitespace + "'\""
_BETWEEN_WORDS = re.compile(r"(?<=[^\W_])[\s_\-]+(?=[^\W_])")
_WITH_WORD = re.compile(r"[-+]?[0-9][0-9.,'\s]*\s?(?:[^\W\d]{1,8}[.²³]?|‰|°C?)")
_NAME_OF_TIME = re.compile(r"(?i)\bdate|date\b|datum|fecha|zeit|(?:\b|_)(?:am|at|on)$")
_EXCEL_DAYS = (20_000, 80_000)  # from 1954 to 2119
_KINDS = {NUMBER: "number", TEXT: "words", TIME: "time", BOOLEAN: "boolean"}
_WORDS = {",": "decimal comma", ".": "decimal point", "dmy": "day first", "mdy": "month first",
          "ymd": "year first"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableFinding:
    """A line about a source; a finding with the code and column of another one repeats it."""

    kind: str  # label, features, table, ...; warning
    text: str
    code: str = ""  # of a warning
    column: str | None = None

    def __str__(self) -> str:
        return f"  {self.kind:<10}{self.text}"


def warning(code: str, text: str, column: str | None = None) -> TableFinding:
    """Return a probable mistake."""
    return TableFinding("warning", text, code, column)


def form(layout: Layout) -> list[TableFinding]:
    """Return a finding about the form of a table and one of values, where they are not plain."""
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
    found = [TableFinding("table", "; ".join(parts))] if parts else []
    if samples:
        found.append(TableFinding("values", "; ".join(samples[:_MAX_SHOWN])))
    return found


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
    lines = [f"  {'column':<{width}}  kind     gaps   as text  a value"]
    for name in names[:_MAX_COLUMNS]:
        values = [row.x.get(name) for row in head if isinstance(row.x, Mapping)]
        known = layout.cells.columns.get(name) if layout.cells else None
        kind, texts = kind_of(values)
        gaps = sum(value is None for value in values) / len(values)
        text_share = "" if kind == "words" else f"{texts:.1%}"
        lines.append(
            f"  {name[:width]:<{width}}  {kind:<7}  {gaps:>4.0%}   {text_share:>7}  "
            f"{_example(values, known)}"
        )
    more = len(names) - _MAX_COLUMNS
    return [*lines, f"  and {more:,} more"] if more > 0 else lines


def kind_of(values: Sequence[object]) -> tuple[str, float]:
    """Return the kind of what is sent of a column, and the share of its values that are text.

    Examples
    --------
    >>> kind_of([1, 2.5, None, "<3"]), kind_of([True, "false"]), kind_of(["2025-01-05", None])
    (('number', 0.3333333333333333), ('boolean', 0.0), ('time', 0.0))
    """
    found = Counter(sorts(np.array([_cell(value) for value in values])).tolist())
    del found[NOTHING]
    if not found:
        return "none", 0.0
    texts = found[TEXT] / found.total()
    kind = "words" if 2 * texts >= 1 else _KINDS[found.most_common(1)[0][0]]
    return kind, texts


def _cell(value: object) -> float:
    try:
        return cell(value)
    except InvalidExample:
        return GAP


def _example(values: Sequence[object], column: ColumnReading | None) -> str:
    if column is not None and column.sample is not None and _is_converted(column):
        return f"{column.sample[0]!r} is {shown_value(column.sample[1])}"
    found = next((value for value in values if value is not None), None)
    return "" if found is None else shown_value(found)[:40]


def warnings(head: Sequence[Row], layout: Layout) -> Iterator[TableFinding]:
    """Yield each probable mistake in the first rows of a source."""
    classes = Counter(row.y for row in head if row.y is not None)
    yield from one_class(classes)
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


def one_class(classes: Mapping[str, int]) -> Iterator[TableFinding]:
    """Yield a warning for labels that are probably one class, with the number of each."""
    for labels in _spellings(classes, same_class):
        shown = ", ".join(f"{label[:40]} {classes[label]:,}" for label in labels)
        yield warning("one_class", f"labels {shown} are probably one class: {_joined(labels)}")


def _joined(labels: Sequence[str]) -> str:
    differ_in_case = len({label.strip().lower() for label in labels}) == 1
    return "--label-case lower joins them" if differ_in_case else "write them alike"


class LabelSpellings:
    """Tells a label that is probably the class of an earlier one, in whatever row it comes."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._seen: set[str] = set()
        self._first: dict[str, str] = {}  # of each class, the first label
        for label in labels:
            self.finding_of(label, 0)

    def finding_of(self, label: str, row: int) -> TableFinding | None:
        """Return a warning if the label is new, and another spelling of an earlier one."""
        if label in self._seen or len(self._seen) >= _MAX_LABELS:
            return None
        self._seen.add(label)
        if (first := self._first.setdefault(same_class(label), label)) == label:
            return None
        text = f"label {label[:40]!r} (row {row:,}) is probably the class {first[:40]!r}"
        return warning("one_class", f"{text}: {_joined((first, label))}")


def same_class(label: str) -> str:
    """Return a text that labels share if they are probably the same class.

    Examples
    --------
    >>> [same_class(label) for label in ("0", "-0.0", "00", "0e3", "\uff10", "0,0")]
    ['0', '0', '0', '0', '0', '0']
    >>> [same_class(label) for label in (" Not\u00a0Fraud ", "not_fraud.", "A+", "A-", "-1")]
    ['not fraud', 'not fraud', 'a+', 'a-', '-1']
    """
    seen = "".join(sign for sign in normalize("NFKC", label) if category(sign) != "Cf")
    plain = seen.strip(_AROUND).casefold()
    if _NUMERAL.fullmatch(plain):
        number = Decimal(plain.replace(",", ".").replace("\u2212", "-")).normalize()
        return str(number) if number else "0"
    return _BETWEEN_WORDS.sub(" ", plain.rstrip("."))


def _spellings(texts: Iterable[str], same: Callable[[str], str]) -> Iterator[list[str]]:
    """Yield the texts that share what `same` returns."""
    groups: dict[str, list[str]] = defaultdict(list)
    for text in dict.fromkeys(texts):
        groups[same(text)].append(text)
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


def at_end(layout: Layout, shown: Sequence[TableFinding] = ()) -> Iterator[TableFinding]:
    """Yield what the rows so far show of a table, without what was `shown`."""
    known = {(each.code, each.column) for each in shown}
    for found in (*_set_aside(layout), *_steps_back(layout)):
        if (found.code, found.column) not in known:
            yield found
    if layout.open_outcomes:
        blank = counted(layout.open_outcomes, "row")
        yield TableFinding(
            "left out", f"{blank} without a label, as the outcome is open", "no_label"
        )
    left_out = TableFinding("left out", left_out_text(layout.left_out), "rows")
    if layout.left_out and left_out not in shown:
        yield left_out


def times(head: Sequence[Row], layout: Layout) -> Iterator[TableFinding]:
    """Yield from when to when the examples of the first rows are."""
    found = [row.time for row in head if row.time is not None]
    if found and layout.time is not None and layout.times is not None:
        local = "; without a time zone, read as UTC" if layout.times.is_local() else ""
        text = f"{layout.time}, from {iso(min(found))} to {iso(max(found))}{local}"
        yield TableFinding("time", text)


def _steps_back(layout: Layout) -> Iterator[TableFinding]:
    """Yield a warning if the times of the examples do not rise."""
    if layout.times is None or layout.times.first_back is None:
        return
    name, (at, before) = layout.time or "time", layout.times.first_back
    text = f"{name} goes back in {counted(layout.times.steps_back, 'row')}, first from "
    text += f"{iso(before)} to {iso(at)}: "
    if layout.times.may_repeat_an_hour():
        text += (
            "if local times repeat an hour as summer time ends, say --zone Europe/Berlin, or theirs"
        )
    else:
        text += "sort the rows, unless the examples come in this order"
    yield warning("time_goes_back", text, layout.time)


def _written_with_words(name: str, values: Sequence[object]) -> Iterator[TableFinding]:
    """Yield a warning for numbers with a word behind them, for days of Excel, for cases."""
    texts = [value for value in values if isinstance(value, str)]
    if found := [text for text in texts if _WITH_WORD.fullmatch(text)]:
        if 2 * len(found) > len(values):
            text = f"values such as {found[0][:40]!r} are text: write the number alone, or with a "
            yield warning("number_with_word", f"{name}: {text}currency or %", name)
    elif not texts and values and _NAME_OF_TIME.search(name):
        days = [_day(value) for value in values]
        if None not in days:
            text = f"{name} is a number; if {values[0]:.15g} is the day {days[0]}, write it as that"
            yield warning("day_as_number", text, name)
    elif len({*texts}) <= _MAX_CATEGORIES:
        for group in _spellings(texts, lambda text: text.strip().casefold()):
            yield warning("one_value", f"{name}: {', '.join(group)} are probably one value", name)


def _set_aside(layout: Layout) -> Iterator[TableFinding]:
    """Yield a warning for each column of values with other texts, or with bare numbers."""
    for name, column in layout.cells.columns.items() if layout.cells else ():
        texts, values = column.counts["text"], column.counts["number"] + column.counts["time"]
        if not column.is_text and texts and values:
            example = next((t for t, (kind, _) in column.remembered.items() if kind == "text"), "")
            text = f"{name}: {texts:,} of {texts + values:,} values are text, such as "
            text += f"{example[:40]!r}: --na {shlex.quote(example[:40])} makes it a gap"
            yield warning("text_among_values", text, name)
        if {"", "%"} <= column.units:
            text = f"{name} has values with % and without: 12 % and 12 are both read as 12"
            yield warning("bare_among_per_cents", text, name)


def _can_leak(classes: Mapping[str, int]) -> bool:
    counts = sorted(classes.values())
    return len(counts) > 1 and sum(counts) >= _MIN_LABELLED and counts[-2] >= _MIN_OF_SECOND_CLASS


def _leak(
    name: str, values: Sequence[object], rows: Sequence[Row], classes: Mapping[str, int]
) -> Iterator[TableFinding]:
    """Yield a warning if a column nearly determines the label, or is filled for a class alone."""
    labels = [row.y for row in rows]
    errors = len(labels) - max(classes.values())
    advice = f"known beforehand? If not: --drop {shlex.quote(name)}"
    pairs = {(value, label) for value, label in zip(values, labels, strict=True)}
    if _errors([value is None for value in values], labels) <= _UNEXPLAINED * errors:
        fault = "is filled for some labels and empty for others"
    elif len(pairs) == len(classes) == len({value for value, _ in pairs}):
        fault = "is the label under another name"
    elif _errors(_bins(values), labels) <= _UNEXPLAINED * errors:
        fault = "nearly determines the label"
    else:
        return
    yield warning("leak", f"{name} {fault}: {advice}", name)


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
