"""Rows of an archive: their columns, and reading them from a feed.

Every row has the ID of its entry, and the bytes of Redis: `fields` of an input entry, `payload` of
an answer, a report or alarms. The other columns repeat parts of these bytes for queries. They are
null for text that is not UTF-8 and for numbers that do not fit.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from workers.broker.store import Store
from workers.broker.streams import Entry
from workers.feed.position import parse_id
from workers.feed.state import FeedState
from workers.offline.archive.layout import LAST_MS
from workers.reading.answers import answer, payload
from workers.reading.true_labels import TrueLabels

if TYPE_CHECKING:
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
"""Arrow types of the columns of each kind, besides `entry`, `time`, and `fields` of input."""

MAX_INPUT_BYTES = 1 << 24
"""Bytes of input that are read at once, about: the input of a page of answers may be large."""


def schema(kind: str, pa: Any) -> Any:
    """Return the Arrow schema of a kind; `pa` is pyarrow."""
    columns = [("entry", pa.string()), ("time", pa.timestamp("ms", tz="UTC"))]
    columns += [(name, getattr(pa, type_)()) for name, type_ in COLUMNS[kind].items()]
    if kind == "input":
        columns.append(("fields", pa.list_(pa.binary())))
    return pa.schema(columns)


def of_input(entry: Entry) -> Row:
    """Return the row of an input entry."""
    flat = entry[1]
    named = dict(zip(flat[::2], flat[1::2], strict=False))
    texts = {"id": _decoded(named.get(b"id")), "label": _decoded(named.get(b"y"))}
    return _located(entry[0]) | texts | {"fields": list(flat)}


def of_payload(kind: str, entry: Entry, message: Mapping[str, Any] = MappingProxyType({})) -> Row:
    """Return the row of an answer, of a report, or of the alarms of an entry."""
    return _located(entry[0]) | _columns(kind, message) | {"payload": payload(entry).decode()}


def of_label(entry_id: bytes, message: Mapping[str, Any], truth: "Truth") -> Row | None:
    """Return the row of the label in an entry, as the feed spells it; None without a label.

    A delayed label names its example by the producer's id. A label that came with its example has
    the entry ID of the answer.
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
    return {
        name: _READERS[type_](message.get(name))
        for name, type_ in COLUMNS[kind].items()
        if name != "payload"
    }


def _integer(value: Any) -> int | None:
    is_int = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return value if is_int else None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


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


@dataclass(frozen=True, slots=True)
class Gathered:
    """Some answers, and the rows of them and of their input, labels, reports and alarms."""

    ids: list[bytes]  # of the answers
    messages: list[dict[str, Any]]  # the answers
    given: list[bytes]  # IDs of their kept input
    rows: dict[str, list[Row]]  # by kind


class Gatherer:
    """Reads the rows of a feed; the rows of a combination have no input."""

    def __init__(self, store: Store, state: FeedState) -> None:
        self._store, self._truths = store, TrueLabels(store)
        self.reads_input = "join" not in json.loads(state.pinned.config)

    def gather(self, after: bytes, page: Sequence[Entry]) -> Gathered:
        """Return the answers of a page and their rows; `after` is the ID of the answer before it.

        If their input is large, only the first answers are returned.
        """
        page, given = self._with_input(after, page) if self.reads_input else (page, None)
        messages, keys = [answer(entry) for entry in page], self._store.keys
        truths = self._truths.of(page, messages, given)
        labels = (
            of_label(entry[0], message, truth)
            for entry, message, truth in zip(page, messages, truths, strict=True)
        )
        found = {
            "input": [of_input(entry) for entry in given or ()],
            "labels": [row for row in labels if row is not None],
            "reports": [
                of_payload("reports", entry, answer(entry))
                for entry in self._store.each(keys.met, after, page[-1][0])
            ],
            "alarms": [
                of_payload("alarms", entry)
                for entry in self._store.each(keys.alarms, after, page[-1][0])
            ],
            "answers": [
                of_payload("answers", entry, message)
                for entry, message in zip(page, messages, strict=True)
            ],
        }
        ids = [entry[0] for entry in page]
        return Gathered(ids, messages, [entry[0] for entry in given or ()], found)

    def _with_input(
        self, after: bytes, page: Sequence[Entry]
    ) -> tuple[Sequence[Entry], list[Entry]]:
        """Return a page and its input; if that is large, only the first answers and their input."""
        found, size = list[Entry](), 0
        for inputs in self._store.pages(self._store.keys.input, after, page[-1][0]):
            found += inputs
            size += sum(len(part) for _, fields in inputs for part in fields)
            last = parse_id(found[-1][0])
            first = [entry for entry in page if parse_id(entry[0]) <= last]
            if size >= MAX_INPUT_BYTES and first:
                return first, found
        return page, found
