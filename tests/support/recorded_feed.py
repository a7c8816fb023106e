"""A small feed that a session in this process answers, its file, and a person's traces in it."""

import json
import sqlite3
import struct
from contextlib import closing, contextmanager

from session_steps import answer_batch, assembled, refitter

from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.recording.reader import Recording
from workers.session.preflight import open_store
from workers.stop import Stop

DAY = 86_400_000
BEGIN = 1_763_800_000_000  # 22 November 2025
SMALL = {
    "classes": ("a", "b"), "committee": "single", "kernel": "linear", "refit_every": 20,
    "window": 60, "metrics_every": 10, "batch": 16,
}  # fmt: skip
HOSTILE = "../../etc/passwd\x1b[2J\u2028\"}', DROP TABLE"


def entry(i, step=DAY // 24):
    """Return the ID and the fields of the i-th entry: one an hour, one in ten is rejected."""
    x = json.dumps([i % 7 + i / 1000, i % 5] if i % 10 != 5 else [1])
    return f"{BEGIN + i * step}-{i % 3}", {"x": x, "y": "ab"[i % 3 == 0], "id": f"id-{i}"}


def push(store, begin, end, **more):
    for i in range(begin, end):
        at, fields = entry(i, **more)
        store.call(
            "XADD", store.keys.input, at, *(part for pair in fields.items() for part in pair)
        )


@contextmanager
def answering(url, feed, **changes):
    """Open a session of a feed, and a function that lets it answer all that waits."""
    settings, stop = WorkerSettings(**SMALL | changes), Stop()
    with open_store(feed, settings, url, stop) as store, refitter(settings) as refits:
        session = assembled(store, settings, refits, stop)

        def answer(most=1000):
            for _ in range(most):
                before = session.position.seq
                answer_batch(session)
                if session.position.seq == before:
                    return

        yield store, answer, session


def go_on(store, begin, end, **changes):
    """Push and answer more entries, as the next worker does."""
    with answering(store.url, store.keys.feed, **changes) as (_, answer, _session):
        push(store, begin, end)
        answer()


def stream(store, name):
    found = store.call("XRANGE", getattr(store.keys, name), "-", "+")
    return [(bytes(at), list(fields)) for at, fields in found]


def rows_of(path, table):
    """Return all rows of a table, read by SQLite alone, in order; rows are mappings."""
    with closing(sqlite3.connect(path)) as file:
        file.row_factory = sqlite3.Row
        return file.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


STREAMS = {"input": "input", "answers": "out", "reports": "met", "alarms": "alarms"}


def assert_whole(store, path):
    """Compare a recording with the streams of its feed, byte for byte."""
    with Recording.open(path) as recording:
        for name in STREAMS.values():
            key = getattr(recording.keys, name)
            assert [(at, list(f)) for at, f in recording.each(key, b"0-0")] == stream(store, name)


PERSON = "person-7"
VALUE = 3.141592653
TRACES = (PERSON.encode(), b"3.141592653", struct.pack("<d", VALUE))
AT = entry(50)[0].encode()
KEPT = {"keep_input": True, "replay_budget": 40}
CHANGES = KEPT | {"dedupe_window": 60}


def push_with_person(store, begin=0, end=100):
    """Push entries; the fiftieth is the person's."""
    for i in range(begin, end):
        at, fields = entry(i)
        if i == 50:
            fields = {"x": f"[{VALUE}, 2]", "y": "b", "id": PERSON}
        store.call(
            "XADD", store.keys.input, at, *(part for pair in fields.items() for part in pair)
        )


def stored(store):
    """Return the bytes of every key of the server, as Redis dumps them."""
    keys = store.call("KEYS", "*")
    return b"\n".join([*keys, *(store.call("DUMP", key) for key in keys)])


def traces_in(data):
    return [trace for trace in TRACES if trace in data]


class Cut(BaseException):
    """The process ends here."""


class CutStore(Store):
    """A store that ends at its n-th call: Redis has done those before it, and not this one.

    To Redis that is also an end right after the call before, whose reply was lost.
    """

    left = 10**9

    def call(self, *command):
        return self._counted(super().call, *command)

    def run(self, script, keys, args):
        return self._counted(super().run, script, keys, args)

    def append(self, stream, entries):
        return self._counted(super().append, stream, entries)

    def _counted(self, do, *arguments):
        self.left -= 1
        if self.left == 0:
            raise Cut
        return do(*arguments)
