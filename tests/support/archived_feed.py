"""A small feed that a session in this process answers, and what an archive of it must hold."""

import json
from contextlib import contextmanager

from session_steps import answer_batch, refitter

from workers.config.settings import WorkerSettings
from workers.history.archive.archiver import Archiver
from workers.history.archive.identity import locked
from workers.history.archive.layout import feed_directory
from workers.session import assembly
from workers.session.opening import open_store
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
    with (
        open_store(feed, settings, url, stop) as store,
        refitter(settings) as refits,
    ):
        session = assembly.assemble(store, settings, refits, stop, "tester")

        def answer(most=1000):
            for _ in range(most):
                before = session.position.seq
                answer_batch(session)
                if session.position.seq == before:
                    return

        yield store, answer, session


def stream(store, name):
    """Return all entries of a stream, read without pages."""
    found = store.call("XRANGE", getattr(store.keys, name), "-", "+")
    return [(bytes(at), list(fields)) for at, fields in found]


def archive(store, root, stop=None, **more):
    """Archive what is there; return what was done."""
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
