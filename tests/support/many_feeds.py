"""Feeds for tests of a process of many: their input, what each gives alone, and such a process."""

import threading
from contextlib import contextmanager, nullcontext

import world
from session_steps import advance, refitter, shared_pool

from online_svm.refit.inline import InlineRefitter
from workers.config.settings import WorkerSettings
from workers.feed.selection import Selection
from workers.runner import service
from workers.session.assembly import assemble
from workers.stop import Stop

SETTINGS = world.SETTINGS | {"replay_budget": 50, "lease": 1.0}


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
