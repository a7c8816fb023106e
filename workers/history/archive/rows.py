"""Rows and columns of an archive.

Every row has the ID of its entry, and the bytes that Redis had: `fields` of an input entry,
`payload` of an answer, a report or an alarm. The other columns repeat what queries need most. Text
that is not UTF-8, and numbers that do not fit their column, are left out of these; the bytes have
them.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from workers.feed.position import parse_id
from workers.history.archive.layout import LAST_MS

if TYPE_CHECKING:
    from workers.broker.batch_size import Entry
    from workers.reading.true_labels import Truth

Row = dict[str, Any]

_INTEGER, _NUMBER, _TEXT, _FLAG = "int64", "float64", "string", "bool_"

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "input": {"id": _TEXT, "label": _TEXT},
    "labels": {"id": _TEXT, "label": _TEXT, "is_late": _FLAG},
    "reports": {"n": _INTEGER, "scored": _INTEGER, "payload": _TEXT},
    "alarms": {"payload": _TEXT},
    "answers": {
        "seq": _INTEGER, "n": _INTEGER, "status": _TEXT, "id": _TEXT, "label": _TEXT,
        "probability": _NUMBER, "lower": _NUMBER, "upper": _NUMBER, "guarantee": _TEXT,
        "payload": _TEXT,
    },
}  # fmt: skip
"""Columns of each kind and their types in Arrow, beside `entry` and `time`; input has `fields`."""


def schema(kind: str, pa: Any) -> Any:
    """Return the Arrow schema of a kind; `pa` is pyarrow."""
    columns = [("entry", pa.string()), ("time", pa.timestamp("ms", tz="UTC"))]
    columns += [(name, getattr(pa, type_)()) for name, type_ in COLUMNS[kind].items()]
    if kind == "input":
        columns.append(("fields", pa.list_(pa.binary())))
    return pa.schema(columns)


def of_input(entry: "Entry") -> Row:
    """Return the row of an input entry.

    Examples
    --------
    >>> row = of_input((b"5-1", [b"x", b"[1]", b"y", b"ham"]))
    >>> row["entry"], row["label"], row["fields"]
    ('5-1', 'ham', [b'x', b'[1]', b'y', b'ham'])
    """
    flat = entry[1]
    named = dict(zip(flat[::2], flat[1::2], strict=False))
    texts = {"id": _decoded(named.get(b"id")), "label": _decoded(named.get(b"y"))}
    return _located(entry[0]) | texts | {"fields": list(flat)}


def of_answer(entry_id: bytes, payload: bytes, message: Mapping[str, Any]) -> Row:
    """Return the row of an answer."""
    return _located(entry_id) | _columns("answers", message) | {"payload": payload.decode()}


def of_report(entry_id: bytes, payload: bytes, message: Mapping[str, Any]) -> Row:
    """Return the row of a report."""
    return _located(entry_id) | _columns("reports", message) | {"payload": payload.decode()}


def of_alarm(entry_id: bytes, payload: bytes) -> Row:
    """Return the row of the alarms of an entry."""
    return _located(entry_id) | {"payload": payload.decode()}


def of_label(entry_id: bytes, message: Mapping[str, Any], truth: "Truth") -> Row | None:
    """Return the row of the label that came with an entry, as the feed spells it; or None.

    A late label names its example by the producer's id. A label that came with its example has the
    entry ID of the answer.

    Examples
    --------
    >>> row = of_label(b"5-0", {"status": "label", "example": "a", "label": "ham"}, None)
    >>> row["id"], row["label"], row["is_late"]
    ('a', 'ham', True)
    """
    if message.get("status") == "label":
        sent = {"id": _text(message.get("example")), "label": _text(message.get("label"))}
        return _located(entry_id) | sent | {"is_late": True}
    if truth.label is None:
        return None
    known = {"id": _text(message.get("id")), "label": truth.label}
    return _located(entry_id) | known | {"is_late": False}


def _located(entry_id: bytes) -> Row:
    time = parse_id(entry_id)[0]
    return {"entry": entry_id.decode(), "time": time if time <= LAST_MS else None}


def _columns(kind: str, message: Mapping[str, Any]) -> Row:
    """Return the columns that repeat parts of a payload."""
    return {
        name: _READERS[type_](message.get(name))
        for name, type_ in COLUMNS[kind].items()
        if name != "payload"
    }


def _integer(value: Any) -> int | None:
    is_one = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return value if is_one else None


def _number(value: Any) -> float | None:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_one else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


_READERS: Mapping[str, Callable[[Any], Any]] = {
    _INTEGER: _integer, _NUMBER: _number, _TEXT: _text,
}  # fmt: skip
