"""JSON of whole columns: each is serialized in one call and split at the commas."""

import re
from collections.abc import Sequence

import numpy as np
import orjson

from online_svm.types import Floats, Ints

_PLUS = re.compile(rb'("(?:[^"\\]|\\.)*")|e\+')


def dumps(value: object) -> bytes:
    """Return the JSON of a value, whose bytes are the same with every admitted orjson.

    All of them write a number with the fewest digits that read back as the same number. From 1e16
    on some write a plus before the exponent; none does here.

    Examples
    --------
    >>> dumps({"e+": 1e300})
    b'{"e+":1e300}'
    """
    text = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    return _PLUS.sub(lambda found: found[1] or b"e", text) if b"e+" in text else text


def literal(value: object) -> bytes:
    """Return the JSON of a value, escaped for use in a template.

    Examples
    --------
    >>> literal("50%")
    b'"50%%"'
    """
    return dumps(value).replace(b"%", b"%%")


def id_parts(ids: Sequence[str | None]) -> list[bytes]:
    """Return the field `id` with a comma after it, for each row; nothing where there is no id.

    Examples
    --------
    >>> id_parts(["a", None])
    [b'"id":"a",', b'']
    """
    return [b"" if i is None else b'"id":%b,' % orjson.dumps(i) for i in ids]


def integers(column: Ints) -> list[bytes]:
    """Return the JSON of each number.

    Examples
    --------
    >>> integers(np.array([3, -1]))
    [b'3', b'-1']
    """
    text = dumps(np.ascontiguousarray(column))
    return text[1:-1].split(b",")


def categories(column: Ints) -> list[bytes]:
    """Return the JSON of each number, `null` for -1.

    Examples
    --------
    >>> categories(np.array([3, -1]))
    [b'3', b'null']
    """
    return [b"null" if text == b"-1" else text for text in integers(column)]


def numbers(values: Floats | Ints) -> list[bytes]:
    """Return the JSON of each row of an array of one to three dimensions, without its brackets.

    Raises
    ------
    ValueError
        If a number is not finite.

    Examples
    --------
    >>> numbers(np.array([[0.5, 1.0], [0.25, 0.0]]))
    [b'0.5,1.0', b'0.25,0.0']
    """
    text = dumps(np.ascontiguousarray(values))
    if b"null" in text:
        raise ValueError("a prediction holds a number that is not finite")
    depth = values.ndim
    return text[depth:-depth].split(b"]" * (depth - 1) + b"," + b"[" * (depth - 1))


def interleave(lower: Floats, upper: Floats) -> Floats:
    """Return the pairs of two arrays of one shape, along a new last axis."""
    pairs = np.empty((*lower.shape, 2))
    pairs[..., 0], pairs[..., 1] = lower, upper
    return pairs
