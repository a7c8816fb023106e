"""Convert JSON objects, the bodies of the plain routes, to fields of input entries.

The values of features are not checked here: the worker's answer accepts or rejects them.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from workers.gateway.bodies import LabelOfExample, NewExample, RowToScore
from workers.gateway.refused import Refused, wrong
from workers.gateway.tensors import MAX_ROWS
from workers.message.entry_decode import MAX_ID_CHARS
from workers.push.ingest import Fields, entry, label_entry
from workers.push.reading import BadSource
from workers.push.rows import Row, label_text

MAX_PARTS = 1 << 17
"""Largest number of names, arrays and objects in one request, which determine the time to parse. A
row of 100,000 named features, the most that a feed may have, fits."""

_EXAMPLE = tuple(NewExample.model_fields)
_ROW = tuple(RowToScore.model_fields)
_LABEL = tuple(LabelOfExample.model_fields)
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


def parsed(body: bytes) -> Any:
    """Parse a JSON body.

    Raises Refused: 400 if it is not JSON; 413 if it has more than `MAX_PARTS` parts; 422 if an
    object has a name twice.
    """
    if _parts(body) > MAX_PARTS and _parts(_TEXT.sub(b"", body)) > MAX_PARTS:
        raise Refused("too_many_parts", most=MAX_PARTS)
    try:
        found = orjson.loads(body)
        # orjson keeps the last value of a repeated name, so a second parser checks the names.
        json.loads(body, object_pairs_hook=_check_names_differ, parse_int=bool, parse_float=bool)
    except orjson.JSONDecodeError as error:
        raise Refused("not_json", words=str(error).split(":")[0][:80]) from None
    except RecursionError:
        raise Refused("too_deep") from None
    return found


def _parts(body: bytes) -> int:
    """Count the names, arrays and objects of a body; ":", "[" and "{" in strings count, too."""
    return sum(map(body.count, (b":", b"[", b"{")))


def _check_names_differ(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) == len(pairs):
        return
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise wrong(repr(name[:80]), "this name is sent twice in one object")
        seen.add(name)


def objects(found: Any, most: int = MAX_ROWS) -> list[Mapping[str, Any]]:
    """Return the objects of a body: one object, or a list of up to `most`. Raises Refused."""
    rows = found if isinstance(found, list) else [found]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise wrong("the body", "send a JSON object, or a list of one or more")
    if len(rows) > most:
        raise Refused("too_many_rows", field="the body", found=len(rows), most=most)
    return rows


def ids_of(given: object, count: int, field: str = "id") -> list[str] | None:
    """Return the ids of the rows of a request that has one id; None if it has none.

    Examples
    --------
    >>> ids_of("day-1", 1), ids_of("day-1", 2)
    (['day-1'], ['day-1/0', 'day-1/1'])
    """
    if given is None:
        return None
    if not isinstance(given, str):
        raise wrong(field, "send a text")
    if len(given) > MAX_ID_CHARS:  # of each row, and repeated in each
        raise wrong(field, f"send at most {MAX_ID_CHARS} characters")
    return [given] if count == 1 else [f"{given}/{i}" for i in range(count)]


def example(sent: Mapping[str, Any], where: str = "", key: str | None = None) -> Fields:
    """Return the fields of the input entry for an example.

    `where` is the prefix of names in error messages; `key` is the Idempotency-Key of the request.
    Raises Refused: 422 with the name of the field; 400 if `x`, `s` or `a` is nested too deeply.

    Examples
    --------
    >>> example({"x": {"country": "de", "age": 3}, "y": True})
    [b'x', b'{"country":"de","age":3}', b'y', 'true']
    """
    _check_names(sent, _EXAMPLE, where)
    x, given = sent.get("x"), sent.get("id")
    if x is None and "score" in sent:
        x = {}
    if not isinstance(x, list | dict):
        raise wrong(f"{where}x", "send an array of values, or an object of named ones")
    if key is not None and given not in (None, key):
        raise wrong(f"{where}id", "it is not the Idempotency-Key; send one of the two")
    for name, kind in (("s", dict), ("time", int)):
        if not isinstance(sent.get(name), kind | None) or sent.get(name) is True:
            raise wrong(f"{where}{name}", f"send {_KINDS[kind]}")
    row = Row(
        x,
        y=_label(sent, where),
        id=_text(given, "id", where) or key,
        p=_probability(sent, where),
        s=sent.get("s"),
        time=sent.get("time"),
        score=sent.get("score"),
        score_version=_version(sent, where),
    )
    try:
        fields = entry(row)
    except orjson.JSONEncodeError:
        raise Refused("too_deep") from None
    return fields


def row_to_score(sent: Mapping[str, Any], where: str = "") -> Fields:
    """Return the fields of an entry for a row to score: an example to which no label belongs.

    Raises Refused as `example`.
    """
    _check_names(sent, _ROW, where)
    return example(sent, where)


def label(sent: Mapping[str, Any], where: str = "") -> Fields:
    """Return the fields of the input entry for the label of an earlier example.

    Raises Refused: 422, with the name of the field.

    Examples
    --------
    >>> label({"id": "tx-1", "y": "spam"})
    [b'for', 'tx-1', b'y', 'spam']
    """
    _check_names(sent, _LABEL, where)
    for name in _LABEL:
        if sent.get(name) is None:
            raise wrong(f"{where}{name}", "a label needs the id of its example, and y")
    return label_entry(Row([], _label(sent, where), _text(sent["id"], "id", where)))


_KINDS = {dict: "an object", int: "an integer"}


def _check_names(sent: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in sent:
        if name not in known:
            raise wrong(f"{where}{name[:80]!r}", f"unknown; known are {', '.join(known)}")


def _label(sent: Mapping[str, Any], where: str) -> str | None:
    y = sent.get("y")
    if isinstance(y, list | dict):
        raise wrong(f"{where}y", "send a text, a number or true or false")
    try:
        return label_text(y)
    except BadSource as error:
        raise wrong(f"{where}y", str(error)) from None


def _probability(sent: Mapping[str, Any], where: str) -> str | None:
    p = sent.get("p")
    if p is None or isinstance(p, str):
        return p
    if isinstance(p, bool) or not isinstance(p, int | float):
        raise wrong(f"{where}p", "send a number from 0 to 1")
    return repr(p)


def _version(sent: Mapping[str, Any], where: str) -> str | int | None:
    version = sent.get("score_version")
    if isinstance(version, bool) or not isinstance(version, str | int | None):
        raise wrong(f"{where}score_version", "send a text or an integer")
    return version


def _text(value: Any, name: str, where: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise wrong(f"{where}{name}", "send a text")
