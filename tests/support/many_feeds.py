"""Feeds for tests of a process of many: their input, what each gives alone, and such a process."""

import itertools
import threading
from contextlib import contextmanager, nullcontext

import world
from session_steps import advance, refitter, shared_pool

from online_svm.refit.inline import InlineRefitter
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.selection import Selection
from workers.runner import service
from workers.session.assembly import assemble
from workers.stop import Stop

SETTINGS = world.SETTINGS | {"replay_budget": 50, "lease": 1.0}

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
    state = store.state()
    return state is not None and state.position.seq >= count


def wait_for(count, *stores, seconds=60.0):
    """Wait until each of these feeds has so many answers."""
    wanted = f"{count} entries are answered"
    world.wait_until(lambda: all(has_answered(store, count) for store in stores), seconds, wanted)


def fill(entries, *stores, first=1):
    """Push the same entries to feeds, and list these."""
    for store in stores:
        world.push(store, entries, first)
        store.register()


def newest_event(store):
    """Return what the newest event of a feed says; "" where there is none."""
    newest = store.call("XREVRANGE", store.keys.events, "+", "-", "COUNT", 1)
    return newest[0][1][1].decode() if newest else ""


class Running:
    """A process of many feeds, in a thread; with `pool=None` it has refit processes of its own."""

    def __init__(self, patterns, url, **options):
        self.stop = Stop(grace=options.pop("grace", 10.0))
        given = options.pop("settings", None) or settings()
        selection = options.pop("selection", None) or Selection(patterns)
        self.error = None
        options.setdefault("look", 0.1)
        options.setdefault("pool", shared_pool())

        def work():
            try:
                service.run(selection, given, url, self.stop, **options)
            except BaseException as error:
                self.error = error

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def end(self):
        self.stop.request()
        self._thread.join(30.0)
        assert not self._thread.is_alive(), "it did not stop"
        if self.error is not None:
            raise self.error


@contextmanager
def running(patterns, url, **options):
    """Run a process of many feeds within the block."""
    process = Running(patterns, url, **options)
    try:
        yield process
    finally:
        process.end()


def answer_alone(store, count, given, *, inline=False):
    """Let a session of its own answer a feed, as a worker with one feed does.

    With `inline` its refits are computed in this process, whatever the settings say.
    """
    stop = Stop()
    refits = nullcontext(InlineRefitter(given.predictor)) if inline else refitter(given, stop)
    with refits as used:
        session = assemble(store, given, used, stop, "alone")
        while session.position.seq < count:
            advance(session)
            session.finish_commit()
        session.snapshot()


def alone(url, entries, **changes):
    """Return the contents of a feed of these entries that a session of its own answers.

    Its refits are computed in this process.
    """
    with Store(url, f"of-its-own-{next(_numbers)}", block_ms=20) as store:
        world.push(store, entries)
        answer_alone(store, len(entries), settings(**changes), inline=True)
        return contents(store)
