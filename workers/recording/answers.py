"""Entries and answers as rows, from which the same bytes are made again.

A payload is the JSON of its fields in their order (`message.encode`). What many answers share, the
order of fields, types, and the constants of a model, is a *form*, which is stored once. The rest
are columns: the numbers of classes, which have six decimals, in one BLOB of big-endian 32-bit
millionths; others as they are. A payload that is not made again exactly is stored whole instead.
"""

import sqlite3
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from workers.broker.streams import Entry, payload
from workers.feed.keys import FIELD
from workers.message.encode import dumps

Row = tuple[Any, ...]

INPUT_FIELDS = (
    "x", "xb", "y", "id", "for", "time", "s", "score", "score_version", "p", "traceparent",
)  # fmt: skip
"""Fields of an input entry that have a column of their own."""

_INPUT_COLUMNS = ", ".join(f'"{name}"' for name in ("fields", *INPUT_FIELDS, "other"))
SELECT_INPUT = f"SELECT ms, number, {_INPUT_COLUMNS} FROM input"
INSERT_INPUT = (
    f"INSERT INTO input (seq, ms, number, {_INPUT_COLUMNS}) "
    f"VALUES (?, ?, ?, ?, {', '.join('?' * len(INPUT_FIELDS))}, ?)"
)

_NAMES = {name.encode(): i for i, name in enumerate(INPUT_FIELDS)}
_LENGTH = struct.Struct("<I")
_BEYOND = 1 << 63  # integers of SQLite are smaller


def id_columns(entry_id: bytes) -> tuple[int | str, int | str]:
    """Return the two parts of an entry ID as they are stored.

    Examples
    --------
    >>> id_columns(b"17-3"), id_columns(b"9223372036854775808-0")
    ((17, 3), ('09223372036854775808', 0))
    """
    ms, _, number = entry_id.partition(b"-")
    return _part(int(ms)), _part(int(number))


def _part(value: int) -> int | str:
    return value if value < _BEYOND else f"{value:020d}"


def entry_id(ms: int | str, number: int | str) -> bytes:
    """Return the entry ID of two stored parts."""
    return b"%d-%d" % (int(ms), int(number))


def text(value: bytes) -> str | bytes:
    """Return bytes as text, if they are UTF-8: other tools show it."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def plain(value: str | bytes) -> bytes:
    """Return the bytes of a result of `text`."""
    return value.encode() if isinstance(value, str) else value


def framed(parts: Sequence[bytes]) -> bytes:
    """Return byte strings, each after its length, as one."""
    return b"".join(piece for part in parts for piece in (_LENGTH.pack(len(part)), part))


def unframed(data: bytes) -> list[bytes]:
    """Return the parts of a result of `framed`. Raises ValueError if it is cut."""
    parts, at = list[bytes](), 0
    while at < len(data):
        if at + _LENGTH.size > len(data):
            raise ValueError("a length is cut")
        end = at + _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
        if end > len(data):
            raise ValueError("a part is cut")
        parts.append(data[at + _LENGTH.size : end])
        at = end
    return parts


def input_row(seq: int, entry: Entry) -> Row:
    """Return the row of an input entry: a column a field, or `other` for fields without one.

    An entry without an ID is a row of a table.
    """
    names, values = entry[1][::2], entry[1][1::2]
    head = (seq, *(id_columns(entry[0]) if entry[0] else (None, None)))
    columns: list[Any] = [None] * len(INPUT_FIELDS)
    if len(set(names)) == len(names) and all(name in _NAMES for name in names):
        for name, value in zip(names, values, strict=True):
            columns[_NAMES[name]] = bytes(value) if name == b"xb" else text(value)
        return (*head, b",".join(names).decode(), *columns, None)
    return (*head, None, *columns, framed(entry[1]))


def input_entry(row: Sequence[Any]) -> Entry:
    """Return the entry of a row of `SELECT_INPUT`."""
    at = b"" if row[0] is None else entry_id(*row[:2])
    fields, other = row[2], row[-1]
    if fields is None:
        return at, unframed(other)
    flat = list[bytes]()
    for name in fields.encode().split(b",") if fields else ():
        flat += [name, plain(row[3 + _NAMES[name]])]
    return at, flat


def payload_entry(row: Sequence[Any]) -> Entry:
    """Return the entry of (ms, number, payload)."""
    return entry_id(*row[:2]), [FIELD.encode(), plain(row[2])]


OF_CLASSES = ("probabilities", "intervals", "venn", "maps", "map_intervals")
"""Fields whose numbers are in the BLOB, in the order of the payload."""

_TEXT = ("status", "id", "label", "svm_label", "action", "code", "example", "done", "traceparent")
_INTEGER = (
    "n", "category", "category_size", "model", "calibration", "taxonomy", "imputed", "first",
)  # fmt: skip
_REAL = ("lower", "upper", "probability", "expected_cost", "label_probability")
TYPES: dict[str, type] = {
    **dict.fromkeys(_TEXT, str), **dict.fromkeys(_INTEGER, int), **dict.fromkeys(_REAL, float),
    "label_wanted": bool, "scores": list, "set": list, "about": dict,
}  # fmt: skip
"""Fields that have a column of their own, with the only type that it keeps."""

VALUES = tuple(TYPES)

CONSTANTS = ("v", "method", "interval_level", "classes", "guarantee", "notices")
"""Fields that are part of the form: they are the same for many answers."""

_COLUMNS = ", ".join(f'"{name}"' for name in ("form", "numbers", "payload", *VALUES))
INSERT_ANSWER = (
    f"INSERT INTO answers (seq, ms, number, {_COLUMNS}) "
    f"VALUES (?, ?, ?, ?, ?, ?{', ?' * len(VALUES)})"
)
SELECT_ANSWER = f"SELECT ms, number, seq, {_COLUMNS} FROM answers"

_MILLION = 10**6
_VALUE_AT = {name: i for i, name in enumerate(VALUES)}

_MAX_INTEGER = 1 << 62

Field = tuple[str, str, Any]
"""Name, kind, and of numbers of classes their shape, of a constant its value."""


class Form(NamedTuple):
    """What many answers share: their fields, in order."""

    fields: tuple[Field, ...]

    @property
    def text(self) -> str:
        """The stored text: kinds of the fields, and constants by name."""
        kinds = [[name, kind, None if kind == "constant" else value]
                 for name, kind, value in self.fields]  # fmt: skip
        constants = {name: value for name, kind, value in self.fields if kind == "constant"}
        return orjson.dumps({"fields": kinds, "constants": constants}).decode()

    @classmethod
    def parse(cls, stored: str) -> "Form":
        """Return the form of its stored text. Raises ValueError, KeyError or TypeError."""
        found = orjson.loads(stored)
        constants = found["constants"]
        return cls(
            tuple(
                (name, kind, constants[name] if kind == "constant" else shape)
                for name, kind, shape in found["fields"]
            )
        )


class Forms:
    """The forms of a file. New ones are added in a transaction of the caller."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self._file = file
        self._forms: dict[int, Form] = {}
        self._numbers: dict[str, int] = {}

    def row(self, seq: int, entry: Entry) -> Row:
        """Return the row of an answer."""
        data = payload(entry)
        form, numbers, values = _split(data)
        if form is not None and _joined(form, seq, numbers, values) == data:
            return (seq, *id_columns(entry[0]), self._number(form), numbers, None, *values)
        return (seq, *id_columns(entry[0]), None, None, text(data), *values)

    def entry(self, row: Sequence[Any]) -> Entry:
        """Return the entry of a row of `SELECT_ANSWER`."""
        at, (seq, form, numbers, whole, *values) = entry_id(*row[:2]), row[2:]
        data = plain(whole) if form is None else _joined(self._form(form), seq, numbers, values)
        return at, [FIELD.encode(), data]

    def _form(self, number: int) -> Form:
        if number not in self._forms:
            (stored,) = self._file.execute(
                "SELECT text FROM forms WHERE form = ?", (number,)
            ).fetchone()
            self._forms[number] = Form.parse(stored)
        return self._forms[number]

    def _number(self, form: Form) -> int:
        stored = form.text
        if stored not in self._numbers:
            constants = {name: value for name, kind, value in form.fields if kind == "constant"}
            classes = constants.get("classes") or []
            names = (len(classes), *[*classes, None, None][:2])
            guarantee = (constants.get("guarantee"), constants.get("reason"))
            self._file.execute(
                "INSERT OR IGNORE INTO forms (text, n_classes, class_0, class_1, guarantee, "
                "reason) VALUES (?, ?, ?, ?, ?, ?)",
                (stored, *names, *guarantee),
            )
            (self._numbers[stored],) = self._file.execute(
                "SELECT form FROM forms WHERE text = ?", (stored,)
            ).fetchone()
        return self._numbers[stored]

    def forget(self) -> None:
        """Forget the numbers of forms, after a transaction that may have been rolled back."""
        self._numbers.clear()


def _split(data: bytes) -> tuple[Form | None, bytes, list[Any]]:
    """Return form, numbers and values of a payload; no form if it is none of this program."""
    fields, numbers = list[Field](), list[int]()
    values: list[Any] = [None] * len(VALUES)
    try:
        for name, value in orjson.loads(data).items():
            if name == "seq":
                fields.append((name, "seq", None))
            elif name in OF_CLASSES:
                fields.append((name, "numbers", _shape(value, numbers)))
            elif name in CONSTANTS or value is None:
                fields.append((name, "constant", _constant(name, value)))
            else:
                kind, size, stored = _stored(name, value)
                fields.append((name, kind, size))
                values[_VALUE_AT[name]] = stored
        return Form(tuple(fields)), struct.pack(f">{len(numbers)}i", *numbers), values
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError, struct.error):
        return None, b"", [None] * len(VALUES)


def _constant(name: str, value: Any) -> Any:
    """Return a constant; TypeError: it is none that this program writes."""
    of_text = value if name in ("classes", "notices") else [value] if name == "guarantee" else []
    if not all(part is None or type(part) is str for part in of_text):
        raise TypeError(name)
    return value


def _shape(value: Any, numbers: list[int]) -> Any:
    """Return numbers of classes with null in place of each, and add their millionths."""
    if isinstance(value, float):
        numbers.append(round(value * _MILLION))
        return None
    if isinstance(value, dict):
        return {name: _shape(part, numbers) for name, part in value.items()}
    return [_shape(part, numbers) for part in value]


def _filled(shape: Any, numbers: Iterator[int]) -> Any:
    if shape is None:
        return next(numbers) / _MILLION
    if isinstance(shape, dict):
        return {name: _filled(part, numbers) for name, part in shape.items()}
    return [_filled(part, numbers) for part in shape]


def _stored(name: str, value: Any) -> tuple[str, int | None, Any]:
    """Return kind, size and stored value of a field; TypeError: its column keeps another type.

    A single score is a number, others are 64-bit floats.
    """
    kind: type = type(value)
    if kind is not TYPES[name] or (kind is int and abs(value) >= _MAX_INTEGER):
        raise TypeError(name)
    if name == "scores":
        if not all(type(score) is float for score in value):
            raise TypeError(name)
        packed = struct.pack(f"<{len(value)}d", *value)
        return name, len(value), value[0] if len(value) == 1 else packed
    if name in ("about", "set"):
        return "json", None, orjson.dumps(value).decode()
    return "flag" if kind is bool else "value", None, value


def _joined(form: Form, seq: int, numbers: bytes, values: Sequence[Any]) -> bytes:
    """Return the payload of a form and its values."""
    left = iter(struct.unpack(f">{len(numbers) // 4}i", numbers))
    message: dict[str, Any] = {}
    for name, kind, fixed in form.fields:
        match kind:
            case "constant":
                message[name] = fixed
            case "seq":
                message[name] = seq
            case "numbers":
                message[name] = _filled(fixed, left)
            case "scores":
                held = values[_VALUE_AT[name]]
                single = fixed == 1
                message[name] = [held] if single else [*struct.unpack(f"<{fixed}d", held)]
            case "json":
                message[name] = orjson.loads(values[_VALUE_AT[name]])
            case "flag":
                message[name] = bool(values[_VALUE_AT[name]])
            case _:
                message[name] = values[_VALUE_AT[name]]
    return dumps(message)
