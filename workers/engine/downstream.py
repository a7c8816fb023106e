"""Back-pressure from consumers: answers are not trimmed before a consumer group acknowledged them.

With the policy `trim`, answers beyond `retain_out` are trimmed, whether they were read or not. With
`block`, they are trimmed only after the group acknowledged them; so are their input, reports and
alarms. While `retain_out` answers are kept and the oldest is not acknowledged, the
worker reads no input. The input waits in `in`; nothing is lost.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import structlog

from workers.broker.store import Store
from workers.engine.telemetry import Telemetry
from workers.feed.position import LAST_ID, next_id, parse_id
from workers.stop import Stop

SECONDS = 0.5
"""Seconds between two checks of a group that is behind."""

log = structlog.get_logger("online_svm.worker")


class Gate(Protocol):
    """Decides whether another batch may be answered."""

    def is_open(self, batch: int) -> bool:
        """Return whether up to `batch` more answers may be written now. It may block briefly."""
        ...

    def trimmable(self, upto: bytes) -> bytes:
        """Return the ID before which input may be trimmed, at most `upto`; empty for none."""
        ...


class OpenGate:
    """The gate of the policy `trim`: always open, since the commit trims.

    Examples
    --------
    >>> OpenGate().is_open(256)
    True
    """

    def is_open(self, batch: int) -> bool:  # noqa: ARG002  (it is open for any)
        """Return True."""
        return True

    def trimmable(self, upto: bytes) -> bytes:
        """Return `upto`."""
        return upto


class AcknowledgedGate:
    """The gate of the policy `block`.

    `out` holds at most `retain` answers and one batch. The store's own retention of `out` and of
    the streams beside it must be 0, so that a commit trims nothing.

    Parameters
    ----------
    store : Store
    group : str
        Consumer group of `out`; while there is none, nothing counts as acknowledged.
    retain : int
        Answers to keep.
    stop : Stop
    seconds : float
        How long `is_open` waits before it returns False.
    telemetry : Telemetry, optional
        Is told while the feed waits.
    beside : mapping of str to int
        Further streams whose entries belong to answers, and how many to keep of each; 0 keeps all.
    """

    def __init__(
        self,
        store: Store,
        group: str,
        retain: int,
        stop: Stop,
        seconds: float = SECONDS,
        telemetry: Telemetry | None = None,
        beside: Mapping[str, int] | None = None,
    ) -> None:
        self._store, self._group, self._retain, self._stop = store, group, retain, stop
        self._beside = {stream: count for stream, count in (beside or {}).items() if count}
        self._seconds, self._telemetry = seconds, telemetry or Telemetry()
        self._was_open = True

    def is_open(self, batch: int) -> bool:
        """Trim what is acknowledged beyond `retain`; return whether there is room again."""
        kept = self._store.length(self._store.keys.out)
        room = kept < self._retain or kept - self._trim(kept - self._retain + batch) < self._retain
        if room != self._was_open:
            self._tell(room)
        if not room:
            self._stop.wait(self._seconds)
        return room

    def trimmable(self, upto: bytes) -> bytes:
        """Return `upto`, or the first ID that is not acknowledged where that comes before."""
        limit = self._acknowledged()
        if not upto or limit >= parse_id(upto):
            return upto
        return b"%d-%d" % limit if limit > (0, 0) else b""

    def _trim(self, count: int) -> int:
        """Trim up to `count` of the oldest answers, as far as they are acknowledged."""
        limit = self._acknowledged()
        gone = self._trim_stream(self._store.keys.out, count, limit)
        for stream, retain in self._beside.items() if gone else ():
            excess = self._store.length(stream) - retain
            if excess > 0:
                self._trim_stream(stream, min(excess, 2 * gone), limit)
        return gone

    def _trim_stream(self, stream: str, count: int, limit: tuple[int, int]) -> int:
        """Trim up to `count` of the oldest entries, as far as they stand before `limit`."""
        store = self._store
        oldest = store.call("XRANGE", stream, "-", "+", "COUNT", count)
        going = [entry[0] for entry in oldest if parse_id(entry[0]) < limit]
        if not going:
            return 0
        # Trim up to the ID after the last acknowledged one, so only entries that were checked go.
        # No ID follows the last one that a stream can have; that answer stays.
        upto = next_id(going[-1]) or LAST_ID
        return int(store.call("XTRIM", stream, "MINID", "=", upto))

    def _acknowledged(self) -> tuple[int, int]:
        """Return the ID before which every answer is acknowledged."""
        group = self._find_group()
        if group is None:
            return 0, 0
        if not group[b"pending"]:
            time, count = parse_id(group[b"last-delivered-id"])
            return time, count + 1  # only compared with; it need not be a valid ID
        oldest = self._store.call("XPENDING", self._store.keys.out, self._group)[1]
        return parse_id(oldest) if oldest else (0, 0)

    def _find_group(self) -> dict[bytes, Any] | None:
        for flat in self._store.call("XINFO", "GROUPS", self._store.keys.out):
            group = dict(zip(flat[::2], flat[1::2], strict=True))
            if group[b"name"] == self._group.encode():
                return group
        return None

    def _tell(self, is_open: bool) -> None:
        self._was_open = is_open
        group = self._group
        self._telemetry.waits(None if is_open else f"waits for the consumer group {group!r}")
        if is_open:
            log.info("the consumer group acknowledges again; going on", group=self._group)
        else:
            log.warning(
                "waiting for the consumer group: its oldest answer that is not acknowledged is "
                "also the oldest that is kept",
                group=self._group,
                retain_out=self._retain,
            )
