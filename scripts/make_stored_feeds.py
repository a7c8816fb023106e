"""Write small feeds as this version of the software stores them, for tests of later versions.

Run it with the software whose feeds are wanted, once, when an answer changes its bytes and the
number of the semantics is raised: `python scripts/make_stored_feeds.py tests/data/semantics-N`.
What it writes is described in tests/data/README.md; files that are there are never overwritten.

Each feed is answered up to `STORED` entries and recorded, whole. Then it is answered to its end,
and the entries after `STORED` are recorded with the answers to them.
"""

import argparse
import base64
import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import online_svm
from workers.broker import embedded
from workers.broker.store import Store
from workers.combine import service as combination
from workers.config.settings import WorkerSettings
from workers.engine.assembly import assemble, refitter
from workers.engine.service import open_store
from workers.stop import Stop

COUNT, STORED = 300, 190
"""Input entries of each feed, and how many of them were answered when it was stored."""

WRITER = "maker"

SHORT: dict[str, Any] = {"window": 80, "refit_every": 40, "metrics_every": 25}

EVERY_MAP = (
    *("platt", "isotonic", "binning", "venn-abers", "evidential-binning", "evidential-isotonic"),
    *("evidential-logistic", "implied", "mixed"),
)

FEEDS: dict[str, dict[str, Any]] = {
    "default": {},
    # A refit is under way at the stored position: begun at 160 and in effect from 199 on.
    "lagging": SHORT | {"classes": ("a", "b"), "early_until": 0, "kernel": "poly"},
    "crossfit": SHORT
    | {"classes": ("a", "b"), "split": "crossfit", "refit_lag": 9, "maps": EVERY_MAP}
    | {"implied_models": 9, "maps_every": 15},
    "linear": SHORT
    | {"classes": ("a", "b"), "learner": "linear", "n_components": 12, "refit_lag": 10}
    | {"taxonomy": "class-rank"},
    "psvm": SHORT
    | {"classes": ("a", "b"), "learner": "psvm", "refit_lag": 10, "missing": "mean"}
    | {"taxonomy": "margin", "class_weight": {"a": 2.0, "b": 1.0}},
    "classes": SHORT | {"refit_lag": 10, "gamma": 0.5, "taxonomy": "class-quantile"},
    "dedupe": SHORT
    | {"classes": ("a", "b"), "dedupe_window": 60, "refit_lag": 10, "split": "oldest"},
    "committee": SHORT | {"classes": ("a", "b"), "committee": "default"},
    "several": SHORT
    | {"classes": ("less", "much", "more"), "committee": "default", "refit_lag": 10},
}

TRIMMED = ("default", "lagging")
"""Feeds whose input is trimmed by snapshots."""

STOPPED = ("dedupe", "lagging", "linear")
"""Feeds that were left with a snapshot of their last position, as a graceful stop does."""

COMBINED = ("crossfit", "linear")
"""Sources of the feed `combination`, which have the same ids."""


def examples(name: str) -> list[list[bytes]]:
    """Return the fields of the input entries of a feed; the same at each call."""
    generator = np.random.default_rng(77 if name in COMBINED else list(FEEDS).index(name))
    X = generator.normal(size=(COUNT, 3)).round(4)
    noise = generator.normal(size=COUNT)
    return [
        _entry(name, i, X[i], float(X[i, 0] + X[i, 1] * X[i, 2] + noise[i])) for i in range(COUNT)
    ]


def _entry(name: str, i: int, x: Any, score: float) -> list[bytes]:
    """Return one entry: its features, its label or probability, and its id, where it has one."""
    if i % 50 == 23:
        features = [b"x", b"[1, 2]"]  # rejected: too few
    elif name == "linear" and i % 2:
        features = [b"xb", x.astype("<f8").tobytes()]
    elif name == "default":
        features = [b"x", json.dumps(dict(zip("uvw", x.tolist(), strict=True))).encode()]
    elif name == "psvm" and i % 20 == 3:
        features = [b"x", json.dumps([None, *x.tolist()[1:]]).encode()]
    else:
        features = [b"x", json.dumps(x.tolist()).encode()]
    return [*features, *_label(name, i, score), *_id(name, i)]


def _label(name: str, i: int, score: float) -> list[bytes]:
    if i % 40 == 11:
        return []  # answered and not learned
    if name == "psvm" and i % 3 == 0:
        return [b"p", b"%.3f" % (1 / (1 + np.exp(-score)))]
    if name == "classes":
        # The third class is seen soon, the fourth only after the feed was stored.
        if score > 1.5 and i > 20:
            return [b"y", b"very much" if i > STORED and i % 2 else b"much"]
        return [b"y", "größer".encode() if score > 0 else b"less"]
    if name == "several":
        return [b"y", b"much" if score > 1.5 else b"more" if score > 0 else b"less"]
    return [b"y", b"b" if score > 0 else b"a"]


def _id(name: str, i: int) -> list[bytes]:
    if name == "dedupe":
        return [b"id", b"id-%d" % (i - 30 if i % 7 == 5 else i)]
    return [b"id", b"id-%d" % i] if name in COMBINED else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="where to; made if it is not there")
    target = parser.parse_args(arguments).directory
    target.mkdir(parents=True, exist_ok=True)
    left = [path for path in target.iterdir() if path.name.endswith(".json.gz")]
    if left:
        print(f"{left[0]} is there: stored feeds are never made again", file=sys.stderr)
        return 2
    with embedded.temporary() as server:
        for name, content in _recorded(server.url).items():
            text = json.dumps(content, ensure_ascii=False, sort_keys=True)
            path = target / f"{name}.json.gz"
            path.write_bytes(gzip.compress(text.encode(), mtime=0))
            print(
                f"{path}: {path.stat().st_size:,} bytes, digest {content['later']['st']['digest']}"
            )
    return 0


def _recorded(url: str) -> dict[str, dict[str, Any]]:
    """Return what every file is to hold, by name."""
    entries = {name: examples(name) for name in FEEDS}
    before = {name: _answered(url, name, entries[name][:STORED], 0) for name in FEEDS}
    before["combination"] = _combined(url)
    after = {name: _answered(url, name, entries[name][STORED:], STORED) for name in FEEDS}
    after["combination"] = _combined(url)
    software = f"online-svm {online_svm.__version__}"
    return {
        name: {
            "software": software,
            "entries": [[_id_of(i), *_packed(e)] for i, e in enumerate(entries.get(name, []))],
            "pushed": STORED if name in entries else 0,
            "stored": before[name],
            "later": _new(before[name], after[name]),
            "sources": list(COMBINED) if name == "combination" else [],
        }
        for name in before
    }


def _answered(url: str, name: str, entries: list[list[bytes]], first: int) -> dict[str, Any]:
    """Push entries, answer them, and return the whole feed."""
    settings = WorkerSettings(
        **FEEDS[name], batch=45, snapshot_every=60, keep_input=name not in TRIMMED
    )
    stop = Stop()
    with open_store(name, settings, url, stop) as store, refitter(settings, stop) as refits:
        for i, fields in enumerate(entries, first):
            store.call("XADD", store.keys.input, _id_of(i), *fields)
        engine = assemble(store, settings, refits, stop, WRITER, begins=first == 0)
        while engine.position.seq < first + len(entries):
            engine.advance()
        if name in STOPPED:
            engine.snapshot()
        return _image(store)


def _combined(url: str) -> dict[str, Any]:
    """Combine what the sources have answered, and return the whole feed."""
    combination.run(COMBINED, "combination", url, join_window=20, once=True)
    with Store(url, "combination") as store:
        # It names itself after the machine.
        store.call("HSET", store.keys.state, "writer", WRITER)
        return _image(store)


def _image(store: Store) -> dict[str, Any]:
    """Return everything that is stored of a feed, under the last part of each key."""
    keys = store.keys
    streams = {"out": keys.out, "met": keys.met, "dlq": keys.dlq}
    image: dict[str, Any] = {
        name: [
            [entry[0].decode(), *_packed(entry[1])] for entry in store.call("XRANGE", key, "-", "+")
        ]
        for name, key in streams.items()
    }
    # What is kept of the input is its end: the whole stands beside it.
    image["kept"] = store.length(keys.input)
    flat = store.call("HGETALL", keys.state)
    image["st"] = dict(zip(_packed(flat[::2]), _packed(flat[1::2]), strict=True))
    found = sorted(key.decode() for key in store.call("KEYS", keys.snapshots))
    image["snapshots"] = {
        key.partition("}:")[2]: base64.b64encode(store.call("GET", key)).decode() for key in found
    }
    return image


def _new(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the entries that came after a feed was stored, and where it stood in the end."""
    streams = {name: after[name][len(before[name]) :] for name in ("out", "met", "dlq")}
    position = {name: after["st"][name] for name in ("cursor", "seq", "n", "digest")}
    return {**streams, "st": position}


def _id_of(i: int) -> str:
    """Return the entry ID of the i-th entry: three to a millisecond."""
    return f"{1000 + i // 3}-{i % 3}"


def _packed(parts: Sequence[bytes]) -> list[Any]:
    """Return bytes as JSON: text where they are text, else {"base64": ...}."""
    packed: list[Any] = []
    for part in parts:
        try:
            packed.append(part.decode())
        except UnicodeDecodeError:
            packed.append({"base64": base64.b64encode(part).decode()})
    return packed


if __name__ == "__main__":
    raise SystemExit(main())
