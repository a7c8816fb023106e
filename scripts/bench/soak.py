"""Millions of examples through the real worker: nothing may grow, nothing slow down.

A producer pushes a drifting stream and keeps to a high-water mark; the worker is the command with
its default settings, on an embedded Redis that writes its append-only file. Memory, key sizes and
the rate are sampled all along, and each must be level: `levels.py` says what that means.
"""

import sys
import time

from scripts.bench.drift import drifting
from scripts.bench.levels import Bounds, SoakSample, checks, rate
from scripts.bench.processes import (
    Measured,
    python,
    refit_process,
    require_proc,
    resident,
    worker,
)
from scripts.bench.report import Check, Checked
from workers.broker import embedded
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.push.ingest import push

ENTRIES = 2_000_000
HIGH_WATER = 5_000
"""Entries that may wait for the worker: about a quarter of a second's work."""

_FEED = "soak"
_SAMPLES = 400  # of a run
_LOOK = 0.005  # seconds between two looks at a full feed
_TOLD_EVERY = 5.0  # seconds between two progress lines


def run(entries: int = ENTRIES, bounds: Bounds | None = None) -> Checked:
    """Feed a worker, print progress on standard error, and return what was level.

    Parameters
    ----------
    entries : int
    bounds : Bounds, optional

    Raises
    ------
    WorkerEnded
        If the worker does not live through it.
    BadConfiguration
        On a system without /proc.
    """
    require_proc()
    settings = WorkerSettings()
    with (
        embedded.temporary() as server,
        python(*worker(_FEED, server.url)) as process,
        Store(server.url, _FEED) as store,
    ):
        process.wait_until(lambda: store.state() is not None)
        watch = _Watch(store, process, entries)
        push(drifting(entries), server.url, _FEED, arrays=True, throttle=watch)
        watch.finish()
    return result(watch.samples, checks(watch.samples, settings, HIGH_WATER, bounds or Bounds()))


def result(samples: list[SoakSample], found: list[Check]) -> Checked:
    """Return what was measured in all, beside what must be level."""
    last = samples[-1]
    values = {"examples": last.seq, "seconds": last.seconds, "samples": len(samples)}
    line = f"{last.seq:,} examples in {last.seconds:,.0f} s, {rate(samples):,.0f} a second"
    return Checked(values, found, [line])


class _Watch:
    """Samples the run, and holds the producer back while too many entries wait."""

    def __init__(self, store: Store, process: Measured, entries: int) -> None:
        self._store, self._process, self._entries = store, process, entries
        self._began = self._told = time.monotonic()
        self._step = max(1, entries // _SAMPLES)
        self.samples: list[SoakSample] = []

    def __call__(self, sent: int) -> None:
        """Return when there is room for more; `sent` entries were pushed so far."""
        while sent - self._look() > HIGH_WATER:
            time.sleep(_LOOK)

    def finish(self) -> None:
        """Wait until everything is answered."""
        while self._look() < self._entries:
            time.sleep(_LOOK)

    def _look(self) -> int:
        """Return how many entries are answered, after a sample if one is due."""
        self._process.check()
        seq = int(self._store.call("HGET", self._store.keys.state, "seq"))
        if seq >= (len(self.samples) + 1) * self._step or seq == self._entries:
            self.samples.append(sample(self._store, self._process.pid, self._began))
            self._tell()
        return seq

    def _tell(self) -> None:
        now, newest = time.monotonic(), self.samples[-1]
        if now - self._told < _TOLD_EVERY or len(self.samples) < 2:
            return
        self._told = now
        print(
            f"soak: {newest.seq:,} of {self._entries:,} answered, "
            f"{rate(self.samples[-20:]):,.0f}/s; "
            f"worker {newest.worker / 1e6:,.1f} MB, refits {newest.refits / 1e6:,.1f} MB, "
            f"Redis {newest.redis / 1e6:,.1f} MB",
            file=sys.stderr,
            flush=True,
        )


def sample(store: Store, pid: int, began: float) -> SoakSample:
    """Return what there is now.

    Parameters
    ----------
    store : Store
    pid : int
        Of the worker.
    began : float
        When the run began, by `time.monotonic`.
    """
    keys = store.keys
    sizes = [int(store.call("STRLEN", key)) for key in store.snapshot_keys()]
    groups = [
        dict(zip(flat[::2], flat[1::2], strict=True))
        for flat in store.call("XINFO", "GROUPS", keys.input)
    ]
    child = refit_process(pid)
    return SoakSample(
        seconds=time.monotonic() - began,
        seq=int(store.call("HGET", keys.state, "seq")),
        worker=resident(pid),
        refits=0 if child is None else resident(child),
        redis=int(store.server()["used_memory"]),
        input=store.length(keys.input),
        out=store.length(keys.out),
        met=store.length(keys.met),
        dlq=store.length(keys.dlq),
        out_bytes=store.call("MEMORY", "USAGE", keys.out) or 0,
        met_bytes=store.call("MEMORY", "USAGE", keys.met) or 0,
        groups=len(groups),
        consumers=sum(group[b"consumers"] for group in groups),
        pending=sum(group[b"pending"] for group in groups),
        snapshots=len(sizes),
        snapshot_bytes=sum(sizes),
    )
