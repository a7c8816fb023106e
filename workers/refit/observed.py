"""Refits of this process, timed."""

import time

from typing_extensions import override

from online_svm.refit.task import RefitResult, RefitTask, Refitter
from workers.refit.observer import RefitObserver


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
