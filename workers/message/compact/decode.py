"""Parse what a feed published, whatever bytes were stored; expand the compact form of an answer."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import orjson

from online_svm.stream.answer_columns import COLUMNS
from workers.message import VERSION
from workers.message.compact.form import (
    BESIDE,
    CODED,
    CONSTANTS,
    COUNT,
    COUNTED,
    KEY,
    MILLION,
    NAME,
    NONE,
    NUMBERS,
    ROWS,
    TEXTS,
    width,
)


class NotCompact(ValueError):
    """A message that has the field of the compact form, and is none."""


Message = dict[str, Any]
Pairs = list[list[int]]

_ORDER = [column.name for column in COLUMNS if column.name != "map_intervals"]
_UNKNOWN = {column.name: column.unknown for column in COLUMNS}


def parse(data: bytes) -> Any:
    """Return a published message; one in the compact form in the shape of a full answer.

    Parameters
    ----------
    data : bytes
        Of the field `p` of an entry; any bytes at all.

    Raises
    ------
    ValueError
        If they are not JSON, or have the compact form's field and are none.

    Examples
    --------
    >>> parse(b'{"v":2,"status":"label","seq":3}')["status"]
    'label'
    >>> sent = b'[40,1,1,3,99,7,7,7,0,null,3,null,["a","b"],750000,500000,1000000,0,0,2.5]'
    >>> parse(b'{"v":2,"id":"tx-1","seq":41,"c":%b}' % sent)["probability"]
    0.75
    """
    message = orjson.loads(data)
    return expand(message) if isinstance(message, dict) and KEY in message else message


def expand(message: Message) -> Message:
    """Return an answer in the compact form in the shape of a full answer.

    Its last field, `payload`, is "compact". It says that the numbers have six decimals, that those
    of the first of two classes are derived from the second's, and that `maps` is empty because the
    form leaves maps out.

    Parameters
    ----------
    message : dict
        As it was parsed; it may be anything that JSON can hold.

    Raises
    ------
    NotCompact
        If it is no answer in this form.

    Examples
    --------
    >>> sent = [40, 1, 1, 3, 99, 7, 7, 7, 0, None, 3, None, ["ham", "spam"]]
    >>> sent += [750_000, 500_000, 875_000, 500_000, 1_000_000, 1.25]
    >>> found = expand({"v": 2, "seq": 41, "c": sent})
    >>> found["label"], found["probability"], found["probabilities"], found["scores"]
    ('spam', 0.75, [0.25, 0.75], [1.25])
    >>> found["intervals"], found["venn"]
    ([[0.125, 0.5], [0.5, 0.875]], [[0.0, 0.5], [0.5, 1.0]])
    """
    sent = message[KEY]
    if message.get("v") != VERSION or not isinstance(sent, list) or len(sent) < COUNT:
        raise NotCompact("no answer in the compact form")
    columns = _of_rows(sent[: len(ROWS)]) | _constants(sent[len(ROWS) : COUNT])
    columns |= _numbers(sent[COUNT:], len(columns["classes"]))
    columns |= _own(columns)
    for name in ("label", "svm_label"):
        columns[name] = _class_of(columns["classes"], columns[name])
    if columns["category"] == NONE:
        columns["category"] = None
    columns["maps"] = {}
    columns |= _decided(message)
    for name in COUNTED:
        if name in message:
            _check(_is_count(message[name]), name)
            columns[name] = message[name]
    found = {name: columns[name] for name in _ORDER if name in columns}
    return _head(message) | found | {"payload": NAME}


def _head(message: Message) -> Message:
    """Return what stands before the columns."""
    given = message.get("id")
    _check(given is None or isinstance(given, str), "id")
    _check(_is_count(message.get("seq")), "seq")
    sent = {} if given is None else {"id": given}
    return {"v": VERSION, "status": "ok", **sent, "seq": message["seq"]}


def _decided(message: Message) -> Message:
    """Return what was decided, if anything was: it stands beside the list."""
    found = {name: message[name] for name in BESIDE if name in message}
    if found:
        _check(isinstance(found.get("action"), str), "action")
        _check(_is_number(found.get("expected_cost")), "expected_cost")
    return found


def _of_rows(values: Sequence[Any]) -> Message:
    columns = dict(zip((place.name for place in ROWS), values, strict=True))
    for name, value in columns.items():
        may_be_none = name in ("label", "svm_label", "category")
        _check(_is_count(value) or (may_be_none and type(value) is int and value == NONE), name)
    return columns


def _constants(values: Sequence[Any]) -> Message:
    columns = dict(zip((place.name for place in CONSTANTS), values, strict=True))
    for name in ("model", "calibration", "taxonomy"):
        _check(_is_count(columns[name]), name)
    for name in CODED:
        columns[name] = _text(columns[name], name)
    _check(columns["guarantee"] in ("exact", "approximate", "none"), "guarantee")
    level, classes = columns["interval_level"], columns["classes"]
    _check(level is None or _is_number(level), "interval_level")
    _check(isinstance(classes, list) and len(classes) > 0, "classes")
    _check(all(name is None or isinstance(name, str) for name in classes), "classes")
    return columns


def _text(value: object, name: str) -> str | None:
    """Return a text that is sent as it is, or by its number."""
    if type(value) is int:
        _check(0 <= value < len(TEXTS), name)
        return TEXTS[value]
    _check(value is None or isinstance(value, str), name)
    return value  # type: ignore[return-value]  # checked above


def _numbers(values: Sequence[Any], classes: int) -> Message:
    """Return the numbers by column: of two classes, those of the first too."""
    k = width(classes)
    sent, scores = values[: 5 * k], values[5 * k :]
    _check(all(_is_count(value) and value <= MILLION for value in sent), "probabilities")
    _check(len(scores) > 0 and all(map(_is_number, scores)), "scores")
    points, intervals, venn = sent[:k], _pairs(sent[k : 3 * k]), _pairs(sent[3 * k :])
    if classes == 2:
        points = [MILLION - points[0], *points]
        intervals, venn = _with_first(intervals), _with_first(venn)
    found = (
        [point / MILLION for point in points],
        *([[end / MILLION for end in pair] for pair in pairs] for pairs in (intervals, venn)),
        [float(score) for score in scores],
    )
    return dict(zip((place.name for place in NUMBERS), found, strict=True))


def _pairs(flat: Sequence[int]) -> Pairs:
    return [[lower, upper] for lower, upper in zip(flat[::2], flat[1::2], strict=True)]


def _with_first(pairs: Pairs) -> Pairs:
    """Return the intervals of both classes from that of the second."""
    ((lower, upper),) = pairs
    return [[MILLION - upper, MILLION - lower], [lower, upper]]


def _own(columns: Message) -> Message:
    """Return probability and interval of the predicted label."""
    names = ("lower", "upper", "probability")
    label = columns["label"]
    if label == NONE:
        return {name: _UNKNOWN[name] for name in names}
    _check(label < len(columns["classes"]), "label")
    found = (*columns["intervals"][label], columns["probabilities"][label])
    return dict(zip(names, found, strict=True))


def _class_of(classes: list[str | None], index: int) -> str | None:
    _check(index < len(classes), "label")
    return None if index == NONE else classes[index]


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and isfinite(value)  # type: ignore[arg-type]  # narrowed


def _check(is_right: bool, name: str) -> None:
    if not is_right:
        raise NotCompact(f"{name} of an answer in the compact form is not what it can be")
