"""Operational events of a feed: what happened to its workers, not to its examples.

They go to a stream of their own, best effort. No answer depends on one, and none is in the digest.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

from workers.message import VERSION

EventCode = Literal[
    "began",
    "stopped",
    "failed",
    "position_read_again",
    "snapshot_not_kept",
    "snapshot_unusable",
    "input_uncounted",
    "input_ended",
    "acknowledged",
    "silenced",
    "note",
]

CODES: tuple[EventCode, ...] = get_args(EventCode)

KEPT = 1000
"""Events that are kept, about."""

_DETAIL = 1000  # characters


def encode_event(
    code: EventCode,
    writer: str,
    epoch: int,
    detail: str,
    about: Mapping[str, str | int] = MappingProxyType({}),
) -> str:
    """Return the payload of an event, as `EventMessage` describes it; a long detail is cut.

    Parameters
    ----------
    code : EventCode
    writer : str
        Worker, or person.
    epoch : int
    detail : str
    about : mapping, optional
        For what a person said: `alarm`, the ID of the entry that was seen; `until`, the end of a
        silence in milliseconds since 1970; or `n`, examples learned before what a note is about.

    Examples
    --------
    >>> encode_event("stopped", "host-a", 3, "in order, at seq 1200")
    '{"v":2,"code":"stopped","writer":"host-a","epoch":3,"detail":"in order, at seq 1200"}'
    >>> encode_event("acknowledged", "ann@desk", 3, "a new form", {"alarm": "17-0"})
    '{"v":2,"code":"acknowledged","writer":"ann@desk","epoch":3,"detail":"a new form",\
"alarm":"17-0"}'
    """
    head = {"v": VERSION, "code": code, "writer": writer, "epoch": epoch}
    message = head | {"detail": detail[:_DETAIL]} | dict(about)
    return json.dumps(message, separators=(",", ":"), ensure_ascii=True)
