"""Back-pressure from consumers: answers are not trimmed before a consumer group acknowledged them.

With the policy `trim`, answers beyond what is kept are trimmed, whether they were read or not. With
`block`, they are trimmed only after the group acknowledged them; so are their input, reports and
alarms. While as many answers are kept, or as many bytes, and the oldest is not acknowledged, the
worker reads no input. The input waits in `in`; nothing is lost.
"""

from typing import Any, Protocol

from workers.broker.store import Store
from workers.feed.position import LAST_ID, next_id, parse_id
from workers.log import Logger
from workers.session.telemetry import Telemetry
from workers.stop import Stop

SECONDS = 0.5
"""Seconds between two checks of a group that is behind."""

_OUT = 0
_BESIDE = (1, 2)
"""Places of reports and alarms among the outputs: their entries belong to answers."""

log = Logger("online_svm.worker")


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

    `out` holds at most as many answers as the store's bounds say and one batch, or as many bytes
    and two batches. The store's retention must say `is_held`, so that a commit trims nothing of
    answers, reports and alarms.

    Parameters
    ----------
    store : Store
    group : str
        Consumer group of `out`; while there is none, nothing counts as acknowledged.
    stop : Stop
    seconds : float
        How long `is_open` waits before it returns False.
    telemetry : Telemetry, optional
        Is told while the feed waits.
    """

    def __init__(
        self,
        store: Store,
        group: str,
        stop: Stop,
        seconds: float = SECONDS,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._store, self._group, self._stop = store, group, stop
        self._seconds, self._telemetry = seconds, telemetry or Telemetry()
        self._was_open = True

    def is_open(self, batch: int) -> bool:
        """Trim what is acknowledged beyond the bounds; return whether there is room again."""
        room = self._has_room_for_bytes() and self._has_room_for_entries(batch)
        if room != self._was_open:
            self._tell(room)
        if not room:
            self._stop.wait(self._seconds)
        return room

    def trimmable(self, upto: bytes) -> bytes:
        """Return `upto`, or the first ID that is not acknowledged where that comes before."""
        if not upto or self._store.call("TYPE", self._store.keys.out) == b"none":
            return b""  # nobody has read any answer
        limit = self._acknowledged()
        if limit >= parse_id(upto):
            return upto
        return b"%d-%d" % limit if limit > (0, 0) else b""

    def _has_room_for_bytes(self) -> bool:
        retained = self._store.retained
        bound = retained.retention.bytes.out
        if not bound or retained.kept.streams[_OUT].kept < bound:
            return True
        limit = self._acknowledged()
        if gone := self._trim_bytes(_OUT, limit):
            self._trim_beside(gone, limit)
        return retained.kept.streams[_OUT].kept < bound

    def _has_room_for_entries(self, batch: int) -> bool:
        retain = self._store.retained.retention.entries[_OUT]
        if not retain:
            return True
        kept = self._store.length(self._store.keys.out)
        if kept < retain:
            return True
        limit = self._acknowledged()
        gone = self._trim_entries(self._store.keys.out, kept - retain + batch, limit)
        if gone:
            self._trim_beside(gone, limit)
        return kept - gone < retain

    def _trim_beside(self, gone: int, limit: tuple[int, int]) -> None:
        """Trim reports and alarms beyond their bounds, after so many answers went."""
        for place in _BESIDE:
            stream = self._store.keys.outputs[place]
            retain = self._store.retained.retention.entries[place]
            excess = self._store.length(stream) - retain if retain else 0
            if excess > 0:
                self._trim_entries(stream, min(excess, 2 * gone), limit)
            self._trim_bytes(place, limit)

    def _trim_bytes(self, place: int, limit: tuple[int, int]) -> int:
        """Trim a stream to below its bound of bytes, as far as it stands before `limit`."""
        retained = self._store.retained
        kept, bound = retained.kept.streams[place], retained.retention.bytes[place]
        left = kept.room_from(bound, lambda entry_id: parse_id(entry_id) < limit)
        if left.marks == kept.marks:
            return 0
        retained.note_trimmed(place, left)
        return self._trim_upto(self._store.keys.outputs[place], left.marks[0].cursor)

    def _trim_entries(self, stream: str, count: int, limit: tuple[int, int]) -> int:
        """Trim up to `count` of the oldest entries, as far as they stand before `limit`."""
        oldest = self._store.call("XRANGE", stream, "-", "+", "COUNT", count)
        going = [entry[0] for entry in oldest if parse_id(entry[0]) < limit]
        return self._trim_upto(stream, going[-1]) if going else 0

    def _trim_upto(self, stream: str, last: bytes) -> int:
        """Trim the entries up to one that may go; return their number."""
        # Up to the ID after it, so only entries that were checked go. No ID follows the last one
        # that a stream can have; that entry stays.
        upto = next_id(last) or LAST_ID
        return int(self._store.call("XTRIM", stream, "MINID", "=", upto))

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
                retain_out=self._store.retained.retention.entries[_OUT],
                retain_bytes=self._store.retained.retention.bytes.out,
            )
