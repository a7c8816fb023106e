"""Feeds for tests of a process of many: their input, what each gives alone, and such a process."""

import itertools
import threading
from contextlib import contextmanager, nullcontext

import world
from processes import LIMIT
from session_steps import InlineRefits, assembled, refitter, shared_pool

from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.selection import Selection
from workers.runner import service
from workers.stop import Stop

SETTINGS = world.SETTINGS | {"replay_budget": 50, "lease": 5.0}
"""No lease lapses while a busy machine keeps a process from renewing it for three seconds."""

_numbers = itertools.count(1)


def settings(**changed):
    return WorkerSettings(**(SETTINGS | changed))


def contents(store):
    """Return the digest, and every entry of the output streams, by stream."""
    keys = store.keys
    streams = {
        key.rpartition(":")[2]: [entry for page in store.pages(key, b"0-0") for entry in page]
        for key in keys.outputs
    }
    return store.state().position, streams


def has_answered(store, count):
    return world.seq_of(store) >= count


def wait_for(count, *stores, seconds=60.0):
    wanted = f"{count} entries are answered"
    world.wait_until(lambda: all(has_answered(store, count) for store in stores), seconds, wanted)


def fill(entries, *stores, first=1):
    for store in stores:
        world.push(store, entries, first)
        store.register()


def newest_event(store):
    newest = store.call("XREVRANGE", store.keys.events, "+", "-", "COUNT", 1)
    return newest[0][1][1].decode() if newest else ""


class Running:
    """A process of many feeds, in a thread; with `pool=None` it has refit processes of its own."""

    def __init__(self, patterns, url, **options):
        self.stop = Stop(grace=options.pop("grace", 10.0))
        given = options.pop("settings", None) or settings()
        selection = options.pop("selection", None) or Selection(patterns)
        self.error = None
        options.setdefault("poll_seconds", 0.1)
        options.setdefault("pool", shared_pool())

        def work():
            try:
                service.Worker(selection, given, url, self.stop, **options).run()
            except BaseException as error:
                self.error = error

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def end(self):
        self.stop.request()
        self._thread.join(LIMIT)
        assert not self._thread.is_alive(), "it did not stop"
        if self.error is not None:
            raise self.error


@contextmanager
def running(patterns, url, **options):
    process = Running(patterns, url, **options)
    try:
        yield process
    finally:
        process.end()


def answer_alone(store, count, given, *, inline=False):
    """Let a session of its own answer a feed, as a worker with one feed does.

    With `inline` its refits are computed in this process, against the settings.
    """
    stop = Stop()
    refits = nullcontext(InlineRefits(given.predictor)) if inline else refitter(given, stop)
    with refits as used:
        session = assembled(store, given, used, stop, writer="alone")
        world.drain(session, count)
        session.snapshot()


def alone(url, entries, **changes):
    """Return the contents of a feed of these entries that a session of its own answers."""
    with Store(url, f"of-its-own-{next(_numbers)}", block_ms=20) as store:
        world.push(store, entries)
        answer_alone(store, len(entries), settings(**changes), inline=True)
        return contents(store)
