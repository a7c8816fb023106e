"""Feeds of tests/data that a release left half answered: their state, and the bytes of the rest.

Written once for each number of the semantics, in the version that is released with it:

    PYTHONPATH=.:tests/support python tests/support/kept_feeds.py
"""

import base64
import gzip
import json
from hashlib import sha256
from pathlib import Path

from oracle_feeds import feeds
from session_steps import advance, refitter

from online_svm.config.semantics import SEMANTICS
from workers.broker import embedded
from workers.broker.store import Store
from workers.config.settings import load
from workers.session import preflight
from workers.session.assembly import assemble
from workers.session.opening import open_store
from workers.stop import Stop

FOLDER = Path(__file__).parents[1] / "data"
NAMES = ("discovered", "psvm", "late", "dedupe", "reset", "names", "compact")
"""Feeds of the oracle with what a snapshot can hold: a committee, classes that are still met,
annotators' probabilities, labels that are awaited, ids that were seen, codings of named features,
and monitors before an alarm."""

STREAMS = ("in", "out", "met", "alarms", "dlq")


def path_of(semantics):
    return FOLDER / f"semantics-{semantics}.feeds.json.gz"


def read(semantics):
    """Return the kept feeds of a number by name."""
    return json.loads(gzip.decompress(path_of(semantics).read_bytes()))


def add(store, entries, first):
    """Append entries to the input under IDs that count from `first`."""
    for i, entry in enumerate(entries, first):
        store.call("XADD", store.keys.input, f"{1000 + i}-0", *sum(entry.items(), ()))


def answer(url, name, settings=None, accept_environment=False):
    """Let a worker answer all of a feed's input, and leave a snapshot."""
    stop = Stop()
    given = load(settings or {})
    with open_store(name, given, url, stop) as store:
        found, used = preflight.run(store, given, accept_environment)
        with refitter(used, stop) as refits:
            session = assemble(
                store, used, refits, stop, "kept",
                accept_environment=accept_environment, begins=found.state is None,
            )  # fmt: skip
            while session.position.seq < store.length(store.keys.input):
                advance(session)
            session.snapshot()


def digests(store):
    """Return a digest of each output stream, IDs and all."""
    found = {}
    for name in STREAMS[1:]:
        entries = store.call("XRANGE", f"osvm:{{{store.keys.feed}}}:{name}", "-", "+")
        found[name] = sha256(repr(entries).encode()).hexdigest()
    return found


def dumped(store):
    """Return every key of a feed that outlives its worker: streams, hashes and values."""
    begins = f"osvm:{{{store.keys.feed}}}:"
    found = {}
    for key in sorted(store.call("KEYS", f"{begins}*")):
        name = key.decode().removeprefix(begins)
        kind = store.call("TYPE", key)
        if name in STREAMS:
            entries = store.call("XRANGE", key, "-", "+")
            found[name] = [[at.decode(), *map(packed, fields)] for at, fields in entries]
        elif kind in (b"hash", "hash"):
            pairs = store.call("HGETALL", key)
            pairs = sum(pairs.items(), ()) if isinstance(pairs, dict) else pairs
            found[name] = {"hash": [packed(part) for part in pairs]}
        elif kind in (b"string", "string"):
            found[name] = packed(store.call("GET", key))
    return found


def restored(store, kept):
    """Put the keys of a kept feed into Redis, in place of those of that name."""
    for key in store.call("KEYS", f"osvm:{{{store.keys.feed}}}:*"):
        store.call("DEL", key)
    for name, value in kept.items():
        key = f"osvm:{{{store.keys.feed}}}:{name}"
        if isinstance(value, list):
            for at, *fields in value:
                store.call("XADD", key, at, *map(unpacked, fields))
        elif isinstance(value, dict) and "hash" in value:
            store.call("HSET", key, *map(unpacked, value["hash"]))
        else:
            store.call("SET", key, unpacked(value))
    store.call("XGROUP", "CREATE", store.keys.input, "osvm", cursor(store))
    store.register()


def cursor(store):
    return store.call("HGET", store.keys.state, "cursor")


def packed(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def unpacked(part):
    return base64.b64decode(part["base64"]) if isinstance(part, dict) else part.encode()


def made(url, name):
    """Answer half of a feed, keep it, answer the rest; return both."""
    feed = feeds()[name]
    half = len(feed.entries) // 2
    with Store(url, name) as store:
        add(store, feed.entries[:half], 0)
        answer(url, name, feed.settings)
        kept = dumped(store)
        add(store, feed.entries[half:], half)
        answer(url, name)
        return {"half": half, "kept": kept, "then": digests(store)}


def main():
    """Write the file of the present number."""
    with embedded.temporary() as server:
        found = {name: made(server.url, name) for name in NAMES}
    text = json.dumps(found, sort_keys=True, separators=(",", ":"))
    path_of(SEMANTICS).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
