"""The reader of JSON lines."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson

from workers.push.reading import BadSource, Reading
from workers.push.rows import (
    Layout,
    Row,
    filled,
    label_text,
    plain,
    refuse_rounded,
    set_roles,
    slices_of,
    time_column,
    time_texts,
)
from workers.push.times import TimeColumn, TimeTexts

_ENTRY_KEYS = "x, y, p, id, s, time, score and score_version"
_MAX_SHOWN = 3  # parts of an object in a message


def json_rows(lines: Iterable[str], reading: Reading, layout: Layout) -> Iterator[Row]:
    """Read objects in the form of an input entry (with `x`), or flat ones.

    Values but local times are sent unchanged; the feed rejects those that it cannot use.
    """
    layout.label = (reading.label or "y") if reading.labelled else None
    set_roles(reading, layout)
    times, texts = time_column(reading, layout), time_texts(reading)
    for line in lines:
        if line.strip():
            item = orjson.loads(line)
            if not isinstance(item, dict):
                raise ValueError("a line must be a JSON object")
            _check_names(line, item)
            yield _json_row(item, reading, times, texts)


def _check_names(line: str, item: Mapping[str, Any]) -> None:
    """Raise BadSource if a name stands twice in one object, of which the parser keeps the last."""
    x = item.get("x")
    names = len(item) + (len(x) if isinstance(x, dict) else 0)
    if line.count(":") != names:  # more than one for each name: twice, deeper, or in a text
        with suppress(RecursionError):
            json.loads(line, object_pairs_hook=_distinct, parse_int=float)


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadSource(f"the name {twice[:40]!r} stands twice in one object")


def _json_row(item: dict[str, Any], reading: Reading, times: TimeColumn, texts: TimeTexts) -> Row:
    name, is_entry = reading.label or "y", isinstance(item.get("x"), list | dict)
    if reading.flatten and not is_entry:
        item = _flat(item, {reading.score, *reading.drop})
    id_name = reading.id or ("id" if is_entry else None)
    p = item.pop("p", None) if is_entry else None
    sent = None if id_name is None else item.pop(id_name, None)
    if reading.label is not None and name not in item and p is None:
        raise BadSource(f"no {name!r} for the label")
    y = item.pop(name, None) if reading.labelled else None
    s = slices_of(item, reading) or (item.pop("s", None) if is_entry else None)
    time_name = reading.time or ("time" if is_entry else None)
    at = None if time_name is None or time_name not in item else item.pop(time_name)
    if reading.time is not None and at is None and not reading.labels_only:
        raise BadSource(f"no {reading.time!r} for the time")
    score = item.pop(reading.score or "score", None) if is_entry or reading.score else None
    version = item.pop("score_version", None) if is_entry else None
    if isinstance(version, float):
        version = label_text(version)
    for dropped in (*reading.drop, *reading.slices):
        item.pop(dropped, None)
    x = item.pop("x") if is_entry else item
    if is_entry and item:
        raise BadSource(f"unknown keys beside {_ENTRY_KEYS}: {', '.join(item)[:200]}")
    features = {} if reading.labels_only else _features(x, reading, texts)
    for role, value in (("label", y), ("probability", p), ("id", sent)):
        if isinstance(value, dict | list):
            raise BadSource(f"the {role} is {_kind(value)}, not one value")
    row = _targets(features, y, p, sent, reading)
    if at is not None and not reading.labels_only:
        row = replace(row, time=times.milliseconds(texts.read(time_name or "time", at)))
    if not reading.labels_only:
        row = replace(row, score=plain(score, reading.missing), score_version=version or None)
    return row if s is None else replace(row, s=s)


def _flat(item: Mapping[str, Any], kept: set[str | None]) -> dict[str, Any]:
    """Return an object with the parts of its objects, named with dots, but for the `kept` ones."""
    flat: dict[str, Any] = {}
    remaining: list[tuple[str, Any]] = [*item.items()][::-1]
    while remaining:
        name, value = remaining.pop()
        if isinstance(value, dict) and name not in kept:
            remaining += [(f"{name}.{key}", part) for key, part in [*value.items()][::-1]]
        elif name in flat:
            raise BadSource(f"two values have the name {name[:40]!r} once objects are flat")
        else:
            flat[name] = value
    return flat


def _features(x: Any, reading: Reading, texts: TimeTexts) -> Any:
    """Return the features without dropped columns, and with null for missing values.

    Raises BadSource for a feature that is an object or a list.
    """
    if isinstance(x, dict):
        if reading.flatten:
            x = _flat(x, set(reading.drop))
        x = {name: value for name, value in x.items() if name not in reading.drop}
        for name, value in x.items():
            if isinstance(value, dict | list):
                raise _not_one_value(name, value)
        return {name: texts.read(name, _present(value, reading)) for name, value in x.items()}
    for place, value in enumerate(x):
        if isinstance(value, dict | list):
            raise BadSource(f"x[{place}] is {_kind(value)}: a feature is one value")
    return [_present(value, reading) for value in x]


def _present(value: Any, reading: Reading) -> Any:
    return None if isinstance(value, str) and value in reading.na else value


def _kind(value: Any) -> str:
    return "an object" if isinstance(value, dict) else "a list"


def _not_one_value(name: str, value: Any) -> BadSource:
    drop = f"--drop {shlex.quote(name[:40])} leaves it out"
    shown = f"{name[:40]} is {_kind(value)}: a feature is one value"
    if isinstance(value, dict) and value:
        parts = ", ".join(f"{name}.{key}"[:40] for key in [*value][:_MAX_SHOWN])
        return BadSource(f"{shown}; --flatten sends its parts as {parts}, {drop}")
    return BadSource(f"{shown}; {drop}")


def _targets(x: Any, y: object, p: object, sent: object, reading: Reading) -> Row:
    """Return a row; a label is missing if it is null or a text of --na, not if it is empty."""
    label, probability = label_text(y), filled(p, reading.missing)
    refuse_rounded(sent)
    if probability is not None or label in reading.na:
        label = filled(y, reading.missing)
    return Row(x, label, None if sent is None else str(sent), probability)
