"""Feeds for the page: written by hand, so that each state is exact."""

import orjson

from workers.broker.leases import Holder
from workers.broker.store import Store


def answer(seq, label="ham", probability=0.8, **more):
    return {
        "v": 2, "status": "ok", "seq": seq, "n": seq, "label": label, "lower": probability - 0.1,
        "probability": probability, "upper": min(1.0, probability + 0.1),
        "guarantee": "exact", "reason": None, **more,
    }  # fmt: skip


def agreement(labels, accuracy, announced):
    """Return the agreement of a report of so many labels, of two classes."""
    within = abs(accuracy - announced) + 2.0 * (announced * (1.0 - announced) / labels) ** 0.5
    mean = {
        "label": "spam", "announced": 0.3, "frequency": 0.3, "examples": 3 * labels // 10,
        "evidence": 0.0, "factor": 1.1,
    }  # fmt: skip
    span = {
        "labels": labels, "accuracy": accuracy, "announced": announced, "within": within,
        "apart": 0.0, "change": 0.0, "range": None, "mean": mean, "rare": None, "gain": 0.1,
        "gain_error": 0.01, "entropy": 0.6,
    }  # fmt: skip
    known = span if labels >= 100 else None
    return {
        "event": "spam", "last": known, "since": known, "start": 0, "answers": labels,
        "unlabelled": [],
    }  # fmt: skip


def validity(n, accuracy=0.8, probability=0.8, maps=("platt",), **more):
    own = {
        "accuracy": accuracy, "lower": probability - 0.1, "probability": probability,
        "upper": probability + 0.1,
    }  # fmt: skip
    method = {"predicted": own, "svm": own, "log_loss": 0.4, "brier": 0.2, "clipped": 0}
    return {
        "v": 2, "n": n, "seq": n - 1, "scored": n, "headline": method, "venn": method,
        "maps": dict.fromkeys(maps, method),
        "agreement": agreement(n, accuracy, probability), **more,
    }  # fmt: skip


class Feed:
    """A feed in Redis as a worker leaves it, written by hand."""

    def __init__(self, url, name):
        self.name, self.store, self.seq = name, Store(url, name), 0
        self.keys = self.store.keys
        self.store.register()

    def put(self, stream, entry_id, message):
        self.store.call("XADD", stream, entry_id, "p", orjson.dumps(message))

    def wait_for_answer(self, y="ham", count=1):
        for _ in range(count):
            self.store.call("XADD", self.keys.input, "*", "x", "[1]", "y", y)

    def answer(self, label="ham", y="ham", **more):
        self.seq += 1
        at = f"{1000 * self.seq}-0"
        self.store.call("XADD", self.keys.input, at, "x", "[1]", "y", y)
        self.put(self.keys.out, at, answer(self.seq - 1, label, **more))
        counters = ("epoch", 1, "seq", self.seq, "n", self.seq, "cursor", at)
        self.store.call("HSET", self.keys.state, *counters)

    def report(self, n, **more):
        """Add a validity report under the ID of the last answer."""
        self.put(self.keys.met, f"{1000 * self.seq}-0", validity(n, **more))

    def hold(self, name="host-1"):
        self.store.call("SET", self.keys.lease, Holder.here(name).encode())

    def delete(self):
        for key in self.store.types():
            self.store.call("DEL", key)
        self.store.call("SREM", "osvm:feeds", self.name)
