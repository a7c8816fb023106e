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
from session_steps import assembled, refitter
from world import drain

from online_svm.config.semantics import SEMANTICS
from workers.broker import embedded
from workers.broker.store import Store
from workers.config.loading import load
from workers.config.settings import WorkerSettings
from workers.session import preflight
from workers.session.preflight import open_store
from workers.stop import Stop

FOLDER = Path(__file__).parents[1] / "data"
NAMES = {
    4: ("discovered", "psvm", "late", "dedupe", "reset", "names", "compact", "costs"),
    5: ("arrival", "costs"),
    6: ("discovered", "late", "names", "compact"),
}
"""By the number, feeds of the oracle with what a snapshot can hold: a committee, classes that are
still met, annotators' probabilities, labels that are awaited, ids that were seen, codings of named
features, and monitors before an alarm. Of a later number those that it changed."""

STREAMS = ("in", "out", "met", "alarms", "dlq")


def path_of(semantics):
    return FOLDER / f"semantics-{semantics}.feeds.json.gz"


def read(semantics):
    return json.loads(gzip.decompress(path_of(semantics).read_bytes()))


def add(store, entries, first):
    for i, entry in enumerate(entries, first):
        store.call("XADD", store.keys.input, f"{1000 + i}-0", *sum(entry.items(), ()))


def answer(url, name, given=None):
    """Let a worker answer all of a feed's input, and leave a snapshot; return its settings."""
    stop, given = Stop(), given or WorkerSettings()
    with open_store(name, given, url, stop) as store:
        found, used = preflight.run(store, given)
        with refitter(used, stop) as refits:
            session = assembled(store, used, refits, stop, found.state is None, writer="kept")
            drain(session, store.length(store.keys.input))
            session.snapshot()
        return used


def digests(store):
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
    """Put the keys of a kept feed into Redis, in place of a feed of that name."""
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
        answer(url, name, load(feed.settings))
        kept = dumped(store)
        add(store, feed.entries[half:], half)
        answer(url, name)
        return {"half": half, "kept": kept, "then": digests(store)}


def main():
    with embedded.temporary() as server:
        found = {name: made(server.url, name) for name in NAMES[SEMANTICS]}
    text = json.dumps(found, sort_keys=True, separators=(",", ":"))
    path_of(SEMANTICS).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
