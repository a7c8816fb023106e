"""Call something every few seconds in a thread: a line of progress that nothing else prompts."""

from collections.abc import Callable
from threading import Event, Thread


class Ticker:
    """Calls a function every so many seconds from `start` until `close`.

    Parameters
    ----------
    tick : callable
        Called in a thread of its own.
    every : float
        Seconds between two calls.
    """

    def __init__(self, tick: Callable[[], None], every: float) -> None:
        self._tick, self._every, self._ended = tick, every, Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="progress", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End; no call is under way afterwards."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            self._tick()
