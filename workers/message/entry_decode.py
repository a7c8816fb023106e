"""Decode one input entry: what is accepted, and the reason code of what is rejected."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import orjson

from online_svm.errors import SHOWN, InvalidExample
from online_svm.stream.input_batch import SliceValue, checked_slices
from online_svm.stream.schema import FeatureSchema, value_error
from online_svm.stream.scored_rows import GivenAnswer, checked_answer
from online_svm.types import Floats
from workers.config.settings import Limits

EntryFields = Mapping[bytes, bytes] | Sequence[bytes]
"""Fields of a stream entry: by name, or the flat list of the protocol."""

MOST_FIELDS = 5
"""Fields of the largest entry that can be accepted."""

LARGE_BYTES = 1 << 16
"""Bytes of an `x` beyond which its values are counted before it is parsed."""

MOST_VALUES = 20_000
"""Names, values, arrays and objects in an `x` that is larger than that; at least twice the features
are taken."""

MOST_LABEL_CHARS = MOST_ID_CHARS = 256
"""Characters of a label, and of a producer's id."""

MOST_LABEL_BYTES = 256
"""Bytes of a label that is not declared."""

_NAMES = ["x", "xb", "y", "p", "id"]
_KNOWN = frozenset(name.encode() for name in _NAMES)
_NEEDS = {b"s": "s_without_slices", b"for": "for_without_horizon", b"time": "time_not_counted"}
"""The cases of fields that a setting asks for, where it does not."""

_ASKED = (b"s", b"for", b"time", b"a")

_MAX_TIME = 253_402_300_799_999  # the last millisecond of the year 9999
_TIME = re.compile(rb"[0-9]{1,15}")
_MAX_NAME = 256
_MAX_P = 64  # characters: every 64-bit float can be written with far fewer
_MAX_ANSWER = 1 << 18  # bytes of `a`: a full answer of hundreds of classes
_MAX_SLICES = 1 << 14  # bytes of `s`: more than all values a feed can have
_MAX_UTF8 = 4  # bytes of a character, at most
# An unterminated string matches to the end of the text, so the scan takes linear time.
_TOKEN = re.compile(rb'[,[{]|"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_DECIMAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def pairs(fields: EntryFields) -> Iterator[tuple[bytes, bytes]]:
    """Yield the fields of an entry as pairs, repeats included."""
    if isinstance(fields, Mapping):
        return iter(fields.items())
    return zip(fields[::2], fields[1::2], strict=True)


def size(fields: EntryFields) -> int:
    """Return the bytes of an entry: field names and values."""
    return sum(len(name) + len(value) for name, value in pairs(fields))


class Accepted(NamedTuple):
    """An entry that can be used."""

    row: Floats  # shape (n_features,)
    label: str | None
    probability: float | None
    slices: SliceValue | None
    time: int | None  # milliseconds, where the horizon counts time
    schema: FeatureSchema  # the one it was checked by; it knows the features now
    given: GivenAnswer | None = None  # the answer that was published before the label came


def decode_entry(fields: EntryFields, schema: FeatureSchema, limits: Limits) -> Accepted:
    """Return what an entry holds. Raises InvalidExample with one of `REJECTION_CODES`."""
    _check_fields(fields, schema, limits)
    given = dict(pairs(fields))
    if b"id" in given:
        read_id(given[b"id"])
    target = read_target(given, schema)
    answer = read_answer(given[b"a"], schema) if b"a" in given else None
    x = _read_x(given[b"x"], schema, limits) if b"x" in given else _read_raw(given[b"xb"])
    if schema.may_mix and isinstance(x, dict):
        schema = schema.knowing(x, limits.max_features)
    row = schema.row(x)
    if schema.dimension is None:
        _check_adoptable(x, limits)
        schema = schema.of_example(x)
    return Accepted(row, *target, schema, answer)


def read_target(
    given: Mapping[bytes, bytes], schema: FeatureSchema
) -> tuple[str | None, float | None, SliceValue | None, int | None]:
    """Return label, probability, slices and time of an entry."""
    return (
        read_label(given[b"y"], schema) if b"y" in given else None,
        read_probability(given[b"p"], schema) if b"p" in given else None,
        read_slices(given[b"s"], schema) if b"s" in given else None,
        read_time(given.get(b"time")) if schema.counts_time else None,
    )


def readable_id(fields: EntryFields) -> str | None:
    """Return the producer's id if it was sent once and can be repeated in an answer."""
    sent = [value for name, value in pairs(fields) if name == b"id"]
    if len(sent) != 1 or len(sent[0]) > _MAX_UTF8 * MOST_ID_CHARS:
        return None
    try:
        return read_id(sent[0])
    except InvalidExample:
        return None


def check_size(fields: EntryFields, limits: Limits) -> None:
    """Raise InvalidExample for an entry of too many bytes, before anything in it is decoded."""
    if (found := size(fields)) > limits.max_entry_bytes:
        raise InvalidExample("entry_bytes", bytes=found, most=limits.max_entry_bytes)


def check_values(raw: bytes, schema: FeatureSchema, limits: Limits) -> None:
    """Reject a large `x` that has far more values than any example, before it is parsed.

    A value takes two bytes of JSON and up to a hundred bytes of memory. An acceptable `x` is one
    array or object, with one number for each feature. Raises InvalidExample.
    """
    if len(raw) <= LARGE_BYTES:
        return
    features = max(limits.max_features, schema.dimension or 0)
    most = max(MOST_VALUES, 2 * features)
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") <= features:
        return
    # Commas and brackets inside names do not count. So count tokens, up to the limit.
    if sum(1 for _ in islice(_TOKEN.finditer(raw), most + 1)) > most:
        raise InvalidExample("x_values", most=most)


def read_id(raw: bytes, name: str = "id") -> str:
    """Return a producer's id as text; `name` is the name of its field."""
    text = _text(raw, name)
    if len(text) > MOST_ID_CHARS:
        raise InvalidExample("id_characters", field=name, most=MOST_ID_CHARS)
    return text


def read_time(raw: bytes | None) -> int:
    """Return the producer's time in milliseconds."""
    if raw is None:
        raise InvalidExample("time_absent")
    if not _TIME.fullmatch(raw) or int(raw) > _MAX_TIME:
        raise InvalidExample("time_no_milliseconds", most=_MAX_TIME)
    return int(raw)


def read_label(raw: bytes, schema: FeatureSchema) -> str | None:
    """Return the label in its canonical form."""
    if not schema.declares_labels and len(raw) > MOST_LABEL_BYTES:
        raise InvalidExample("y_bytes", most=MOST_LABEL_BYTES)
    text = _text(raw, "y")
    if len(text) > MOST_LABEL_CHARS:
        raise InvalidExample("y_characters", most=MOST_LABEL_CHARS)
    return schema.label(text)


def read_probability(raw: bytes, schema: FeatureSchema) -> float | None:
    """Return the probability of the second class that an annotator gave."""
    if len(raw) <= _MAX_P and _NOT_FINITE.fullmatch(raw):
        return schema.probability(float("nan"))
    if len(raw) > _MAX_P or not _DECIMAL.fullmatch(raw):
        schema.probability(0.0)  # a learner that takes no probability is the better reason
        raise InvalidExample("p_no_decimal", most=_MAX_P)
    return schema.probability(float(raw))


def read_slices(raw: bytes, schema: FeatureSchema) -> SliceValue | None:
    """Return the values of the feed's slices."""
    if len(raw) > _MAX_SLICES:
        raise InvalidExample("s_bytes", most=_MAX_SLICES)
    try:
        sent = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise InvalidExample("s_not_json") from None
    if not isinstance(sent, dict):
        raise InvalidExample("s_no_object")
    values = checked_slices(sent, schema.slices)
    # A text has two quotation marks. If there are more of them, a name may occur twice.
    texts = len(sent) + sum(value is not None for value in sent.values())
    if raw.count(b'"') != 2 * texts and len(json.loads(raw, object_pairs_hook=list)) != len(sent):
        raise InvalidExample("slice_twice")
    return values


def read_answer(raw: bytes, schema: FeatureSchema) -> GivenAnswer:
    """Return what an answer that was given puts first; the other fields of it are not looked at."""
    if len(raw) > _MAX_ANSWER:
        raise InvalidExample("a_bytes", most=_MAX_ANSWER)
    try:
        sent = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise InvalidExample("answer_not_json") from None
    return checked_answer(sent, schema.classes)


def _text(raw: bytes, name: str) -> str:
    if b"\0" in raw:
        raise InvalidExample("field_with_nul", field=name)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise InvalidExample("field_not_utf8", field=name) from None


def check_names(fields: EntryFields, schema: FeatureSchema) -> Sequence[bytes]:
    """Return the names of the fields; raise InvalidExample if one is not known, or sent twice."""
    names = list(fields) if isinstance(fields, Mapping) else fields[::2]
    for name in names:
        if name not in _KNOWN and not _is_asked(name, schema):
            raise _no_field(name, schema)
        if names.count(name) > 1:
            raise InvalidExample("field_twice", field=shown(name))
    return names


def _check_fields(fields: EntryFields, schema: FeatureSchema, limits: Limits) -> None:
    """Reject an entry by its size or by the names of its fields."""
    check_size(fields, limits)
    names = check_names(fields, schema)
    if b"x" in names and b"xb" in names:
        raise InvalidExample("x_and_xb")
    if b"y" in names and b"p" in names:
        raise InvalidExample("y_and_p")
    if b"x" not in names and b"xb" not in names:
        raise InvalidExample("no_x")
    if b"a" in names and b"y" not in names:
        raise InvalidExample("answer_without_y")


def _is_asked(name: bytes, schema: FeatureSchema) -> bool:
    """Return whether a setting asks for this field."""
    asked = {b"s": schema.slices, b"for": schema.takes_delayed_labels, b"time": schema.counts_time}
    asked[b"a"] = schema.takes_answers
    return bool(asked.get(name))


def _no_field(name: bytes, schema: FeatureSchema) -> InvalidExample:
    """Return the error of a field that the feed does not take."""
    if name in _ASKED and schema.is_of_requests:
        return InvalidExample("field_of_example", field=shown(name))
    if name in _NEEDS:
        return InvalidExample(_NEEDS[name])
    known = [*_NAMES, *(asked.decode() for asked in _ASKED if _is_asked(asked, schema))]
    if name == b"c":
        return InvalidExample("c_planned", known=known)
    return InvalidExample("field_unknown", field=shown(name), known=known)


def shown(name: bytes) -> str:
    """Return a field name for a message, shortened."""
    return name[:SHOWN].decode(errors="backslashreplace")


def _read_raw(raw: bytes) -> Floats:
    if len(raw) % 8:
        raise InvalidExample("xb_length", bytes=len(raw))
    return np.frombuffer(raw, dtype="<f8").astype(np.float64)


def _read_x(raw: bytes, schema: FeatureSchema, limits: Limits) -> list[object] | dict[str, object]:
    check_values(raw, schema, limits)
    try:
        x = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        x = _with_large_numbers(raw) if schema.may_mix else None
        if x is None:
            raise _why_unparsable(raw, str(error), schema) from None
    if isinstance(x, dict):
        # A text has two quotation marks. If there are more of them, a name may occur twice.
        texts = sum(type(value) is str for value in x.values())
        if raw.count(b'"') != 2 * (len(x) + texts):
            _check_repeats(raw, len(x))
    elif not isinstance(x, list):
        raise InvalidExample("x_no_collection")
    return x  # type: ignore[no-any-return]  # narrowed to list or dict above


def _with_large_numbers(raw: bytes) -> dict[str, object] | None:
    """Return an object with numbers that JSON cannot hold (NaN, 1e999); None if it is none."""
    try:
        x = json.loads(raw.decode(), parse_int=float)
    except (ValueError, RecursionError):
        return None
    return x if isinstance(x, dict) else None


def _check_repeats(raw: bytes, distinct: int) -> None:
    try:
        repeated = json.loads(raw, object_pairs_hook=list, parse_int=float)
    except RecursionError:
        raise InvalidExample("x_too_deep") from None
    if len(repeated) != distinct:
        raise InvalidExample("feature_twice")


def _why_unparsable(raw: bytes, message: str, schema: FeatureSchema) -> InvalidExample:
    """Return the reason: a number that JSON cannot hold (NaN, 1e999), or text that is not JSON."""
    not_json = InvalidExample("x_not_json", words=message.split(":")[0][:80])
    try:
        x = json.loads(raw.decode(), parse_int=float)
    except (ValueError, RecursionError):
        return not_json
    if isinstance(x, dict):
        named = [(name[:SHOWN], value) for name, value in x.items()]
    else:
        named = [(schema.feature(i), value) for i, value in enumerate(x if type(x) is list else ())]
    for feature, value in named:
        if isinstance(value, float) and not np.isfinite(value):
            return value_error(value, feature)
    return not_json


def _check_adoptable(x: list[object] | dict[str, object] | Floats, limits: Limits) -> None:
    """Reject an `x` that must not define the features of a feed."""
    if len(x) > limits.max_features:
        raise InvalidExample("features_too_many", found=len(x), most=limits.max_features)
    if isinstance(x, dict) and not all(1 <= len(name) <= _MAX_NAME for name in x):
        raise InvalidExample("name_length", most=_MAX_NAME)
    if isinstance(x, dict) and any("\0" in name for name in x):
        raise InvalidExample("name_with_nul")
