"""What refits cost, and whether they fail: told as they happen."""

import time
from typing import Protocol

from typing_extensions import override

from online_svm.refit.task import RefitResult, RefitTask, Refitter
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


class ObservedRefitter(Refitter):
    """A refitter of this process, whose refits are timed.

    Parameters
    ----------
    inner : Refitter
        Computes a refit when its result is asked for.
    observer : RefitObserver
    """

    def __init__(self, inner: Refitter, observer: RefitObserver) -> None:
        self._inner, self._observer = inner, observer

    @override
    def submit(self, task: RefitTask) -> None:
        self._inner.submit(task)

    @override
    def result(self) -> RefitResult:
        began = time.perf_counter()
        result = self._inner.result()
        seconds = time.perf_counter() - began
        self._observer.refitted(seconds, seconds)
        return result

    @override
    def state(self) -> bytes:
        return self._inner.state()

    @override
    def withdraw(self) -> None:
        self._inner.withdraw()

    @override
    def reset(self, state: bytes | None) -> None:
        self._inner.reset(state)
