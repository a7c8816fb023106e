"""Reports of a worker about its work while it runs.

The worker calls these methods in its own thread, between two steps of its work. So they return at
once and raise nothing. They change no answer.
"""

from typing import TYPE_CHECKING, Literal

from workers.refit.schedule import RefitObserver

if TYPE_CHECKING:
    from workers.feed.state import Commit

Stage = Literal["starting", "standby", "replaying", "answering", "stopping"]
"""What a worker does; a standby waits for the lease."""


class Telemetry(RefitObserver):
    """Ignores all reports; listeners override what they need."""

    def enter(self, stage: Stage) -> None:
        """Note what the worker does from now on."""

    def fenced(self, cursor: bytes) -> None:
        """Note that no other worker commits from now on; up to the cursor all is answered."""

    def replaying(self, done: int, total: int) -> None:
        """Note that `done` of the `total` entries of a replay are answered again."""

    def replayed(self, seconds: float) -> None:
        """Note the seconds of a recovery, its replay included."""

    def answered(self, seconds: float) -> None:
        """Note the seconds that answering one batch took."""

    def committed(self, commit: "Commit", seconds: float) -> None:
        """Note that a commit was confirmed, so many seconds after it was sent."""

    def kept_snapshot(self, size: int) -> None:
        """Note that a snapshot of so many bytes was committed."""

    def waits(self, reason: str | None) -> None:
        """Note why the feed waits; None where it goes on."""

    def fails(self, reason: str) -> None:
        """Note that a process of many feeds parked this feed; it is tried again."""
