"""A Ctrl-C that comes at a bad moment is deferred to a good one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether Ctrl-C was pressed while it was deferred."""

    came = False


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """Defer a Ctrl-C until the end of the block; a second one takes effect at once."""
    interrupt = Interrupt()
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        if interrupt.came and callable(before):
            before(number, frame)
        interrupt.came = True

    # Only the main thread gets signals. An ignored Ctrl-C stays ignored.
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
