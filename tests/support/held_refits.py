"""Refits in a pool that are slow, or that do not end before a test lets them."""

import threading
import time
from contextlib import contextmanager

from workers.refit.messages import TASK
from workers.refit.pool_process import PoolProcess


@contextmanager
def _before_each(monkeypatch, act):
    """Do something before each refit of a pool within the block."""
    exchange = PoolProcess._exchange

    def exchanged(process, line, request):
        if request[0] == TASK:
            act()
        return exchange(process, line, request)

    with monkeypatch.context() as patched:
        patched.setattr(PoolProcess, "_exchange", exchanged)
        yield


def slow_refits(monkeypatch, seconds):
    """Let each refit of a pool take so many seconds longer within the block."""
    return _before_each(monkeypatch, lambda: time.sleep(seconds))


@contextmanager
def held_refits(monkeypatch):
    """Let no refit of a pool begin within the block; yield an event that is set when one would."""
    held, released = threading.Event(), threading.Event()

    def hold():
        held.set()
        assert released.wait(60.0)

    with _before_each(monkeypatch, hold):
        try:
            yield held
        finally:
            released.set()
