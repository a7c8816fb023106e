"""Encode predictions as JSON payloads: the last part of the hot path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import orjson

from online_svm.errors import InvalidExample
from online_svm.stream.alarm import Alarm
from online_svm.stream.answer_columns import COLUMNS, Column, Kind
from online_svm.stream.label_counts import Done
from online_svm.stream.prediction import PredictionBlock, ValidityReport
from online_svm.types import Ints
from workers.message import VERSION
from workers.message.json_columns import (
    categories,
    dumps,
    id_parts,
    integers,
    interleave,
    literal,
    numbers,
)


def encode_block(
    block: PredictionBlock,
    seqs: Sequence[int] | Ints,
    ids: Sequence[str | None],
    extra: Mapping[str, Sequence[bytes]] | None = None,
) -> list[bytes]:
    """Return the payloads of a block of predictions, as `PredictionMessage` describes them.

    Each column is serialized in one call and split at the commas; its parts fill one template for
    the block. The bytes are those of a dict serialized for each row, a few times faster. A single
    row is serialized as such a dict.

    Parameters
    ----------
    block : PredictionBlock of m rows
    seqs : sequence of m int
        Input entries before each.
    ids : sequence of m (str or None)
        The producer's ids.
    extra : mapping of str to sequence of m bytes, optional
        Further fields at the end, by name: the JSON of each row.

    Raises
    ------
    ValueError
        If a number to be published is not finite.
    """
    if len(block) == 1 and not extra:
        return [_encode_row(block, int(seqs[0]), ids[0])]
    extra = extra or {}
    texts = [id_parts(ids), integers(np.asarray(seqs, dtype=np.int64))]
    for encode in _ENCODERS if block.status == "ok" else _COUNT_ENCODERS:
        texts += encode(block)
    template = _template(block, tuple(extra))
    return [template % row for row in zip(*texts, *extra.values(), strict=True)]


def _encode_row(block: PredictionBlock, seq: int, id: str | None) -> bytes:
    values = block.row_values(0)
    for name in _MAY_BE_ABSENT:
        if values[name] is None:
            del values[name]
    if not block.actions:
        del values["action"], values["expected_cost"]
    # Neither a map nor a number has this text, but for a number that JSON cannot hold.
    if b"null" in orjson.dumps([values[name] for name in _NUMBERS if name in values]):
        raise ValueError("a prediction holds a number that is not finite")
    return _message(block.status, id, seq=seq, **values)


def _message(status: str, id: str | None, **fields: object) -> bytes:
    """Return an answer with these fields; the producer's id stands among them if it sent one."""
    sent = {} if id is None else {"id": id}
    return dumps({"v": VERSION, "status": status, **sent, **fields})


Encoder = Callable[[PredictionBlock], list[list[bytes]]]


@dataclass(frozen=True, slots=True)
class _Encoding:
    """How columns of one kind are encoded.

    Attributes
    ----------
    placeholder : callable
        Takes what all rows of a block have in common, and the column. Returns the JSON with a
        `%b` for each text of a row; None if the field is absent.
    encoder : callable
        Takes the column. Returns a function that turns a block into those texts, one list for
        each `%b`.
    """

    placeholder: Callable[["_Common", Column], bytes | None]
    encoder: Callable[[Column], Encoder]


class _Common(NamedTuple):
    """What all rows of a block have in common: it decides their template."""

    status: str
    constants: tuple[Any, ...]  # of the columns that are constant, in their order
    maps: tuple[tuple[str, ...] | None, ...]  # of each column by map, the names
    is_decided: bool  # whether there are actions
    has_optional: tuple[bool, ...]  # of each optional column, whether it is there
    extra: tuple[str, ...]


def _template(block: PredictionBlock, extra: tuple[str, ...]) -> bytes:
    maps = tuple(None if found is None else tuple(found) for found in _maps(block))
    is_decided = bool(block.actions)
    there = tuple(bool(getattr(block, name)[0] >= 0) for name in _OPTIONAL)
    return _make_template(_Common(block.status, _constants(block), maps, is_decided, there, extra))


# The template changes with the model only. For a single row, making it costs as much as filling it.
@lru_cache(maxsize=16)
def _make_template(common: _Common) -> bytes:
    parts = []
    for column in COLUMNS:
        placeholder = _ENCODINGS[column.kind].placeholder(common, column)
        if placeholder is not None:
            parts.append(b'"%b":%b' % (column.name.encode(), placeholder))
    parts += [literal(name) + b":%b" for name in common.extra]
    head = b'{"v":%d,"status":%b,%%b"seq":%%b,' % (VERSION, literal(common.status))
    return head + b",".join(parts) + b"}"


def _constant_placeholder(common: _Common, column: Column) -> bytes:
    return literal(common.constants[_CONSTANT.index(column.name)])


def _row_placeholder(common: _Common, column: Column, placeholder: bytes = b"%b") -> bytes:
    """Return the placeholder of a text; while warming, the JSON of an unknown value."""
    return placeholder if common.status == "ok" else literal(column.unknown)


def _decided_placeholder(common: _Common, _column: Column) -> bytes | None:
    """Return the placeholder of a text; None if nothing is decided."""
    return b"%b" if common.is_decided else None


def _maps_placeholder(common: _Common, column: Column, placeholder: bytes) -> bytes | None:
    """Return an object with a placeholder for each map; None if the block has no such column."""
    names = common.maps[_BY_MAP.index(column.name)]
    if names is None:
        return None
    return b"{" + b",".join(literal(name) + b":" + placeholder for name in names) + b"}"


def _optional_placeholder(common: _Common, column: Column) -> bytes | None:
    return b"%b" if common.has_optional[_OPTIONAL.index(column.name)] else None


def _getter(column: Column) -> Callable[[PredictionBlock], Any]:
    """Return a function that gets the column from a block; a tuple if it has several arrays."""
    return attrgetter(*column.attributes)


def _constant_encoder(_column: Column) -> Encoder:
    return lambda _block: []


def _count_encoder(column: Column) -> Encoder:
    array = _getter(column)
    return lambda block: [integers(array(block))]


def _optional_encoder(column: Column) -> Encoder:
    array = _getter(column)
    return lambda block: [integers(array(block))] if array(block)[0] >= 0 else []


def _category_encoder(column: Column) -> Encoder:
    array = _getter(column)
    return lambda block: [categories(array(block))]


def _label_encoder(column: Column) -> Encoder:
    array = _getter(column)

    def texts(block: PredictionBlock) -> list[list[bytes]]:
        labels = [orjson.dumps(label) for label in block.classes]
        return [[labels[i] for i in array(block).tolist()]]

    return texts


def _own_encoder(column: Column) -> Encoder:
    array = _getter(column)
    return lambda block: [numbers(array(block)[np.arange(len(block)), block.label])]


def action_texts(block: PredictionBlock) -> list[list[bytes]]:
    """Return the JSON of the action of each row, in one list; none where nothing is decided."""
    if block.action is None:
        return []
    names = [orjson.dumps(name) for name in block.actions]
    return [[names[i] for i in block.action.tolist()]]


def cost_texts(block: PredictionBlock) -> list[list[bytes]]:
    """Return the JSON of the expected cost of each row, likewise."""
    return [] if block.expected_cost is None else [numbers(block.expected_cost)]


def _list_encoder(column: Column) -> Encoder:
    array = _getter(column)
    return lambda block: [numbers(array(block))]


def _pair_encoder(column: Column) -> Encoder:
    bounds = _getter(column)
    return lambda block: [numbers(interleave(*bounds(block)))]


def _map_encoder(column: Column) -> Encoder:
    maps = _getter(column)
    return lambda block: [numbers(values) for values in (maps(block) or {}).values()]


_ENCODINGS: dict[Kind, _Encoding] = {
    "constant": _Encoding(_constant_placeholder, _constant_encoder),
    "count": _Encoding(lambda _common, _column: b"%b", _count_encoder),
    "optional": _Encoding(_optional_placeholder, _optional_encoder),
    "category": _Encoding(_row_placeholder, _category_encoder),
    "label": _Encoding(_row_placeholder, _label_encoder),
    "own": _Encoding(_row_placeholder, _own_encoder),
    "action": _Encoding(_decided_placeholder, lambda _column: action_texts),
    "cost": _Encoding(_decided_placeholder, lambda _column: cost_texts),
    "list": _Encoding(partial(_row_placeholder, placeholder=b"[%b]"), _list_encoder),
    "pairs": _Encoding(partial(_row_placeholder, placeholder=b"[[%b]]"), _pair_encoder),
    "lists_by_map": _Encoding(partial(_maps_placeholder, placeholder=b"[%b]"), _map_encoder),
    "pairs_by_map": _Encoding(partial(_maps_placeholder, placeholder=b"[[%b]]"), _map_encoder),
}

_NUMBERS = [
    column.name
    for column in COLUMNS
    if column.kind in ("list", "pairs", "lists_by_map", "pairs_by_map")
]
_CONSTANT = [column.name for column in COLUMNS if column.kind == "constant"]
_OPTIONAL = [column.name for column in COLUMNS if column.kind == "optional"]
_MAY_BE_ABSENT = ("map_intervals", *_OPTIONAL)
_BY_MAP = [column.name for column in COLUMNS if column.kind.endswith("_by_map")]
_constants = attrgetter(*_CONSTANT)
_maps = attrgetter(*_BY_MAP)

_ENCODERS = [_ENCODINGS[column.kind].encoder(column) for column in COLUMNS]
_COUNT_ENCODERS = [
    _ENCODINGS[column.kind].encoder(column)
    for column in COLUMNS
    if column.kind in ("count", "optional")
]
"""While warming, only counts differ from row to row."""


def encode_rejected(error: InvalidExample, seq: int, n: int, id: str | None) -> bytes:
    """Return the payload for a refused entry, as `RejectedMessage` describes it.

    Examples
    --------
    >>> encode_rejected(InvalidExample("label", "label is empty"), 4, 3, "a")
    b'{"v":2,"status":"rejected","id":"a","seq":4,"n":3,"code":"label","reason":"label is empty"}'
    """
    return _message("rejected", id, seq=seq, n=n, code=error.code, reason=error.reason)


def encode_duplicate(seq: int, n: int, id: str | None, first: int) -> bytes:
    """Return the payload for a repeated id, as `DuplicateMessage` describes it.

    Examples
    --------
    >>> encode_duplicate(4, 3, "a", 1)
    b'{"v":2,"status":"duplicate","id":"a","seq":4,"n":3,"first":1}'
    """
    return _message("duplicate", id, seq=seq, n=n, first=first)


def encode_unavailable(id: str | None, code: str, reason: str) -> bytes:
    """Return the payload for a request without an answer, as `UnavailableMessage` describes it.

    Examples
    --------
    >>> encode_unavailable("a", "no_state", "no state was published")
    b'{"v":2,"status":"unavailable","id":"a","code":"no_state","reason":"no state was published"}'
    """
    return _message("unavailable", id, code=code, reason=reason)


def reply_head(state: str | None, behind: int | None, age: int | None) -> bytes:
    """Return how replies begin, as `ReplyMessage` describes them: the answer follows, and a brace.

    Examples
    --------
    >>> reply_head("7-01234567", 3, 20) + b'{"v":2}' + b"}"
    b'{"v":2,"state":"7-01234567","behind":3,"age":20,"answer":{"v":2}}'
    """
    head = orjson.dumps({"v": VERSION, "state": state, "behind": behind, "age": age})
    return head[:-1] + b',"answer":'


def encode_label(seq: int, n: int, id: str | None, example: str, label: str, done: Done) -> bytes:
    """Return the payload for a label that was taken, as `LabelMessage` describes it.

    Examples
    --------
    >>> encode_label(4, 3, None, "a", "spam", "accepted")
    b'{"v":2,"status":"label","seq":4,"n":3,"example":"a","label":"spam","done":"accepted"}'
    """
    return _message("label", id, seq=seq, n=n, example=example, label=label, done=done)


_REPORTED = [field.name for field in fields(ValidityReport) if field.name != "n"]


def encode_report(report: ValidityReport, seq: int) -> bytes:
    """Return the payload of a validity report, as `MetricsMessage` describes it."""
    said = {name: getattr(report, name) for name in _REPORTED}
    parts = {name: part for name, part in said.items() if part is not None}
    return dumps({"v": VERSION, "n": report.n, "seq": seq, **parts})


def encode_alarms(alarms: Sequence[Alarm], seq: int) -> bytes:
    """Return the payload of the alarms that one entry raised, as `AlarmsMessage` describes it.

    Examples
    --------
    >>> alarm = Alarm(5040, "calibration", "overall", None, "tolerant", 4.75, 4.5, 5000)
    >>> encode_alarms([alarm], 5039)[:58]
    b'{"v":2,"seq":5039,"alarms":[{"n":5040,"kind":"calibration"'
    """
    return dumps({"v": VERSION, "seq": seq, "alarms": alarms})
