"""A small feed with a worker in this process, for tests of what is measured of it."""

import json
from contextlib import contextmanager

import numpy as np
from prometheus_client import CollectorRegistry
from session_steps import assembled, refitter
from world import drain

from workers.config.settings import WorkerSettings
from workers.monitor.health import StatusCache
from workers.monitor.metrics import WorkerMetrics
from workers.monitor.watch import WorkerWatch
from workers.stop import Stop

COUNT = 120

SETTINGS = {
    "classes": ("a", "b"),
    "window": 60,
    "refit_every": 20,
    "metrics_every": 10,
    "committee": "single",
    "replay_budget": 50,
}


def push(store, count=COUNT, first=1, milliseconds=None):
    """Fill a feed; every twentieth entry is rejected."""
    generator = np.random.default_rng(first)
    X = generator.normal(size=(count, 3)).round(6)
    for i, x in enumerate(X):
        text = "[1,2]" if i % 20 == 7 else json.dumps(x.tolist())
        name = f"{milliseconds}-{first + i}" if milliseconds else f"{first + i}-0"
        store.call("XADD", store.keys.input, name, "x", text, "y", "b" if x[0] > 0 else "a")


@contextmanager
def working(store, telemetry, stop=None, **settings):
    chosen, stop = WorkerSettings(**(SETTINGS | settings)), stop or Stop()
    with refitter(chosen, stop, telemetry) as refits:
        yield assembled(store, chosen, refits, stop, telemetry=telemetry)


def work(store, telemetry, upto=COUNT, leaves_snapshot=True, **settings):
    with working(store, telemetry, **settings) as session:
        drain(session, upto)
        if leaves_snapshot:
            session.snapshot()
        return session.position.digest


class Watched:
    """The metrics of a feed; `metrics` receives the work of the feed."""

    def __init__(self, store):
        self.feed, self.registry, self.watch = store.keys.feed, CollectorRegistry(), WorkerWatch()
        self.metrics = self.watch.on_feed_added(self.feed)
        self.watch.connects((store,), 5.0)
        self.watch.on_started()
        self.cache = StatusCache(store.url)
        self.registry.register(WorkerMetrics(self.watch, self.cache))

    def __call__(self, name, **labels):
        return self.registry.get_sample_value(f"online_svm_{name}", {"feed": self.feed, **labels})

    def close(self):
        self.cache.close()
