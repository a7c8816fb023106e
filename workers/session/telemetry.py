"""Telemetry of a session while it runs.

The worker calls these methods in its own thread, so they must return at once and raise nothing.
"""

from typing import TYPE_CHECKING, Literal

from workers.refit.schedule import RefitObserver

if TYPE_CHECKING:
    from workers.feed.state import Commit

Stage = Literal["starting", "standby", "replaying", "answering", "stopping"]
"""What a worker does; a standby waits for the lease."""


class Telemetry(RefitObserver):
    """Ignores all reports; subclasses override the methods they need."""

    def enter(self, stage: Stage) -> None:
        """Report that the worker enters a stage."""

    def fenced(self, cursor: bytes) -> None:
        """Report the take-over of a feed that is answered up to the cursor."""

    def replaying(self, done: int, total: int) -> None:
        """Report that `done` of the `total` entries of a replay are answered."""

    def replayed(self, seconds: float) -> None:
        """Report the duration of a recovery, with its replay."""

    def answered(self, seconds: float) -> None:
        """Report the time to answer one batch."""

    def committed(self, commit: "Commit", seconds: float) -> None:
        """Report a confirmed commit, and the seconds since it was sent."""

    def kept_snapshot(self, size: int) -> None:
        """Report a committed snapshot and its bytes."""

    def waits(self, reason: str | None) -> None:
        """Report why the feed waits; None when it continues."""

    def fails(self, reason: str) -> None:
        """Report that the feed was parked after an error; it will be tried again."""
