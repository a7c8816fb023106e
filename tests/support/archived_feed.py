"""A small feed that a session in this process answers, its archive, and a person's traces in it."""

import json
import struct
from contextlib import contextmanager

from session_steps import answer_batch, assembled, refitter

from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.offline.archive.archiver import Archiver
from workers.offline.archive.layout import feed_directory, locked
from workers.session.preflight import open_store
from workers.stop import Stop

DAY = 86_400_000
BEGIN = 1_763_800_000_000  # 22 November 2025
SMALL = {
    "classes": ("a", "b"), "committee": "single", "kernel": "linear", "refit_every": 20,
    "refit_lag": 0, "window": 60, "metrics_every": 10, "batch": 16,
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


def archive(store, root, stop=None, **more):
    directory = feed_directory(root, store.keys.feed)
    with locked(directory):
        archiver = Archiver(store, directory, **more)
        archiver.run(stop or Stop())
    return archiver.done


def rows_of(root, feed, kind):
    """Return all rows of a kind, read by pyarrow alone, in the order of their entries."""
    import pyarrow.parquet as pq

    found = []
    for path in (root / f"feed={feed}" / f"kind={kind}").glob("day=*/*.parquet"):
        with path.open("rb") as source:
            found += pq.read_table(source).to_pylist()
    return sorted(found, key=lambda row: tuple(map(int, row["entry"].split("-"))))


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
