"""What a process of many feeds asks of their input streams, and what comes."""

import time

from workers.broker.large_replies import BatchSize
from workers.broker.shared_reader import StreamRead
from workers.session.flow import InputReader
from workers.stop import Stop


def wanted(store, cursor=b"0-0"):
    """Return that a feed wants the entries after a cursor."""
    reader = InputReader(store, BatchSize(64, 1 << 20))
    return StreamRead(store.keys.feed, store.keys.input, cursor, reader)


def next_of(reader, seconds=60.0):
    """Return what comes next, and for whom nothing came."""
    stop, deadline = Stop(), time.monotonic() + seconds
    while time.monotonic() < deadline:
        ready = stop.wait_for(reader.descriptors, min(0.1, reader.seconds_left))
        found = reader.arrivals(ready)
        if found != ([], []):
            return found
    raise AssertionError("nothing came")


def add(store, *numbers):
    for number in numbers:
        store.call("XADD", store.keys.input, f"{number}-0", "x", "[1]")
