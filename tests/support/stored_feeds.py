"""The stored feeds of tests/data: reading them, and putting them into a Redis as they were.

While none is stored of the newest semantics, because its bytes still change, feeds that this
version makes stand for them.
"""

import atexit
import base64
import gzip
import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from online_svm import semantics

DATA = Path(__file__).parents[1] / "data"
SCRIPT = Path(__file__).parents[2] / "scripts" / "make_stored_feeds.py"
NEWEST = f"semantics-{semantics.SEMANTICS}"
FIRST = ("default", "lagging", "crossfit", "linear", "psvm", "classes", "dedupe", "combination")
"""Feeds of the first semantics."""
KINDS = (*FIRST, "committee", "several")


def given_up():
    """Return (directory, name) of every stored feed whose semantics were given up."""
    return _stored(semantics.GIVEN_UP)


def stored_feeds():
    """Return (directory, name) of every stored feed that this version continues."""
    numbers = set(semantics.DEFAULTS) - set(semantics.GIVEN_UP)
    stored = _stored(numbers)
    return stored if (DATA / NEWEST).exists() else [*stored, *((NEWEST, name) for name in KINDS)]


def _stored(numbers):
    found = (path for n in sorted(numbers) for path in (DATA / f"semantics-{n}").glob("*.json.gz"))
    return sorted((path.parent.name, path.name.removesuffix(".json.gz")) for path in found)


def read(directory, name):
    """Return the content of one file."""
    stored = DATA / directory
    if directory == NEWEST and not stored.exists():
        stored = _made()
    return json.loads(gzip.decompress((stored / f"{name}.json.gz").read_bytes()))


@cache
def _made():
    """Return a directory with feeds of this version."""
    made = tempfile.TemporaryDirectory()
    atexit.register(made.cleanup)
    target = Path(made.name) / NEWEST
    subprocess.run([sys.executable, str(SCRIPT), str(target)], check=True, timeout=300)
    return target


def unpacked(parts):
    """Return the bytes of packed parts."""
    return [
        base64.b64decode(part["base64"]) if isinstance(part, dict) else part.encode()
        for part in parts
    ]


def load(store, content):
    """Make the feed of a store the stored one; it must have its name, which snapshots hold."""
    keys, stored = store.keys, content["stored"]
    gone = store.call("KEYS", f"osvm:{{{keys.feed}}}:*")
    if gone:
        store.call("DEL", *gone)
    push(store, content["entries"][: content["pushed"]])
    if content["pushed"]:
        # The bookmark and the trimming, as the commits left them.
        store.call("XGROUP", "CREATE", keys.input, "osvm", stored["st"]["cursor"])
        store.call("XTRIM", keys.input, "MAXLEN", stored["kept"])
    for key, stream in ((keys.out, "out"), (keys.met, "met"), (keys.dlq, "dlq")):
        for entry in stored[stream]:
            store.call("XADD", key, *unpacked(entry))
    store.call(
        "HSET", keys.state, *(part for pair in stored["st"].items() for part in unpacked(pair))
    )
    for name, data in stored["snapshots"].items():
        store.call("SET", f"osvm:{{{keys.feed}}}:{name}", base64.b64decode(data))
    store.register()


def push(store, entries):
    """Add entries under their own IDs."""
    for entry in entries:
        store.call("XADD", store.keys.input, *unpacked(entry))


def push_later(store, content):
    """Add the entries that came after the feed was stored."""
    push(store, content["entries"][content["pushed"] :])


def all_fields(content):
    """Return the fields of every entry, from the start of the feed."""
    return [unpacked(entry[1:]) for entry in content["entries"]]


def expected(content, stream):
    """Return what a stream holds in the end: the stored entries, then the later ones."""
    return [unpacked(entry) for entry in (*content["stored"][stream], *content["later"][stream])]


def found(store, stream):
    """Return what a stream of the feed holds, as `expected` does."""
    key = getattr(store.keys, stream)
    return [[entry_id, *fields] for entry_id, fields in store.call("XRANGE", key, "-", "+")]
