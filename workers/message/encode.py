"""Encode predictions as JSON payloads, whole columns at once: the last part of the hot path."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import orjson

from online_svm.errors import InvalidExample
from online_svm.stream.alarm import Alarm
from online_svm.stream.answer_columns import COLUMNS, Column, Kind
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import Done, ValidityReport
from online_svm.types import Floats, Ints
from workers.message import VERSION
from workers.message.compact import BUDGET_FIELDS, DECISION_FIELDS

_PLUS = re.compile(rb'("(?:[^"\\]|\\.)*")|e\+')


def dumps(value: object) -> bytes:
    """Return the JSON of a value, with the same bytes for every supported version of orjson.

    All versions write the shortest digits that round-trip. From 1e16 on some write a plus in the
    exponent, which is removed here.

    Examples
    --------
    >>> dumps({"e+": 1e300})
    b'{"e+":1e300}'
    """
    text = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    return _PLUS.sub(lambda found: found[1] or b"e", text) if b"e+" in text else text


def literal(value: object) -> bytes:
    """Return the JSON of a value, escaped for use in a template."""
    return dumps(value).replace(b"%", b"%%")


def id_parts(ids: Sequence[str | None]) -> list[bytes]:
    """Return for each row the field `id` and a comma; b"" without an id."""
    return [b"" if i is None else b'"id":%b,' % orjson.dumps(i) for i in ids]


def integers(column: Ints) -> list[bytes]:
    """Return the JSON of each number."""
    text = dumps(np.ascontiguousarray(column))
    return text[1:-1].split(b",")


def categories(column: Ints) -> list[bytes]:
    """Return the JSON of each number, `null` for -1."""
    return [b"null" if text == b"-1" else text for text in integers(column)]


def numbers(values: Floats | Ints) -> list[bytes]:
    """Return the JSON of each row of an array, without its outer brackets."""
    text = dumps(np.ascontiguousarray(values))
    if b"null" in text:
        raise ValueError("a prediction holds a number that is not finite")
    depth = values.ndim
    return text[depth:-depth].split(b"]" * (depth - 1) + b"," + b"[" * (depth - 1))


def interleave(lower: Floats, upper: Floats) -> Floats:
    """Return the pairs of two arrays along a new last axis."""
    pairs = np.empty((*lower.shape, 2))
    pairs[..., 0], pairs[..., 1] = lower, upper
    return pairs


def encode_block(
    block: PredictionBlock,
    seqs: Sequence[int] | Ints,
    ids: Sequence[str | None],
    extra: Mapping[str, Sequence[bytes]] | None = None,
) -> list[bytes]:
    """Return the payloads of a block of predictions, as `PredictionMessage` describes them.

    Each column is serialized in one call and split at the commas; the parts of each row fill a
    template. This gives the bytes of one dict per row a few times faster. A single row is
    serialized as a dict. `extra` has further fields: the JSON of each row, by name. Raises
    ValueError if a number is not finite.
    """
    if len(block) == 1 and not extra:
        return [_encode_row(block, int(seqs[0]), ids[0])]
    extra = extra or {}
    texts = [id_parts(ids), integers(np.asarray(seqs, dtype=np.int64))]
    unknown = _unknown(block)
    for name, texts_of, values in _VARYING:
        if name not in unknown:
            texts += texts_of(block, values(block))
    maps = tuple(None if found is None else tuple(found) for found in _maps(block))
    has_optional = tuple(bool(getattr(block, name)[0] >= 0) for name in _OPTIONAL)
    left_out = _left_out(block)
    template = _template(
        _Common(
            block.status, _constants(block), maps, left_out, has_optional, unknown, tuple(extra)
        )
    )
    return [template % row for row in zip(*texts, *extra.values(), strict=True)]


def _encode_row(block: PredictionBlock, seq: int, id: str | None) -> bytes:
    values = block.row_values(0)
    for name in _MAY_BE_ABSENT:
        if values[name] is None:
            del values[name]
    for name in _left_out(block):
        del values[name]
    # orjson writes a number that is not finite as null; nothing else here is null.
    if b"null" in orjson.dumps([values[name] for name in _NUMBERS if name in values]):
        raise ValueError("a prediction holds a number that is not finite")
    return _message(block.status, id, seq=seq, **values)


def _message(status: str, id: str | None, **fields: object) -> bytes:
    """Return an answer with these fields, and the producer's id if there is one."""
    sent = {} if id is None else {"id": id}
    return dumps({"v": VERSION, "status": status, **sent, **fields})


class _Common(NamedTuple):
    """What the rows of a block have in common; it determines the template."""

    status: str
    constants: tuple[Any, ...]  # of the constant columns
    maps: tuple[tuple[str, ...] | None, ...]  # of each column by map: the names
    left_out: tuple[str, ...]  # columns of settings that are not set
    has_optional: tuple[bool, ...]  # of each optional column
    unknown: tuple[str, ...]  # columns without values
    extra: tuple[str, ...]  # names of further fields


# The template changes only with the model.
@lru_cache(maxsize=16)
def _template(common: _Common) -> bytes:
    parts = [
        b'"%b":%b' % (column.name.encode(), placeholder)
        for column in COLUMNS
        if (placeholder := _placeholder(common, column)) is not None
    ]
    parts += [literal(name) + b":%b" for name in common.extra]
    head = b'{"v":%d,"status":%b,%%b"seq":%%b,' % (VERSION, literal(common.status))
    return head + b",".join(parts) + b"}"


_PLACEHOLDERS = {
    "list": b"[%b]", "lists_by_map": b"[%b]", "pairs": b"[[%b]]", "pairs_by_map": b"[[%b]]",
}  # fmt: skip


def _placeholder(common: _Common, column: Column) -> bytes | None:
    """Return the JSON of a column with a `%b` for each value of a row; None if it is absent."""
    text = _PLACEHOLDERS.get(column.kind, b"%b")
    match column.kind:
        case "constant":
            return literal(common.constants[_CONSTANT.index(column.name)])
        case "count":
            return text
        case "optional":
            return text if common.has_optional[_OPTIONAL.index(column.name)] else None
        case "action" | "cost" | "wanted" | "share":
            return None if column.name in common.left_out else text
        case "lists_by_map" | "pairs_by_map":
            names = common.maps[_BY_MAP.index(column.name)]
            if names is None:
                return None
            return b"{" + b",".join(literal(name) + b":" + text for name in names) + b"}"
    return literal(column.unknown) if column.name in common.unknown else text


def _left_out(block: PredictionBlock) -> tuple[str, ...]:
    """Return the columns that are absent because no setting asks for them."""
    fields = (*DECISION_FIELDS, *BUDGET_FIELDS)
    return tuple(name for name in fields if getattr(block, name) is None)


def _unknown(block: PredictionBlock) -> tuple[str, ...]:
    if block.status == "ok":
        return ()
    return tuple(column.name for column in COLUMNS if not _is_known(block, column))


def _is_known(block: PredictionBlock, column: Column) -> bool:
    values = getattr(block, column.attributes[0])
    match column.kind:
        case "label":
            return bool(values[0] >= 0)
        case "own":
            return bool(block.label[0] >= 0)
        case "list" | "pairs":
            return bool(values.shape[1] > 0)
    return True


def _label_texts(block: PredictionBlock, values: Ints) -> list[list[bytes]]:
    labels = [orjson.dumps(label) for label in block.classes]
    return [[labels[i] for i in values.tolist()]]


def action_texts(block: PredictionBlock) -> list[list[bytes]]:
    """Return a list with the JSON of each row's action; [] without decisions."""
    if block.action is None:
        return []
    names = [orjson.dumps(name) for name in block.actions]
    return [[names[i] for i in block.action.tolist()]]


def cost_texts(block: PredictionBlock) -> list[list[bytes]]:
    """Return a list with the JSON of each row's expected cost; [] without decisions."""
    return [] if block.expected_cost is None else [numbers(block.expected_cost)]


def budget_texts(block: PredictionBlock) -> list[list[bytes]]:
    """Return lists with the JSON of each row's `BUDGET_FIELDS`; [] without a label budget."""
    wanted, share = block.label_wanted, block.label_probability
    if wanted is None or share is None:
        return []
    return [[b"true" if each else b"false" for each in wanted.tolist()], numbers(share)]


_TEXTS: dict[Kind, Callable[[PredictionBlock, Any], list[list[bytes]]]] = {
    "count": lambda _, values: [integers(values)],
    "optional": lambda _, values: [integers(values)] if values[0] >= 0 else [],
    "category": lambda _, values: [categories(values)],
    "label": _label_texts,
    "own": lambda block, values: [numbers(values[np.arange(len(block)), block.label])],
    "action": lambda block, _: action_texts(block),
    "cost": lambda block, _: cost_texts(block),
    "wanted": lambda block, _: budget_texts(block)[:1],
    "share": lambda block, _: budget_texts(block)[1:],
    "list": lambda _, values: [numbers(values)],
    "pairs": lambda _, bounds: [numbers(interleave(*bounds))],
    "lists_by_map": lambda _, maps: [numbers(values) for values in (maps or {}).values()],
    "pairs_by_map": lambda _, maps: [numbers(values) for values in (maps or {}).values()],
}
"""By kind: returns the texts of a block's column, one list for each `%b` of the template."""

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

_VARYING = [
    (column.name, _TEXTS[column.kind], attrgetter(*column.attributes))
    for column in COLUMNS
    if column.kind in _TEXTS
]
"""Of each column that is not constant: its name, its texts and its values."""


def rejection(error: InvalidExample, semantics: int) -> tuple[str, object]:
    """Return name and value of the field with the reason of a rejection.

    Examples
    --------
    >>> rejection(InvalidExample("time_absent"), 4)
    ('reason', 'time is absent; the horizon of this feed counts it')
    >>> rejection(InvalidExample("time_absent"), 5)
    ('about', {'case': 'time_absent'})
    """
    return ("reason", error.reason_of_4) if semantics < 5 else ("about", error.about)


def encode_rejected(
    error: InvalidExample, seq: int, n: int, id: str | None, semantics: int
) -> bytes:
    """Return the payload for a rejected entry, as `RejectedMessage` describes it.

    Examples
    --------
    >>> encode_rejected(InvalidExample("feature_nan", feature=3), 4, 3, "a", 5)
    b'{"v":2,"status":"rejected","id":"a","seq":4,"n":3,"code":"not_finite",\
"about":{"case":"feature_nan","feature":3}}'
    """
    why = dict([rejection(error, semantics)])
    return _message("rejected", id, seq=seq, n=n, code=error.code, **why)


def encode_duplicate(seq: int, n: int, id: str | None, first: int) -> bytes:
    """Return the payload for a repeated id, as `DuplicateMessage` describes it."""
    return _message("duplicate", id, seq=seq, n=n, first=first)


def encode_unavailable(id: str | None, code: str, reason: str) -> bytes:
    """Return the payload for a request without an answer, as `UnavailableMessage` describes it."""
    return _message("unavailable", id, code=code, reason=reason)


def reply_head(state: str | None, behind: int | None, age: int | None) -> bytes:
    """Return the start of a `ReplyMessage`; append the answer and a closing brace.

    Examples
    --------
    >>> reply_head("7-01234567", 3, 20) + b'{"v":2}' + b"}"
    b'{"v":2,"state":"7-01234567","behind":3,"age":20,"answer":{"v":2}}'
    """
    head = orjson.dumps({"v": VERSION, "state": state, "behind": behind, "age": age})
    return head[:-1] + b',"answer":'


def encode_label(seq: int, n: int, id: str | None, example: str, label: str, done: Done) -> bytes:
    """Return the payload for an accepted label, as `LabelMessage` describes it."""
    return _message("label", id, seq=seq, n=n, example=example, label=label, done=done)


_REPORTED = [field.name for field in fields(ValidityReport) if field.name != "n"]


def encode_report(report: ValidityReport, seq: int) -> bytes:
    """Return the payload of a validity report, as `MetricsMessage` describes it."""
    parts = {name: part for name in _REPORTED if (part := getattr(report, name)) is not None}
    return dumps({"v": VERSION, "n": report.n, "seq": seq, **parts})


def encode_alarms(alarms: Sequence[Alarm], seq: int) -> bytes:
    """Return the payload of the alarms that one entry raised, as `AlarmsMessage` describes it."""
    return dumps({"v": VERSION, "seq": seq, "alarms": alarms})
