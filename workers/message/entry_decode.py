"""Decode one input entry: the definition of what is accepted, and of the rejections.

The field `traceparent` (W3C Trace Context) is taken off first, so it changes neither what is
learned nor what is answered. The answer repeats it as its last field. A value of another form, or
one sent twice, is ignored, as the standard asks.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import orjson

from online_svm.errors import SHOWN, InvalidExample
from online_svm.stream.input_batch import SliceValue, checked_slices
from online_svm.stream.schema import FeatureSchema, value_error
from online_svm.types import Floats
from workers.config.settings import Limits

EntryFields = Mapping[bytes, bytes] | Sequence[bytes]
"""Fields of a stream entry: a mapping, or the flat list of the protocol."""

MAX_FIELDS = 7  # fields of the largest ordinary entry
LARGE_BYTES = 1 << 16  # bytes of an `x` beyond which its values are counted before parsing

MAX_VALUES = 20_000
"""Most tokens (names, values, arrays, objects) in such an `x`; or twice the number of features, if
that is more."""

MAX_LABEL_CHARS = MAX_ID_CHARS = 256
"""Largest number of characters of a label, and of a producer's id."""

MAX_LABEL_BYTES = 256  # largest number of bytes of a label that is not declared

_NAMES = ["x", "xb", "y", "p", "id"]
_ALWAYS_KNOWN = frozenset(name.encode() for name in _NAMES)
_DISABLED = {b"s": "s_without_slices", b"for": "for_without_horizon", b"time": "time_not_counted"}
"""Cases of rejection for fields that a setting must enable."""

_OPTIONAL = (b"s", b"for", b"time")
_SCORES = (b"score", b"score_version")

_MAX_TIME = 253_402_300_799_999  # the last millisecond of the year 9999
_TIME = re.compile(rb"[0-9]{1,15}")
_MAX_NAME = 256
_MAX_P = 64  # characters: a 64-bit float needs far fewer
_MAX_SCORE = 1 << 18  # bytes of `score`: one number for each of hundreds of classes, by name
_MAX_SLICES = 1 << 14  # bytes of `s`: more than the values of all slices of a feed
_MAX_UTF8 = 4  # bytes of a character
# An unterminated string matches up to the end of the text, so that the scan takes linear time.
_TOKEN = re.compile(rb'[,[{]|"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_DECIMAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def pairs(fields: EntryFields) -> Iterator[tuple[bytes, bytes]]:
    """Yield the fields of an entry as pairs; a field may occur twice."""
    if isinstance(fields, Mapping):
        return iter(fields.items())
    return zip(fields[::2], fields[1::2], strict=True)


def size(fields: EntryFields) -> int:
    """Return the bytes of an entry: field names and values."""
    return sum(len(name) + len(value) for name, value in pairs(fields))


class Accepted(NamedTuple):
    """A valid entry."""

    row: Floats  # shape (n_features,)
    label: str | None
    probability: float | None
    slices: SliceValue | None
    time: int | None  # milliseconds, where the horizon counts time
    schema: FeatureSchema  # that the entry passed; it knows the features


def decode_entry(fields: EntryFields, schema: FeatureSchema, limits: Limits) -> Accepted:
    """Decode an entry. Raises InvalidExample."""
    _check_fields(fields, schema, limits)
    given = dict(pairs(fields))
    if b"id" in given:
        read_id(given[b"id"])
    target = read_target(given, schema)
    x = _read_features(given, schema, limits)
    if schema.may_mix and isinstance(x, dict):
        schema = schema.knowing(x, limits.max_features)
    row = schema.row(x)
    if schema.dimension is None:
        _check_adoptable(x, limits)
        schema = schema.of_example(x)
    return Accepted(row, *target, schema)


def _read_features(given: Mapping[bytes, bytes], schema: FeatureSchema, limits: Limits) -> Any:
    """Return the features of an entry, with its score if the feed takes scores."""
    if schema.scores is None:
        return _read_x(given[b"x"], schema, limits) if b"x" in given else _read_xb(given[b"xb"])
    x: Any = None
    if not schema.scores.is_alone:
        x = _read_x(given[b"x"], schema, limits) if b"x" in given else None
        x = _read_xb(given[b"xb"]) if b"xb" in given else x
    score, version = read_score(given.get(b"score", b"")), given.get(b"score_version", b"")
    return schema.scored(x, score, read_version(version))


def read_score(raw: bytes) -> Any:
    """Return a score: a number, or numbers by class; None if it is empty or null."""
    if not raw:
        return None
    if len(raw) <= _MAX_P and _DECIMAL.fullmatch(raw):
        return float(raw)
    try:
        if len(raw) <= _MAX_SCORE:
            return json.loads(raw, object_pairs_hook=_distinct, parse_int=float)
    except (ValueError, RecursionError):
        pass
    raise InvalidExample("score_not_json")


def read_version(raw: bytes) -> str:
    """Return the version of the model that gave a score."""
    return _text(raw, "score_version")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return pairs as a dict; raise ValueError if a name is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


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
    """Return the producer's id if it was sent once and is valid."""
    sent = [value for name, value in pairs(fields) if name == b"id"]
    if len(sent) != 1 or len(sent[0]) > _MAX_UTF8 * MAX_ID_CHARS:
        return None
    try:
        return read_id(sent[0])
    except InvalidExample:
        return None


def check_size(fields: EntryFields, limits: Limits) -> None:
    """Raise InvalidExample if an entry is too large."""
    if (found := size(fields)) > limits.max_entry_bytes:
        raise InvalidExample("entry_bytes", bytes=found, most=limits.max_entry_bytes)


def check_values(raw: bytes, schema: FeatureSchema, limits: Limits) -> None:
    """Reject a large `x` with far more values than any valid example, before it is parsed.

    A value may take two bytes of JSON, but a hundred bytes of memory. A valid `x` is one array or
    object with one number for each feature. Raises InvalidExample.
    """
    if len(raw) <= LARGE_BYTES:
        return
    features = max(limits.max_features, schema.dimension or 0)
    most = max(MAX_VALUES, 2 * features)
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") <= features:
        return
    # Commas and brackets inside of names do not count, so count tokens, up to the limit.
    if sum(1 for _ in islice(_TOKEN.finditer(raw), most + 1)) > most:
        raise InvalidExample("x_values", most=most)


def read_id(raw: bytes, name: str = "id") -> str:
    """Return a producer's id as text; `name` is the name of its field."""
    text = _text(raw, name)
    if len(text) > MAX_ID_CHARS:
        raise InvalidExample("id_characters", field=name, most=MAX_ID_CHARS)
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
    if not schema.declares_labels and len(raw) > MAX_LABEL_BYTES:
        raise InvalidExample("y_bytes", most=MAX_LABEL_BYTES)
    text = _text(raw, "y")
    if len(text) > MAX_LABEL_CHARS:
        raise InvalidExample("y_characters", most=MAX_LABEL_CHARS)
    return schema.label(text)


def read_probability(raw: bytes, schema: FeatureSchema) -> float | None:
    """Return the probability of the second class that an annotator gave."""
    if len(raw) <= _MAX_P and _NOT_FINITE.fullmatch(raw):
        return schema.probability(float("nan"))
    if len(raw) > _MAX_P or not _DECIMAL.fullmatch(raw):
        schema.probability(0.0)  # raises first if the learner takes no probabilities
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
    # A string has two quotation marks. If there are more of them, a name may occur twice.
    texts = len(sent) + sum(value is not None for value in sent.values())
    if raw.count(b'"') != 2 * texts and len(json.loads(raw, object_pairs_hook=list)) != len(sent):
        raise InvalidExample("slice_twice")
    return values


def _text(raw: bytes, name: str) -> str:
    if b"\0" in raw:
        raise InvalidExample("field_with_nul", field=name)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise InvalidExample("field_not_utf8", field=name) from None


def check_names(fields: EntryFields, schema: FeatureSchema) -> Sequence[bytes]:
    """Return the names of the fields. Raises InvalidExample for an unknown or repeated one."""
    names = list(fields) if isinstance(fields, Mapping) else fields[::2]
    for name in names:
        if name not in _ALWAYS_KNOWN and not _is_enabled(name, schema):
            raise _field_error(name, schema)
        if names.count(name) > 1:
            raise InvalidExample("field_twice", field=shown(name))
    return names


def _check_fields(fields: EntryFields, schema: FeatureSchema, limits: Limits) -> None:
    """Check the size of an entry and the names of its fields."""
    check_size(fields, limits)
    names = check_names(fields, schema)
    if b"x" in names and b"xb" in names:
        raise InvalidExample("x_and_xb")
    if b"y" in names and b"p" in names:
        raise InvalidExample("y_and_p")
    if not {b"x", b"xb", b"score"}.intersection(names):
        raise InvalidExample("no_x")


def _is_enabled(name: bytes, schema: FeatureSchema) -> bool:
    """Return whether a setting enables this field."""
    enabled = {
        b"s": schema.slices, b"for": schema.takes_delayed_labels,
        b"time": schema.counts_time,
    } | dict.fromkeys(_SCORES, schema.scores is not None)  # fmt: skip
    return bool(enabled.get(name))


def _field_error(name: bytes, schema: FeatureSchema) -> InvalidExample:
    """Return the error for a field that the feed does not accept."""
    if name in _DISABLED:
        return InvalidExample(_DISABLED[name])
    optional = _OPTIONAL + _SCORES
    known = [*_NAMES, *(enabled.decode() for enabled in optional if _is_enabled(enabled, schema))]
    if name == b"c":
        return InvalidExample("c_planned", known=known)
    return InvalidExample("field_unknown", field=shown(name), known=known)


def shown(name: bytes) -> str:
    """Return a field name for a message, shortened."""
    return name[:SHOWN].decode(errors="backslashreplace")


def _read_xb(raw: bytes) -> Floats:
    if len(raw) % 8:
        raise InvalidExample("xb_length", bytes=len(raw))
    return np.frombuffer(raw, dtype="<f8").astype(np.float64)


def _read_x(raw: bytes, schema: FeatureSchema, limits: Limits) -> list[object] | dict[str, object]:
    check_values(raw, schema, limits)
    try:
        x = orjson.loads(raw)
    except orjson.JSONDecodeError:
        x = _with_large_numbers(raw) if schema.may_mix else None
        if x is None:
            raise _parse_error(raw, schema) from None
    if isinstance(x, dict):
        # A string has two quotation marks. If there are more of them, a name may occur twice.
        texts = sum(type(value) is str for value in x.values())
        if raw.count(b'"') != 2 * (len(x) + texts):
            _check_repeats(raw, len(x))
    elif not isinstance(x, list):
        raise InvalidExample("x_no_collection")
    return x  # type: ignore[no-any-return]  # narrowed to list or dict above


def _with_large_numbers(raw: bytes) -> dict[str, object] | None:
    """Parse an object with numbers that JSON does not allow (NaN, 1e999); None if that fails."""
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


def _parse_error(raw: bytes, schema: FeatureSchema) -> InvalidExample:
    """Return the error for text that is not JSON, or a number that JSON does not allow."""
    not_json = InvalidExample("x_not_json")
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
    if len(x) > limits.max_features:
        raise InvalidExample("features_too_many", found=len(x), most=limits.max_features)
    if isinstance(x, dict) and not all(1 <= len(name) <= _MAX_NAME for name in x):
        raise InvalidExample("name_length", most=_MAX_NAME)
    if isinstance(x, dict) and any("\0" in name for name in x):
        raise InvalidExample("name_with_nul")


TRACEPARENT = "traceparent"
FIELD = TRACEPARENT.encode()

_FORM = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def read_trace(text: str | None) -> str | None:
    """Return a trace context of the standard's form, else None."""
    return text if text is not None and _FORM.fullmatch(text) else None


def is_sampled(trace: str) -> bool:
    """Return whether the sender records this trace: the last bit of the flags."""
    return int(trace[-2:], 16) & 1 == 1


def without_traces(
    entries: Sequence[tuple[bytes, EntryFields]], max_bytes: int
) -> tuple[list[tuple[bytes, EntryFields]], dict[int, str]] | None:
    """Return entries without the field, and the valid ones by index; None if no entry has it.

    An entry of more than `max_bytes` keeps the field: it is rejected for its size.
    """
    having = [i for i, (_, fields) in enumerate(entries) if _may_have(fields, max_bytes)]
    if not having:
        return None
    plain, traces = list(entries), {}
    for i in having:
        at, fields = entries[i]
        sent = [value for name, value in pairs(fields) if name == FIELD]
        rest = [part for pair in pairs(fields) if pair[0] != FIELD for part in pair]
        plain[i] = (at, dict(pairs(rest)) if isinstance(fields, Mapping) else rest)
        found = read_trace(sent[0].decode(errors="replace")) if len(sent) == 1 else None
        if found is not None:
            traces[i] = found
    return plain, traces


def _may_have(fields: EntryFields, max_bytes: int) -> bool:
    names = fields if isinstance(fields, Mapping) else fields[::2]
    return FIELD in names and size(fields) <= max_bytes


def traced(payload: bytes, trace: str | None) -> bytes:
    """Return the payload of an answer with the trace context of its entry."""
    return payload if trace is None else b'%b,"%b":"%b"}' % (payload[:-1], FIELD, trace.encode())
