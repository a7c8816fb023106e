"""Histories of faults over every mode, each compared with an uninterrupted run.

A history has a seed, which decides its mode, its input and its faults. Most run inside one process,
some with whole processes; both on a real Redis with `appendfsync always` behind a network that
fails.
"""

import itertools
import tempfile
import time
import traceback
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path

from fault_redis import Proxy, Server
from fault_workers import Nursery
from history_faults import Inside, Processes
from history_modes import MODES, mode_of
from history_parts import difference, uninterrupted
from late_refits import late_refits

from workers.broker import embedded
from workers.refit import process as refit_process

COUNTS = {"inside": 110, "processes": 150}
"""Entries of a history of each kind; `Mode.length` times as many."""


class Stage:
    """What histories are run with, one after the other: a nursery, and a Redis without faults."""

    def __init__(self, directory, nursery, calm_url):
        self._directory, self._nursery, self._calm_url = directory, nursery, calm_url

    def run(self, kind, seed):
        mode, began = mode_of(seed), time.monotonic()
        count = COUNTS[kind] * mode.length
        record = {"kind": kind, "seed": seed, "mode": str(mode)}
        history = None
        try:
            with late_refits("lag" in mode):
                expected = uninterrupted(mode, seed, count, self._calm_url)
                record |= {"digest": expected.digest, "alarms": len(expected.alarms)}
                with self._broken_redis() as place:
                    if kind == "inside":
                        history = Inside(seed, mode, *place, count)
                    else:
                        history = Processes(seed, mode, *place, self._nursery, count)
                    found = history.run()
            record["error"] = difference(found, expected)
            record["found"] = found.digest
        except Exception:  # whatever it was, the other histories go on
            record["error"] = traceback.format_exc()
        faults = history.faults if history is not None else {}
        return record | {"faults": faults, "seconds": round(time.monotonic() - began, 2)}

    @contextmanager
    def _broken_redis(self):
        """A Redis of one history's own, and the network in front of it."""
        with (
            tempfile.TemporaryDirectory(dir=self._directory) as directory,
            Server(Path(directory) / "redis", "always") as server,
            closing(Proxy(server.port)) as proxy,
        ):
            yield server, proxy


@contextmanager
def stage(directory):
    begin = refit_process.start
    with ExitStack() as opened:
        nursery = Nursery(Path(directory) / "workers.log")
        opened.callback(nursery.close)
        calm = opened.enter_context(embedded.temporary())
        # Inside this process refit processes are forked too, or each would import for a second.
        refit_process.start = nursery.begin_refits
        try:
            yield Stage(Path(directory), nursery, calm.url)
        finally:
            refit_process.start = begin


def wanted(inside, processes, words=()):
    """Return kind and seed of every history, the two kinds spread evenly.

    With words such as "drift" and "late", only seeds of modes that have all of them are taken.
    """
    assert any(mode_of(seed).has(words) for seed in range(MODES)), f"no mode has {words}"
    every = (seed for seed in itertools.count() if mode_of(seed).has(words))
    seeds = list(islice(every, max(inside, processes)))
    found = [(i / max(inside, 1), "inside", seeds[i]) for i in range(inside)]
    found += [(i / max(processes, 1), "processes", seeds[i]) for i in range(processes)]
    return [(kind, seed) for _, kind, seed in sorted(found)]


def told(record):
    faults = sum(record["faults"].values())
    outcome = "DIFFERS" if record["error"] else f"digest {record['digest'][:16]}"
    return (
        f"{record['kind']} {record['seed']}: {record['mode']}: {faults} faults, {outcome}, "
        f"{record['seconds']:.1f} s"
    )
