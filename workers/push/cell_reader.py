"""Read the cells of a table in its convention, which the first rows decide.

The first rows of each column decide. A value that has one reading, such as ``20,95`` or
``31.12.2025``, proves a convention for its column, and for columns without a proof if no other
column proves the opposite. Where two readings remain possible, the user is asked.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal as DecimalNumber
from typing import Any, get_args

from workers.push.cell_text import Decimal, Number, Order, number_of, times_of
from workers.push.convention import Convention
from workers.push.reading import BadSource, Reading
from workers.push.times import in_one_zone, in_zone, zone_of

GAPS = frozenset(
    ("", "n/a", "#n/a", "#nv", "#n/d", "n/d", "nan", "null", "(null)", "\\n", "<na>", "(blank)",
     "(leer)", "-", "--", "–", "—")
)  # fmt: skip
"""Texts in lower case that stand for a missing value in every column."""

GAPS_AMONG_NUMBERS = frozenset(
    ("na", "n.a.", "k.a.", "nil", "none", ".", "#div/0!", "#value!", "#ref!", "#name?", "#num!",
     "#null!", "#wert!", "#bezug!", "#zahl!", "#valeur!", "#valor!", "#nom?", "#¡valor!")
)  # fmt: skip
"""Texts in lower case that stand for a missing value in columns of numbers and times."""

_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?")
_MONTH = re.compile(r"(?:0?[1-9]|1[0-2])\.(?:19|20)[0-9]{2}")  # 10.2025 is no number
_CODE = re.compile("(?=[0-9]*[A-Za-z])(?=[A-Za-z]*[0-9])[0-9A-Za-z]+")
_MAY_BE_CODE = re.compile("[0-9]+[eE][0-9]+")  # 1E5 among 2B3 and 4A is no number
_MAX_REMEMBERED = 1 << 15  # texts of a column whose value is remembered
_MAX_ASKED = 5  # columns that one question names

_SAYS = {",": "with a decimal comma", ".": "with a decimal point",
         "dmy": "with the day first", "mdy": "with the month first",
         "ymd": "with the year first"}  # fmt: skip
_OPTIONS = {",": "--decimal ,", ".": "--decimal .", "dmy": "--day-first", "mdy": "--month-first",
            "ymd": "years of four digits"}  # fmt: skip


class Undecided(BadSource):
    """Two readings of a table remain possible; the message is the question."""


class SecondHeader(BadSource):
    """The first row has words where all others have numbers or times."""


@dataclass(slots=True)
class ColumnReading:
    """How a column is read, and examples of its cells."""

    is_text: bool = False
    may_be_plain: bool = True  # whether a number without a unit needs no check
    takes_codes: bool = False  # whether 1E5 is a number: others have exponents with a sign or point
    has_sides: bool = False  # whether S and DR behind a number mark a debit: H or CR mark others
    decimal: Decimal | None = None
    order: Order | None = None
    clock: str | None = None  # the first time with a clock: all have a time zone, or none
    units: frozenset[str] = frozenset()
    # Cells by kind
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("number", "time", "text", "gap"), 0)
    )
    sample: tuple[str, object] | None = None  # a cell as it is written, and its value
    remembered: dict[str, tuple[str, object]] = field(default_factory=dict)


class CellReader:
    """Reads the cells of a table: numbers as numbers, times in ISO 8601, gaps as None.

    What the user gives replaces what is known of the feed; `learn` finds the rest.
    """

    def __init__(self, reading: Reading) -> None:
        known = reading.known or Convention()
        self._given = reading
        if reading.decimal is not None:
            known = known.model_copy(update={"decimal": reading.decimal, "own_decimal": {}})
        if reading.order is not None:
            known = known.model_copy(update={"order": reading.order, "own_order": {}})
        self._known = known
        self.decimal, self.order = known.decimal, known.order
        self.columns: dict[str, ColumnReading] = {}
        self._na = frozenset(reading.na)
        zone = reading.zone or known.zone
        self._zone = None if zone is None else zone_of(zone)

    def learn(self, cells: Mapping[str, Sequence[object]]) -> None:
        """Find how each column is read from the cells of the first rows.

        Raises BadSource with a question if two readings of a column remain possible.
        """
        found = {name: _Evidence(self._texts(values)) for name, values in cells.items()}
        decimals = self._settled("decimal", found)
        orders = self._settled("order", found)
        self.decimal = self.decimal or _only(decimals.values())
        self.order = self.order or _only(orders.values())
        self._refuse_second_header(found)
        questions = []
        for name, evidence in found.items():
            column = self.columns[name] = ColumnReading()
            # A new column of a known table has no kind yet: its texts are texts in any case.
            is_known = self._given.known is not None
            column.is_text = name in self._known.texts if is_known else evidence.is_text
            column.is_text |= name in self._given.texts
            column.takes_codes = is_known or evidence.has_exponents
            column.units = self._units(name, evidence)
            column.has_sides = evidence.has_credits
            column.may_be_plain = not column.is_text and "%" not in column.units
            column.decimal = decimals.get(name)
            column.order = orders.get(name)
            if not column.is_text:
                questions += self._questions(name, evidence)
                self._check_zones(name, evidence)
        if questions:
            raise Undecided("; ".join(questions[:_MAX_ASKED]))

    def _refuse_second_header(self, found: "Mapping[str, _Evidence]") -> None:
        """Raise SecondHeader if the first row has words where all others have numbers or times."""
        values = {name: one for name, one in found.items() if not one.is_text and one.values > 1}
        firsts = {name: one for name, one in values.items() if one.first_row == 1}
        if not all(one.first_is_word for one in firsts.values()):
            return
        for name, one in firsts.items():
            if one.words == 1:
                raise SecondHeader(
                    f"row 1 has {one.first!r} where {name} has numbers or times below: if it is a "
                    "second line of names, or of units, delete it; if it is a gap, say "
                    f"--na {shlex.quote(one.first)}"
                )

    def _check_zones(self, name: str, evidence: "_Evidence") -> None:
        """Raise Undecided if some times of a column have a time zone and others none."""
        first = None
        for row, times in evidence.times if self._zone is None else ():
            try:
                first = in_one_zone(name, first, next(iter(times.values())))
            except BadSource as error:
                raise Undecided(f"{error} (row {row})") from None

    def _units(self, name: str, evidence: "_Evidence") -> frozenset[str]:
        """Return the units of a column of values; a later currency must be one of them."""
        if (known := self._known.units.get(name)) is not None:
            return frozenset((known,))
        currencies = [unit for unit in evidence.units if unit not in ("", "%")]
        if len(currencies) > 1 and not self.columns[name].is_text:
            shown = " and ".join(
                f"{text!r} (row {row})" for row, text in map(evidence.units.__getitem__, currencies)
            )
            raise Undecided(
                f"{name} has {shown}, in two currencies: convert one of them, or leave the column "
                f"out with --drop {shlex.quote(name)}"
            )
        return frozenset(evidence.units)

    def _texts(self, values: Iterable[object]) -> list[tuple[int, str]]:
        """Return the cells with a text that is no gap, with their rows."""
        texts = ((row, v.strip()) for row, v in enumerate(values, 1) if isinstance(v, str))
        gaps = GAPS | GAPS_AMONG_NUMBERS | {"?"}
        return [(row, t) for row, t in texts if t.lower() not in gaps and t not in self._na]

    def _settled(self, kind: str, found: "Mapping[str, _Evidence]") -> dict[str, Any]:
        """Return the sign, or the order, of the columns that prove one or are known."""
        settled: dict[str, Any] = {}
        for name, evidence in found.items():
            if evidence.is_text:
                continue
            proofs = evidence.proofs[kind]
            known = getattr(self._known, f"own_{kind}").get(name)
            if known is None and self._is_pinned(kind):
                known = getattr(self._known, kind)
            if known is None and len(proofs) > 1:
                shown = " and ".join(f"{text!r} (row {row})" for row, text in proofs.values())
                ways = " or ".join(_OPTIONS[each] for each in proofs)
                raise Undecided(f"{name} has {shown}, in two conventions: say which with {ways}")
            if known is not None or proofs:
                settled[name] = known if known is not None else next(iter(proofs))
        return settled

    def _is_pinned(self, kind: str) -> bool:
        """Return whether the feed has a convention, which holds although a column differs."""
        is_given = getattr(self._given, kind) is not None
        return not is_given and self._given.known is not None

    def _questions(self, name: str, evidence: "_Evidence") -> list[str]:
        column = self.columns[name]
        questions = []
        if evidence.unclear_number and (column.decimal or self.decimal) is None:
            row, text, number = evidence.unclear_number
            questions.append(_question(name, row, text, _by_sign(number)))
        if evidence.unclear_time and (column.order or self.order) is None:
            row, text, times = evidence.unclear_time
            questions.append(_question(name, row, text, times))
        if evidence.unclear_code and not column.takes_codes:
            questions.append(_code_question(name, *evidence.unclear_code))
        return questions

    def read(self, name: str, value: object) -> object:
        """Return the value of a cell. Raises BadSource if it contradicts the convention."""
        column = self.columns.get(name)
        if column is None:
            column = self.columns[name] = ColumnReading()
        if not isinstance(value, str):
            return self._typed(name, column, value)
        # Most cells are plain numbers; a point is decimal only if the column has decimal points.
        if (
            column.may_be_plain
            and _PLAIN.fullmatch(value)
            and ("." not in value or (column.decimal or self.decimal) == ".")
        ):
            column.counts["number"] += 1
            return float(value)
        text = value.strip()
        found = column.remembered.get(text)
        if found is None:
            found = self._read(name, column, text)
            if len(column.remembered) < _MAX_REMEMBERED:
                column.remembered[text] = found
            if found[0] in ("number", "time") and _is_better(text, found[1], column.sample):
                column.sample = text, found[1]
        column.counts[found[0]] += 1
        return found[1]

    def _typed(self, name: str, column: ColumnReading, value: object) -> object:
        found = _typed(name, value)
        if column.units == {"%"} and found and isinstance(value, int | float):
            raise _of_another_unit(name, value, column.units)  # 12 % is 0.12 in a spreadsheet
        return self._zoned(name, column, found) if isinstance(value, date) else found  # type: ignore[arg-type]  # text of a date

    def _read(self, name: str, column: ColumnReading, text: str) -> tuple[str, object]:
        plain = text.lower()
        if text in self._na or plain in GAPS or plain == "?":
            return "gap", None
        if column.is_text:
            return "text", text
        if plain in GAPS_AMONG_NUMBERS:
            return "gap", None
        if (number := number_of(text)) is not None and (column.has_sides or not number.side):
            self._check_unit(name, column, text, number)
            if not column.takes_codes and _MAY_BE_CODE.fullmatch(text) and "E" in text:
                raise Undecided(_code_question(name, None, text))
            return "number", self._number(name, column, text, number)
        if (times := times_of(text)) is not None:
            return "time", self._zoned(name, column, self._time(name, column, text, times))
        return "text", text

    def _check_unit(self, name: str, column: ColumnReading, text: str, number: Number) -> None:
        """Raise BadSource for a second currency, or for a bare number where all are per cent."""
        unit, known = number.unit, column.units
        is_bare = unit == "" and known == {"%"} and number.point != 0
        if is_bare or (unit and known - {""} and unit not in known):
            raise _of_another_unit(name, text, known)
        if unit and not known - {""}:
            column.units = known | {unit}

    def _number(self, name: str, column: ColumnReading, text: str, number: Number) -> float:
        if number.comma == number.point:
            return number.point  # type: ignore[return-value]  # not both are None
        signs = _by_sign(number)
        return signs[self._sign("decimal", name, column, text, signs)]

    def _time(self, name: str, column: ColumnReading, text: str, times: dict[Order, str]) -> str:
        if len(times) > 1 and len({*times.values()}) == 1:
            return next(iter(times.values()))
        if times.keys() == {"ymd"} and text[:4].isdecimal():
            return times["ymd"]
        return times[self._sign("order", name, column, text, times)]

    def _zoned(self, name: str, column: ColumnReading, text: str) -> str:
        """Return a time in ISO 8601, in UTC if the zone of local times is known."""
        if self._zone is not None:
            return in_zone(name, text, self._zone)
        column.clock = in_one_zone(name, column.clock, text)
        return text

    def _sign(
        self, kind: str, name: str, column: ColumnReading, text: str, readings: Mapping[Any, Any]
    ) -> Any:
        """Return the sign or order by which a cell is read, of those that are possible."""
        sign = getattr(column, kind) or getattr(self, kind)
        if sign is None:
            if len(readings) > 1:
                raise Undecided(_question(name, None, text, readings))
            sign = next(iter(readings))
            setattr(self, kind, sign)  # the first proof after the examined rows
        if sign not in readings:
            where = "this feed's tables are" if self._given.known is not None else "the table is"
            other = _OPTIONS[next(iter(readings))]
            raise BadSource(
                f"{name} is {text!r}, but {where} read {_SAYS[sign]}: correct the value, or read "
                f"the table with {other}"
            )
        return sign

    def convention(self, encoding: str | None) -> Convention:
        """Return what was found, to be stored with the feed."""
        known = self._known
        texts = {*known.texts, *(name for name, c in self.columns.items() if c.is_text)}
        own: dict[str, dict[str, Any]] = {}
        for kind in ("decimal", "order"):
            columns = {name: getattr(column, kind) for name, column in self.columns.items()}
            columns = {**getattr(known, f"own_{kind}"), **columns}
            own[kind] = {n: v for n, v in columns.items() if v not in (None, getattr(self, kind))}
        return Convention(
            decimal=self.decimal,
            order=self.order,
            encoding=encoding or known.encoding,
            label_case=self._given.label_case or known.label_case,
            time_unit=self._given.time_unit or known.time_unit,
            zone=self._given.zone or known.zone,
            texts=tuple(sorted(texts)),
            own_decimal=own["decimal"],
            own_order=own["order"],
            units={**known.units, **self._own_units()},
        )

    def _own_units(self) -> dict[str, str]:
        """Return the units of the columns that have one, if all values of a per cent do."""
        return {
            name: unit
            for name, column in self.columns.items()
            for unit in column.units
            if unit not in ("", "%") or column.units == {"%"}
        }


class _Evidence:
    """What the cells of a column prove."""

    def __init__(self, texts: Sequence[tuple[int, str]]) -> None:
        self.proofs: dict[str, dict[Any, tuple[int, str]]] = {"decimal": {}, "order": {}}
        self.unclear_number: tuple[int, str, Number] | None = None
        self.unclear_code: tuple[int, str] | None = None
        self.has_exponents = False  # whether one is more than digits, as in 1.5e3 and 1e-3
        self.unclear_time: tuple[int, str, dict[Order, str]] | None = None
        self.units: dict[str, tuple[int, str]] = {}  # with the first row and text
        self.times: list[tuple[int, dict[Order, str]]] = []
        self.values = self.words = 0  # numbers and times; other texts
        self.first_row, self.first = texts[0] if texts else (0, "")
        self.first_is_word = False
        numbers = [number_of(text) for _, text in texts]
        self.has_credits = any(number is not None and number.side == "H" for number in numbers)
        orders = frozenset(get_args(Order))
        for (row, text), number in zip(texts, numbers, strict=True):
            if number is not None and (self.has_credits or not number.side):
                self.values += 1
                self.units.setdefault(number.unit, (row, text))
                self._note_number(row, text, number)
            elif (times := times_of(text)) is not None:
                self.values += 1
                self.times.append((row, times))
                orders = self._note_time(row, text, times, orders)
            else:
                self.words += 1
                self.first_is_word |= self.words == 1 and row == self.first_row
        # Codes such as 01067 beside 10115 are texts, unless amounts such as 1,50 stand beside them.
        has_code = any(len(t) > 1 and t[0] == "0" and t.isdecimal() for _, t in texts)
        have_words = any(map(_MAY_BE_CODE.fullmatch, (t for _, t in texts))) and any(
            _CODE.fullmatch(t) and not _MAY_BE_CODE.fullmatch(t) for _, t in texts
        )
        are_codes = has_code and not self.proofs["decimal"] and not {*self.units} - {""}
        are_months = bool(texts) and all(_MONTH.fullmatch(text) for _, text in texts)
        self.is_text = are_codes or have_words or are_months or 2 * self.values < len(texts)

    def _note_number(self, row: int, text: str, number: Number) -> None:
        if "E" in text and self.unclear_code is None and _MAY_BE_CODE.fullmatch(text):
            self.unclear_code = row, text
        elif number.has_exponent and not _MAY_BE_CODE.fullmatch(text):
            self.has_exponents = True
        if number.comma == number.point:
            return
        if number.comma is None or number.point is None:
            self.proofs["decimal"].setdefault("," if number.point is None else ".", (row, text))
        elif self.unclear_number is None:
            self.unclear_number = row, text, number

    def _note_time(
        self, row: int, text: str, times: dict[Order, str], orders: frozenset[Order]
    ) -> frozenset[Order]:
        """Note which orders are possible; return those that all times so far allow."""
        if (len(times) == 3 and len({*times.values()}) == 1) or text[:4].isdecimal():
            return orders
        left = orders & times.keys()
        if not left:  # a contradiction
            for order in times:
                self.proofs["order"].setdefault(order, (row, text))
            return orders
        if len(left) == 1:
            self.proofs["order"].setdefault(next(iter(left)), (row, text))
        elif self.unclear_time is None:
            self.unclear_time = row, text, times
        return left


def _of_another_unit(name: str, value: object, known: frozenset[str]) -> BadSource:
    usual = " or ".join(sorted(known - {""}))
    return BadSource(f"{name} is {value!r}, but its other values are in {usual}: convert it")


def _by_sign(number: Number) -> dict[Decimal, float]:
    signs: dict[Decimal, float | None] = {",": number.comma, ".": number.point}
    return {sign: value for sign, value in signs.items() if value is not None}


def _only(values: Iterable[Any]) -> Any:
    """Return the value that all have; None if they differ, or there is none."""
    found = {*values}
    return next(iter(found)) if len(found) == 1 else None


def _question(name: str, row: int | None, text: str, readings: Mapping[Any, object]) -> str:
    where = "" if row is None else f" (row {row})"
    shown = " or ".join(f"{shown_value(value)} {_SAYS[sign]}" for sign, value in readings.items())
    ways = " or ".join(_OPTIONS[sign] for sign in readings)
    return f"{name} is {text!r}{where}, which may be {shown}: say which with {ways}"


def _code_question(name: str, row: int | None, text: str) -> str:
    where = "" if row is None else f" (row {row})"
    number = text.replace("E", ".0E")
    return (
        f"{name} is {text!r}{where}, which may be a code or a number: say --text "
        f"{shlex.quote(name)} for codes, or write {number} for a number"
    )


def shown_value(value: object) -> str:
    """Return a value as the user would type it."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _is_better(text: str, value: object, before: tuple[str, object] | None) -> bool:
    """Return whether a cell shows more of a convention than the sample so far."""
    return before is None or (len(before[0]) < len(text) and text != shown_value(value))


def _typed(name: str, value: Any) -> object:
    """Return a value of a spreadsheet or a Parquet file as one that an entry may hold."""
    if value is None or isinstance(value, bool | int | float):
        return None if value != value else value
    if isinstance(value, date):  # a datetime, too
        return value.isoformat()
    if isinstance(value, DecimalNumber):
        return float(value)
    with suppress(AttributeError, TypeError):
        return float(value.total_seconds())
    if type(value).__name__ == "time":
        return str(value)
    raise BadSource(f"{name} is of type {type(value).__name__}, which no table of a feed holds")
