"""The stored feed of tests/data: reading it, and putting it into a Redis as it was."""

import base64
import gzip
import json
from pathlib import Path

NAME = "dedupe"
"""Of the feed, which its snapshots hold."""

_FILE = Path(__file__).parents[1] / "data" / "semantics-2.json.gz"


def read():
    """Return the content of the file."""
    return json.loads(gzip.decompress(_FILE.read_bytes()))


def load(store, content):
    """Make the feed of a store the stored one; it must have its name."""
    keys, stored = store.keys, content["stored"]
    gone = store.call("KEYS", f"osvm:{{{keys.feed}}}:*")
    if gone:
        store.call("DEL", *gone)
    streams = {keys.input: content["entries"]}
    streams |= {keys.out: stored["out"], keys.met: stored["met"], keys.dlq: stored["dlq"]}
    for key, entries in streams.items():
        for entry in entries:
            store.call("XADD", key, *_unpacked(entry))
    store.call("XGROUP", "CREATE", keys.input, "osvm", stored["st"]["cursor"])
    store.call(
        "HSET", keys.state, *(part for pair in stored["st"].items() for part in _unpacked(pair))
    )
    for name, data in stored["snapshots"].items():
        store.call("SET", f"osvm:{{{keys.feed}}}:{name}", base64.b64decode(data))
    store.register()


def _unpacked(parts):
    """Return the bytes of packed parts."""
    return [
        base64.b64decode(part["base64"]) if isinstance(part, dict) else part.encode()
        for part in parts
    ]
