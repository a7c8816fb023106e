"""Refits in a pool that are slow, or that do not end before a test lets them."""

import threading
import time
from contextlib import contextmanager

from workers.refit.messages import TASK
from workers.refit.pool_process import PoolProcess


@contextmanager
def slow_refits(monkeypatch, seconds):
    """Let each refit of a pool take so many seconds longer within the block."""
    exchange = PoolProcess._exchange

    def slow(process, line, request):
        if request[0] == TASK:
            time.sleep(seconds)
        return exchange(process, line, request)

    with monkeypatch.context() as patched:
        patched.setattr(PoolProcess, "_exchange", slow)
        yield


@contextmanager
def held_refits(monkeypatch):
    """Let no refit of a pool begin within the block; yield an event that is set when one would."""
    exchange, held, released = PoolProcess._exchange, threading.Event(), threading.Event()

    def hold(process, line, request):
        if request[0] == TASK:
            held.set()
            assert released.wait(60.0)
        return exchange(process, line, request)

    with monkeypatch.context() as patched:
        patched.setattr(PoolProcess, "_exchange", hold)
        try:
            yield held
        finally:
            released.set()
