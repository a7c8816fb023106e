"""Retention of the output streams of one feed, over a worker's life."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

from workers.feed.commit import Commit
from workers.feed.output_retention import Added, KeptBytes, Retention, StreamBytes, counted
from workers.feed.state import FeedState

_PARTS = 128
"""A stream is trimmed by entries each time it has grown by this part of its bound: else each commit
would take a command more."""


class Trimming(NamedTuple):
    """What a commit trims of `out`, `met`, `alarms` and `dlq`, and the counts that it stores.

    Attributes
    ----------
    entries : sequence of 4 int
        To keep, about; 0 keeps all.
    upto : sequence of 4 bytes
        IDs up to which entries go; empty where none do.
    counts : mapping of str to bytes
        Further fields of the state: how many bytes these streams hold.
    """

    entries: Sequence[int]
    upto: Sequence[bytes]
    counts: Mapping[str, bytes]


class RetainedOutputs:
    """Counts what commits write, and says what each of them trims.

    Parameters
    ----------
    retention : Retention
        What is kept.

    Attributes
    ----------
    retention : Retention
    kept : KeptBytes
        As far as commits that are confirmed counted it.
    """

    def __init__(self, retention: Retention) -> None:
        self.retention = retention
        self.kept = self._before = self._stored = self._sent = KeptBytes()
        self._untrimmed: list[float] = [inf] * len(retention.entries)  # entries since the last trim

    def begin(self, state: FeedState) -> None:
        """Go on from what a feed has stored."""
        self.kept = self._stored = state.kept

    def send(self, commit: Commit) -> Trimming:
        """Return what a commit trims, and the counts that it stores; one commit at a time."""
        self._before, self._sent = self.kept, self._after(commit)
        return Trimming(
            self._entries_due(commit),
            self._sent.trimmed_since(self.kept),
            self._sent.changes(self._stored),
        )

    def confirm(self, commit: Commit) -> None:
        """Note that the commit that was sent is done."""
        was_trimmed = self.kept is not self._before
        self.kept = self._after(commit) if was_trimmed else self._sent
        self._stored = self._sent

    def note_trimmed(self, place: int, left: StreamBytes) -> None:
        """Note that the stream at a place of `NAMES` was trimmed; the next commit stores it."""
        self.kept = self.kept.with_stream(place, left)

    def _entries_due(self, commit: Commit) -> list[int]:
        """Return how many entries to keep of each stream; 0 where it is not trimmed now."""
        added = (len(commit.ids), len(commit.met), len(commit.alarms), len(commit.dlq))
        held = (self.retention.is_held,) * 3 + (False,)
        due = [0] * len(added)
        for place, (bound, count) in enumerate(zip(self.retention.entries, added, strict=True)):
            self._untrimmed[place] += count
            if bound and count and not held[place] and self._untrimmed[place] >= bound // _PARTS:
                due[place], self._untrimmed[place] = bound, 0
        return due

    def _after(self, commit: Commit) -> KeptBytes:
        return self.kept.after(added_by(commit), self.retention.bytes, self.retention.is_held)


def added_by(commit: Commit) -> list[Added | None]:
    """Return what a commit adds to `out`, `met`, `alarms` and `dlq`, as the kept bytes count it."""
    met, alarms = (
        _added([len(payload) for _, payload in each], each[-1][0]) if each else None
        for each in (commit.met, commit.alarms)
    )
    dlq = None
    if commit.dlq:
        sizes = [len(each.code) + len(each.reason) + len(each.head) for each in commit.dlq]
        dlq = _added(sizes, commit.dlq[-1].id)
    out = _added([len(payload) for payload in commit.out], commit.ids[-1]) if commit.ids else None
    return [out, met, alarms, dlq]


def _added(sizes: Sequence[int], last: bytes) -> Added:
    return Added(counted(sum(sizes), len(sizes)), last)
