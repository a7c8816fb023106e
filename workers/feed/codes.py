"""Reason codes and codes of events, with their meanings; payloads that name them.

Events report what happened to the workers of a feed. They go to a stream of their own, best effort:
no answer depends on them, and they are not in the digest. This module does not import the models of
`schema`, so workers load it fast.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import orjson

from online_svm.rejections import reason_of
from online_svm.stream.guarantee_reason import sentence_of

VERSION = 2
"""Version of the schema of messages. Here, since the models of `schema` take long to load."""

EventCode = Literal[
    "began", "stopped", "failed", "position_read_again", "snapshot_not_kept", "snapshot_unusable",
    "input_uncounted", "input_ended", "retention", "acknowledged", "silenced", "note",
]  # fmt: skip


EVENTS_KEPT = 1000  # approximate number of events to keep
_DETAIL = 1000  # characters


CODES: dict[str, str] = {
    "no_features": "Neither `x` nor `xb` was sent.",
    "unparsable": "`x` is no JSON array or object, `p` no number, or text not UTF-8.",
    "not_finite": "A feature or `p` is NaN, infinite or too large.",
    "out_of_range": "A feature is subnormal or beyond 1e100, or `p` not in [0, 1].",
    "dimension": "Wrong number of features, or of bytes in `xb`.",
    "unknown_feature": "The feed does not have this feature.",
    "missing_feature": "A feature of the feed is absent or null.",
    "label": "`y` is empty, too long, not declared, or no integer, which `labels` asks for.",
    "too_many_classes": "A label beyond `max_classes`.",
    "unknown_field": "The schema has no such field.",
    "duplicate_field": "A field or feature twice; or `x` and `xb`, or `y` and `p`.",
    "too_large": "Beyond the [bounds](operate.md#bounds-of-the-input).",
    "slice": "`s` is no JSON object of text, or has an unknown slice or long text.",
    "label_entry": "An entry with `for` that lacks `y`, or has fields of an example.",
    "unknown_id": "A label for an unknown, forgotten or later id.",
    "after_horizon": "A label whose example was dropped, or is beyond the horizon.",
    "after_window": "A label whose example has left the window.",
    "conflict": "A label for an example with `p`; a waiting id with other features.",
    "time": "`time` is absent, or not milliseconds up to the year 9999.",
    "unsupported": "An unsupported type of feature; the reserved `c`; or a field whose setting "
    "is off, as `for` without `horizon`.",
}

EVENT_CODES: dict[EventCode, str] = {
    "began": "A worker begins to answer.",
    "stopped": "It stopped in order.",
    "failed": "It ended with the error in `detail`.",
    "position_read_again": "Redis lost writes, or the input changed: back to the commit.",
    "snapshot_not_kept": "A snapshot could not be kept.",
    "snapshot_unusable": "A snapshot is damaged or gone; another is used.",
    "input_uncounted": "No worker counted the input on this server before, as after `restore` "
    "or a move: whether entries were deleted unread until now is not known.",
    "input_ended": "The input reached the last possible ID.",
    "retention": "A start changed what is kept.",
    "acknowledged": "A person has seen `alarm`.",
    "silenced": "Nothing is posted before `until`; or a person knows of the open `notice`.",
    "note": "A person noted `detail`.",
}


def encode_event(
    code: EventCode,
    writer: str,
    epoch: int,
    detail: str,
    about: Mapping[str, str | int] = MappingProxyType({}),
) -> str:
    """Return the payload of an event, as `EventMessage` describes it; a long detail is cut.

    `about` has a field of a person's note: `alarm`, the ID of the acknowledged entry; `until`, the
    end of a silence as Unix time in milliseconds; `notice`, the code of a silenced notice, with
    `n`, its opening; or `n`, the examples learned before the noted event.

    Examples
    --------
    >>> encode_event("stopped", "host-a", 3, "in order, at seq 1200")
    '{"v":2,"code":"stopped","writer":"host-a","epoch":3,"detail":"in order, at seq 1200"}'
    """
    head = {"v": VERSION, "code": code, "writer": writer, "epoch": epoch}
    message = head | {"detail": detail[:_DETAIL]} | dict(about)
    return json.dumps(message, separators=(",", ":"), ensure_ascii=True)


def parse(data: bytes) -> Any:
    """Parse a payload. To a case that it is about its sentence is added, as `reason`.

    Raises ValueError if the bytes are not JSON.

    Examples
    --------
    >>> parse(b'{"v":2,"status":"rejected","about":{"case":"time_absent"}}')["reason"]
    'time is absent; the horizon of this feed counts it'
    """
    message = orjson.loads(data)
    if not isinstance(message, dict) or "about" not in message:
        return message
    sentence = reason_of if message.get("status") == "rejected" else sentence_of
    return message | {"reason": sentence(message["about"])}
