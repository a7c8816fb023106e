"""Operational events of a feed: what happened to its workers, not to its examples.

They go to a stream of their own, best effort. No answer depends on one, and none is in the digest.
"""

import json
from typing import Literal, get_args

from workers.message.version import VERSION

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


def encode_event(code: EventCode, writer: str, epoch: int, detail: str) -> str:
    """Return the payload of an event, as `EventMessage` describes it; a long detail is cut.

    Examples
    --------
    >>> encode_event("stopped", "host-a", 3, "in order, at seq 1200")
    '{"v":2,"code":"stopped","writer":"host-a","epoch":3,"detail":"in order, at seq 1200"}'
    """
    message = {
        "v": VERSION,
        "code": code,
        "writer": writer,
        "epoch": epoch,
        "detail": detail[:_DETAIL],
    }
    return json.dumps(message, separators=(",", ":"), ensure_ascii=True)


def encode_said(
    code: Literal["acknowledged", "silenced", "note"],
    speaker: str,
    epoch: int,
    why: str,
    alarm: str | None = None,
    until: int | None = None,
    n: int | None = None,
) -> str:
    """Return the payload of what a person said.

    Parameters
    ----------
    code : {"acknowledged", "silenced", "note"}
    speaker : str
    epoch : int
    why : str
        A long one is cut.
    alarm : str, optional
        ID of the entry in `alarms` that was seen.
    until : int, optional
        When the silence ends, in milliseconds since 1970.
    n : int, optional
        Examples learned before what a note is about.

    Examples
    --------
    >>> encode_said("acknowledged", "ann@desk", 3, "a new form", alarm="17-0")
    '{"v":2,"code":"acknowledged","writer":"ann@desk","epoch":3,"detail":"a new form",\
"alarm":"17-0"}'
    """
    message = json.loads(encode_event(code, speaker, epoch, why))
    said = {"alarm": alarm, "until": until, "n": n}
    message |= {name: value for name, value in said.items() if value is not None}
    return json.dumps(message, separators=(",", ":"), ensure_ascii=True)
