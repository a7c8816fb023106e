"""What a worker that has one feed shows of it: its metrics, read as Prometheus would."""

from prometheus_client import CollectorRegistry

from workers.monitor.metrics import WorkerMetrics
from workers.monitor.standings import Standings
from workers.monitor.watch import WorkerWatch


class Watched:
    """The metrics of a feed; `metrics` is what its work is told to."""

    def __init__(self, store, source=None):
        self.feed, self.registry, self.watch = store.keys.feed, CollectorRegistry(), WorkerWatch()
        self.metrics = self.watch.takes(self.feed, source=source)
        self.watch.connects((store,), 5.0)
        self.watch.begins()
        self.standings = Standings(store.url)
        self.registry.register(WorkerMetrics(self.watch, self.standings))

    def __call__(self, name, **labels):
        return self.registry.get_sample_value(f"online_svm_{name}", {"feed": self.feed, **labels})

    def close(self):
        self.standings.close()
