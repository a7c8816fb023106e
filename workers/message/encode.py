"""Encode predictions as JSON payloads, whole columns at once: the last part of the hot path.

A payload is `dumps` of the fields of `PredictionMessage`, in their order, with the numbers that
`online_svm/stream/answer_text.py` rounds. A store of the fields (numbers of classes as 32-bit
millionths, the others as integers, floats and text) gives the same bytes; `probability`, `lower`
and `upper` follow from `label`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import lru_cache, partial
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import orjson

from online_svm.errors import InvalidExample
from online_svm.stream.alarm import Alarm
from online_svm.stream.answer_columns import COLUMNS, Column
from online_svm.stream.answer_text import FIRST_TEXT, LARGE, Value, write_rows
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import Done, ValidityReport
from online_svm.types import Bytes, Floats, Ints
from workers.feed.codes import VERSION

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
    if b"+" not in text:  # much faster than a search for two bytes
        return text
    return _PLUS.sub(lambda found: found[1] or b"e", text)


def encode_block(
    block: PredictionBlock, seqs: Sequence[int] | Ints, ids: Sequence[str | None]
) -> list[bytes]:
    """Return the payloads of a block of predictions, as `PredictionMessage` describes them.

    The rows of a block differ in numbers, texts and id alone; one kernel rounds the numbers, and
    writes them between the parts that all rows have. Raises ValueError if a number is not finite.
    """
    layout = _layout(_common(block))
    numbers = np.concatenate([values(block) for values in layout.numbers], axis=1)
    texts, sets = layout.texts, list[Ints]()
    if block.sets is not None:
        texts, set_of = _with_sets(block, texts)
        sets.append(set_of)
    if not np.abs(numbers).max(initial=0.0) < LARGE:  # true of a NaN, too
        texts = _with_large(numbers, texts)
    m = len(numbers)
    wholes = np.concatenate([np.asarray(seqs), *layout.wholes(block), *sets]).reshape(-1, m)
    out, ends = np.empty(m * layout.room, dtype=np.uint8), np.empty(m, dtype=np.int64)
    classes = block.point.shape[1]
    write_rows(
        layout.plan, layout.fixed, texts, classes, 1 + len(block.maps), numbers, wholes, out, ends
    )
    stops = ends.tolist()
    text, head = out[: stops[-1]].tobytes(), layout.head
    return [
        (head if i is None else b'%b"id":%b,' % (head, orjson.dumps(i))) + text[begin:stop]
        for i, begin, stop in zip(ids, [0, *stops[:-1]], stops, strict=True)
    ]


_LONGEST_NUMBER = 24  # characters, of any 64-bit number


def _with_large(numbers: Floats, texts: tuple[Bytes, Ints]) -> tuple[Bytes, Ints]:
    """Replace large numbers by the indices of their texts; return these after the others."""
    if not np.isfinite(numbers).all():
        raise ValueError("a prediction holds a number that is not finite")
    at = np.abs(numbers) >= LARGE
    more = [dumps(number) for number in numbers[at].tolist()]
    numbers[at] = FIRST_TEXT + len(texts[1]) - 1 + np.arange(len(more))
    return _added(texts, more)


def _with_sets(
    block: PredictionBlock, texts: tuple[Bytes, Ints]
) -> tuple[tuple[Bytes, Ints], Ints]:
    """Return the texts with those of the different sets of a block, and which a row has."""
    assert block.sets is not None
    labels = [orjson.dumps(label) for label in block.classes]
    different, set_of = np.unique(block.sets, axis=0, return_inverse=True)
    found = [b"[%b]" % b",".join(labels[k] for k in np.flatnonzero(one)) for one in different]
    return _added(texts, found), set_of.reshape(-1)


def _added(texts: tuple[Bytes, Ints], more: Sequence[bytes]) -> tuple[Bytes, Ints]:
    """Return texts with more after them."""
    found = _joined(more)
    begins = np.concatenate([texts[1], texts[1][-1] + found[1][1:]])
    return np.concatenate([texts[0], found[0]]), begins


def _joined(texts: Sequence[bytes]) -> tuple[Bytes, Ints]:
    """Return the characters of texts, and where each begins and the last one ends."""
    begins = np.array([0, *accumulate(map(len, texts))], dtype=np.int64)
    return np.frombuffer(b"".join(texts), dtype=np.uint8), begins


def _message(status: str, id: str | None, **fields: object) -> bytes:
    """Return an answer with these fields, and the producer's id if there is one."""
    sent = {} if id is None else {"id": id}
    return dumps({"v": VERSION, "status": status, **sent, **fields})


class _Common(NamedTuple):
    """What the rows of a block have in common; it determines the layout."""

    status: str
    constants: tuple[Any, ...]  # of the constant columns
    actions: tuple[str, ...]
    maps: tuple[tuple[str, ...] | None, ...]  # of each column by map: the names
    absent: tuple[str, ...]  # columns
    has_label: bool
    classes: tuple[int, int, int]  # in `point`, in `venn_lower`, in `scores`


def _common(block: PredictionBlock) -> _Common:
    bounds = block.map_intervals
    return _Common(
        block.status,
        _constants(block),
        block.actions,
        (tuple(block.maps), None if bounds is None else tuple(bounds)),
        (
            *[name for name in _BY_SETTING if getattr(block, name) is None],
            *([] if block.notices else ["notices"]),
            *(["set"] if block.sets is None else []),
            *[name for name in _OPTIONAL if getattr(block, name)[0] < 0],
        ),
        bool(block.label[0] >= 0),
        (block.point.shape[1], block.venn_lower.shape[1], block.scores.shape[1]),
    )


def _of_map(name: str, block: PredictionBlock) -> Floats:
    return block.maps[name]


def _pairs_of_map(name: str, block: PredictionBlock) -> Floats:
    assert block.map_intervals is not None
    return block.map_intervals[name].reshape(len(block), -1)


def _as_column(name: str, block: PredictionBlock) -> Floats:
    values: Floats = getattr(block, name)
    return values[:, None]


class _Layout:
    """Where the values of rows stand in their text, and in the arrays that hold them.

    Attributes
    ----------
    head : bytes
        What stands before the id.
    fixed, plan, texts : ndarray
        Arguments of `write_rows`.
    room : int
        Most characters of a row.
    numbers : list of callables
        Each returns an array of a block, one row an example; they follow each other.
    wholes : callable
        Returns the whole numbers of a block after `seq`, a column at a time.
    """

    def __init__(self, common: _Common) -> None:
        self._common = common
        self._places: dict[str | tuple[str, str], int] = {}  # by attribute, or column and map
        self._width = 0
        self.numbers: list[Callable[[PredictionBlock], Floats]] = []
        self._place_numbers()
        absent = common.absent
        wholes = [name for name in _WHOLES if name not in absent]
        self.wholes = attrgetter(*wholes)
        self._rows = {name: i for i, name in enumerate(["seq", *wholes, "set"])}
        labels = [orjson.dumps(label) for label in common.constants[_CONSTANT.index("classes")]]
        actions = [orjson.dumps(name) for name in common.actions]
        texts = [*labels, *actions, b"false", b"true"]
        self._bases = {
            "action": len(labels), "label_wanted": len(texts) - 2, "set": len(texts),
        }  # fmt: skip
        self.texts = _joined(texts)
        self.head = b'{"v":%d,"status":%b,' % (VERSION, dumps(common.status))
        self._fixed, self._plan = b"", list[tuple[int, int, int, int]]()
        self._write("seq", lambda: self._value(Value.WHOLE, self._rows["seq"]))
        for column in COLUMNS:
            if column.name not in absent:
                self._write(column.name, partial(self._column, column))
        self._fixed = self._fixed[:-1] + b"}"
        self._value(Value.NOTHING)
        self.fixed = np.frombuffer(self._fixed, dtype=np.uint8)
        self.plan = np.array(self._plan, dtype=np.int64)
        longest = int(np.diff(self.texts[1]).max(initial=_LONGEST_NUMBER))
        of_set = sum(len(label) + 1 for label in labels)
        self.room = len(self.fixed) + len(self.plan) * longest + of_set

    def _place_numbers(self) -> None:
        """Place what `write_rows` rounds as distributions, then their ends, then the others."""
        (of_point, of_venn, of_scores), (maps, bounds) = self._common.classes, self._common.maps
        self._place("point", of_point, attrgetter("point"))
        for name in maps or ():
            self._place(("maps", name), of_point, partial(_of_map, name))
        self._place("lower", of_point, attrgetter("lower"))
        self._place("upper", of_point, attrgetter("upper"))
        for name in bounds or ():
            self._place(("map_intervals", name), 2 * of_point, partial(_pairs_of_map, name))
        self._place("venn_lower", of_venn, attrgetter("venn_lower"))
        self._place("venn_upper", of_venn, attrgetter("venn_upper"))
        self._place("scores", of_scores, attrgetter("scores"))
        for name in ("expected_cost", "label_probability"):
            if name not in self._common.absent:
                self._place(name, 1, partial(_as_column, name))

    def _place(
        self,
        key: str | tuple[str, str],
        width: int,
        values: Callable[[PredictionBlock], Floats],
    ) -> None:
        self._places[key] = self._width
        self._width += width
        self.numbers.append(values)

    def _write(self, name: str, value: Callable[[], None]) -> None:
        self._fixed += b'"%b":' % name.encode()
        value()
        self._fixed += b","

    def _value(self, kind: Value, column: int = 0, base: int = 0) -> None:
        self._plan.append((len(self._fixed), kind, column, base))

    def _column(self, column: Column) -> None:
        """Write a column: its value, or what stands before and after its values."""
        name, source, common = column.name, column.attributes[0], self._common
        of_point, of_venn, of_scores = common.classes
        match column.kind:
            case "constant" | "codes":
                self._fixed += dumps(common.constants[_CONSTANT.index(name)])
            case "about":
                reason = common.constants[_CONSTANT.index("reason")]
                self._fixed += dumps(None if reason is None else reason.about)
            case "count" | "optional" | "category":
                self._value(Value.WHOLE, self._rows[name])
            case "label" | "action" | "wanted" | "members":
                self._value(Value.TEXT, self._rows[name], self._bases.get(name, 0))
            case "own" if common.has_label:
                self._value(Value.OWN_NUMBER, self._places[source], self._rows["label"])
            case "own":
                self._fixed += dumps(column.unknown)
            case "cost" | "share":
                self._value(Value.NUMBER, self._places[name])
            case "list":
                self._list(self._places[source], of_point if source == "point" else of_scores)
            case "pairs":
                lower, upper = (self._places[each] for each in column.attributes)
                self._pairs(lower, upper, 1, of_point if source == "lower" else of_venn)
            case "lists_by_map":
                self._by_map(name, common.maps[0], lambda at: self._list(at, of_point))
            case "pairs_by_map":
                self._by_map(name, common.maps[1], lambda at: self._pairs(at, at + 1, 2, of_point))

    def _list(self, first: int, count: int) -> None:
        self._each(count, lambda k: self._value(Value.NUMBER, first + k))

    def _pairs(self, lower: int, upper: int, step: int, count: int) -> None:
        self._each(count, lambda k: self._pair(lower + step * k, upper + step * k))

    def _pair(self, *ends: int) -> None:
        self._each(2, lambda k: self._value(Value.NUMBER, ends[k]))

    def _each(self, count: int, write: Callable[[int], None]) -> None:
        self._fixed += b"["
        for k in range(count):
            self._fixed += b"," if k else b""
            write(k)
        self._fixed += b"]"

    def _by_map(
        self, column: str, names: tuple[str, ...] | None, write: Callable[[int], None]
    ) -> None:
        self._fixed += b"{"
        for i, name in enumerate(names or ()):
            self._fixed += (b"," if i else b"") + dumps(name) + b":"
            write(self._places[column, name])
        self._fixed += b"}"


# The layout changes only with the model.
_layout = lru_cache(maxsize=16)(_Layout)

_CONSTANT = [c.attributes[0] for c in COLUMNS if c.kind in ("constant", "about", "codes")]
_OPTIONAL = [column.name for column in COLUMNS if column.kind == "optional"]
_BY_SETTING = [
    "map_intervals", *(c.name for c in COLUMNS if c.kind in ("action", "cost", "wanted", "share")),
]  # fmt: skip
_WHOLES = [
    c.name
    for c in COLUMNS
    if c.kind in ("count", "optional", "category", "label", "action", "wanted")
]
_constants = attrgetter(*_CONSTANT)


def encode_rejected(error: InvalidExample, seq: int, n: int, id: str | None) -> bytes:
    """Return the payload for a rejected entry, as `RejectedMessage` describes it.

    Examples
    --------
    >>> encode_rejected(InvalidExample("feature_nan", feature=3), 4, 3, "a")
    b'{"v":2,"status":"rejected","id":"a","seq":4,"n":3,"code":"not_finite",\
"about":{"case":"feature_nan","feature":3}}'
    """
    return _message("rejected", id, seq=seq, n=n, code=error.code, about=error.about)


def encode_duplicate(seq: int, n: int, id: str | None, first: int) -> bytes:
    """Return the payload for a repeated id, as `DuplicateMessage` describes it."""
    return _message("duplicate", id, seq=seq, n=n, first=first)


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
