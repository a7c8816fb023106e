"""Who is told what refits cost, and whether they fail. It needs nothing of the solver."""

from typing import Protocol

from typing_extensions import override

from workers.trouble import Trouble


class RefitObserver(Protocol):
    """Learns how long refits take. Its methods return at once."""

    def refitted(self, seconds: float, waited: float) -> None:
        """One refit took `seconds` of computing, and held the feed up for `waited` seconds."""

    def refits_fail(self, trouble: Trouble | None) -> None:
        """Refits fail, or work again."""


class NobodyLooks(RefitObserver):
    """Ignores it."""

    @override
    def refitted(self, seconds: float, waited: float) -> None:
        """Do nothing."""

    @override
    def refits_fail(self, trouble: Trouble | None) -> None:
        """Do nothing."""
