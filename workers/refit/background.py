"""When refits in the background begin: what the engine says, and a refitter follows."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class Background(Protocol):
    """Refits that are computed elsewhere while the feed is answered.

    When they begin changes no answer, since each takes effect at an example number of its own.

    Attributes
    ----------
    is_patient : bool
        A refit that is submitted begins when `begin` is called, or its result is awaited; else at
        once.
    """

    is_patient: bool

    @property
    def is_busy(self) -> bool:
        """Whether one is being computed now, at normal priority."""

    def begin(self) -> None:
        """Begin what was submitted."""


class NoBackground:
    """Refits that are computed where their results are awaited."""

    is_patient = False
    is_busy = False

    def begin(self) -> None:
        """Do nothing."""
