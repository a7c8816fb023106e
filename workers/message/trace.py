"""The trace context of an entry (W3C Trace Context): the field `traceparent`.

It is taken off before an entry is decoded, so it changes neither what is learned nor what is
answered. The answer repeats it as its last field. A value of another form, or one sent twice, is
ignored, as the standard asks.
"""

import re
from collections.abc import Mapping, Sequence

from workers.message.entry_decode import EntryFields, pairs, size

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
