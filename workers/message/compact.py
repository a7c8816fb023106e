"""The compact form of an answer (`payload = "compact"`): its fields, and their expansion.

docs/messages.md takes the order of the fields from here. `parse` reads any published message.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple

import orjson

from online_svm.rejections import reason_of
from online_svm.stream.answer_columns import COLUMNS
from workers.message import VERSION

COMPACT_KEY = "c"  # the field that only answers in the compact form have
MILLION = 10**6  # probabilities are whole millionths, where the log loss clips them too
DECIMALS = 6  # decimals of a score
NO_CODE = -1  # stands for no class, and for no category
COMPACT_NAME = "compact"  # value of the field `payload` in an expanded answer


class Item(NamedTuple):
    """One value, or one run of values, in the list `c`."""

    name: str
    meaning: str = ""  # where it differs from the field of a full answer


ROWS = (
    Item("n"),
    Item("label", "index in `classes`; -1 for none"),
    Item("svm_label", "likewise"),
    Item("category", "-1 for none"),
    Item("category_size"),
)
"""First, the integers that differ from row to row."""

TEXTS = (
    "exact",
    "approximate",
    "none",
    "venn",
    "venn-abers-mixed",
    "joint",
    "classes are discovered, not declared",
    "split is crossfit: the calibration scores are out of fold, by machines that trained on the "
    "rest of the calibration set",
    "some examples have a probability instead of a label: exact for those that get a label, for "
    "all only if which they get does not depend on the example",
    "maturity is arrival: an example is learned when its label comes, and those whose labels come "
    "soon may be unlike the others",
    "an entry without a label lies in the window: exact for those that get a label, for all only "
    "if which get one does not depend on the example",
    "an example of the window was given up without its label: exact for those that get one in "
    "time, for all only if which get one does not depend on the example",
    "experts",
)
"""Frequent texts of `guarantee`, `method` and `reason`, sent as their index. Append new ones."""

CONSTANTS = (
    Item("model"),
    Item("calibration"),
    Item("taxonomy"),
    Item("guarantee", "number of a text below"),
    Item("reason", "null, text or number of a text"),
    Item("method", "likewise"),
    Item("interval_level"),
    Item("classes"),
)
"""Second, the values that change only with the model or the calibration."""

CODED = ("guarantee", "reason", "method")
"""Constants that are sent as an index of `TEXTS`, if possible."""

NUMBERS = (
    Item("probabilities", "k millionths"),
    Item("intervals", "2k millionths"),
    Item("venn", "2k millionths"),
    Item("scores", "the rest, with six decimals"),
)
"""Last, the other numbers; k is 1 for two classes, else the number of classes."""

DERIVED = ("status", "label", "lower", "upper", "probability", "svm_label")
"""Fields of a full answer that are computed from others. With two classes, so are the values of the
first class: 1 minus the value of the second, with the bounds of an interval exchanged."""

DECISION_FIELDS = ("action", "expected_cost")
"""Fields of a full answer that are sent unchanged, next to `c`: with `costs`, and the first of
them with `promise`."""

BUDGET_FIELDS = ("label_wanted", "label_probability")  # likewise; only if `label_budget` is set
COUNT_FIELDS = ("imputed",)  # counts that are sent before `c`; only if features have names
ABSENT = ("maps", "map_intervals")  # fields of a full answer that the compact form omits
HEAD_VALUES = len(ROWS) + len(CONSTANTS)  # number of values in `c` before the other numbers


_NUMBERS = {text: number for number, text in enumerate(TEXTS)}


def code(text: str | None) -> int | str | None:
    """Return the index of a text in `TEXTS`; other texts, and None, unchanged."""
    return text if text is None else _NUMBERS.get(text, text)


def width(classes: int) -> int:
    """Return k: the number of classes whose values are sent."""
    return 1 if classes == 2 else classes


class NotCompact(ValueError):
    """A message has the field of the compact form, but is invalid."""


Message = dict[str, Any]
Pairs = list[list[int]]

_ORDER = [column.name for column in COLUMNS if column.name != "map_intervals"]
_UNKNOWN = {column.name: column.unknown for column in COLUMNS}


def parse(data: bytes) -> Any:
    """Parse a published message; expand an answer in the compact form.

    To a rejection with a case its sentence is added, as `reason`. Raises ValueError if the bytes
    are not JSON, or an invalid compact form.
    """
    message = orjson.loads(data)
    if not isinstance(message, dict):
        return message
    if message.get("status") == "rejected" and "about" in message:
        return message | {"reason": reason_of(message["about"])}
    return expand(message) if COMPACT_KEY in message else message


def expand(message: Message) -> Message:
    """Expand an answer in the compact form to the fields of a full answer.

    The last field, `payload`, is "compact": the numbers have six decimals, the first of two classes
    is derived from the second, and `maps` is empty. Raises NotCompact if the message is invalid.

    Examples
    --------
    >>> sent = [40, 1, 1, 3, 99, 7, 7, 7, 0, None, 3, None, ["ham", "spam"]]
    >>> sent += [750_000, 500_000, 875_000, 500_000, 1_000_000, 1.25]
    >>> found = expand({"v": 2, "seq": 41, "c": sent})
    >>> found["label"], found["probability"], found["probabilities"], found["scores"]
    ('spam', 0.75, [0.25, 0.75], [1.25])
    """
    sent = message[COMPACT_KEY]
    if message.get("v") != VERSION or not isinstance(sent, list) or len(sent) < HEAD_VALUES:
        raise NotCompact("no answer in the compact form")
    columns = _row_values(sent[: len(ROWS)]) | _constants(sent[len(ROWS) : HEAD_VALUES])
    columns |= _numbers(sent[HEAD_VALUES:], len(columns["classes"]))
    columns |= _of_label(columns)
    for name in ("label", "svm_label"):
        columns[name] = _class_of(columns["classes"], columns[name])
    if columns["category"] == NO_CODE:
        columns["category"] = None
    columns["maps"] = {}
    columns |= _decided(message) | _budgeted(message)
    for name in COUNT_FIELDS:
        if name in message:
            _check(_is_count(message[name]), name)
            columns[name] = message[name]
    found = {name: columns[name] for name in _ORDER if name in columns}
    traces = {name: message[name] for name in ("traceparent",) if name in message}
    return _head(message) | found | {"payload": COMPACT_NAME} | traces


def _head(message: Message) -> Message:
    given = message.get("id")
    _check(given is None or isinstance(given, str), "id")
    _check(_is_count(message.get("seq")), "seq")
    sent = {} if given is None else {"id": given}
    return {"v": VERSION, "status": "ok", **sent, "seq": message["seq"]}


def _decided(message: Message) -> Message:
    found = {name: message[name] for name in DECISION_FIELDS if name in message}
    if found:
        _check(isinstance(found.get("action"), str), "action")
        _check(_is_number(found.get("expected_cost", 0)), "expected_cost")
    return found


def _budgeted(message: Message) -> Message:
    found = {name: message[name] for name in BUDGET_FIELDS if name in message}
    if found:
        _check(isinstance(found.get("label_wanted"), bool), "label_wanted")
        _check(_is_number(found.get("label_probability")), "label_probability")
    return found


def _row_values(values: Sequence[Any]) -> Message:
    columns = dict(zip((item.name for item in ROWS), values, strict=True))
    for name, value in columns.items():
        may_be_none = name in ("label", "svm_label", "category")
        _check(_is_count(value) or (may_be_none and type(value) is int and value == NO_CODE), name)
    return columns


def _constants(values: Sequence[Any]) -> Message:
    columns = dict(zip((item.name for item in CONSTANTS), values, strict=True))
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
    """Return a text that is sent as it is, or as its index."""
    if type(value) is int:
        _check(0 <= value < len(TEXTS), name)
        return TEXTS[value]
    _check(value is None or isinstance(value, str), name)
    return value  # type: ignore[return-value]  # checked above


def _numbers(values: Sequence[Any], classes: int) -> Message:
    """Return the other numbers by column; the numbers of the first of two classes are derived."""
    k = width(classes)
    sent, scores = values[: 5 * k], values[5 * k :]
    _check(all(_is_count(value) and value <= MILLION for value in sent), "probabilities")
    _check(len(scores) > 0 and all(map(_is_number, scores)), "scores")
    points, intervals, venn = sent[:k], _pairs(sent[k : 3 * k]), _pairs(sent[3 * k :])
    if classes == 2:
        points = [MILLION - points[0], *points]
        intervals, venn = _with_first_class(intervals), _with_first_class(venn)
    found = (
        [point / MILLION for point in points],
        *([[end / MILLION for end in pair] for pair in pairs] for pairs in (intervals, venn)),
        [float(score) for score in scores],
    )
    return dict(zip((item.name for item in NUMBERS), found, strict=True))


def _pairs(flat: Sequence[int]) -> Pairs:
    return [[lower, upper] for lower, upper in zip(flat[::2], flat[1::2], strict=True)]


def _with_first_class(pairs: Pairs) -> Pairs:
    """Return the intervals of both classes, given the interval of the second."""
    ((lower, upper),) = pairs
    return [[MILLION - upper, MILLION - lower], [lower, upper]]


def _of_label(columns: Message) -> Message:
    """Return probability and interval of the predicted label."""
    names = ("lower", "upper", "probability")
    label = columns["label"]
    if label == NO_CODE:
        return {name: _UNKNOWN[name] for name in names}
    _check(label < len(columns["classes"]), "label")
    found = (*columns["intervals"][label], columns["probabilities"][label])
    return dict(zip(names, found, strict=True))


def _class_of(classes: list[str | None], index: int) -> str | None:
    _check(index < len(classes), "label")
    return None if index == NO_CODE else classes[index]


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and isfinite(value)  # type: ignore[arg-type]  # narrowed


def _check(is_right: bool, name: str) -> None:
    if not is_right:
        raise NotCompact(f"{name} of an answer in the compact form is not what it can be")
