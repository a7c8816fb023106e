"""Retention of the output streams of one feed, over a worker's life."""

from math import inf

from workers.broker.commit_arguments import Trimming, added_by
from workers.feed.commit import Commit
from workers.feed.kept_bytes import KeptBytes, StreamBytes
from workers.feed.retention import Retention
from workers.feed.state import FeedState

_PARTS = 128
"""A stream is trimmed by entries each time it has grown by this part of its bound: else each commit
would take a command more."""


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
