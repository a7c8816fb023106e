"""Run many histories of faults over every mode, each compared with an uninterrupted run.

    python tests/support/histories.py --inside 1000 --processes 100 --state build/histories

A history has a seed, which decides its mode, its input and its faults. Most run inside one process,
some with whole processes; both on a real Redis with `appendfsync always` behind a network that
fails. Each line of `finished.jsonl` in the directory is one history. The same command goes on with
the seeds that have no line there, so it may be stopped at any time. A history that differed, or got
stuck, is run again.
"""

import argparse
import atexit
import itertools
import json
import logging
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from hashlib import sha256
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import structlog
from fault_redis import Proxy, Server
from fault_workers import Nursery
from history_faults import Inside, Processes
from history_modes import MODES, mode_of
from history_parts import alarms_in, difference, digest_of, uninterrupted

from workers.broker import embedded
from workers.refit import process as refit_process

ROOT = Path(__file__).parents[2]
FINISHED = "finished.jsonl"

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
            expected = uninterrupted(mode, seed, count, self._calm_url)
            record |= {"digest": digest_of(expected), "alarms": alarms_in(expected)}
            with self._broken_redis() as place:
                if kind == "inside":
                    history = Inside(seed, mode, *place, count)
                else:
                    history = Processes(seed, mode, *place, self._nursery, count)
                found = history.run()
            record["error"] = difference(found, expected)
            record["found"] = digest_of(found)
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
    # Under pytest each test has one of its own.
    os.environ.setdefault("XDG_STATE_HOME", str(directory))
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


def finished(state):
    """Return the last record of each history that was run."""
    path = state / FINISHED
    found = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        # What was cut off while it was written is run again.
        with suppress(ValueError):
            record = json.loads(line)
            found[record["kind"], record["seed"]] = record
    return found


def left(every, state):
    """Return kind and seed of the histories that are still to be run, or run again."""
    found = finished(state)
    return [key for key in every if key not in found or found[key]["error"]]


def told(record):
    faults = sum(record["faults"].values())
    outcome = "DIFFERS" if record["error"] else f"digest {record['digest'][:16]}"
    return (
        f"{record['kind']} {record['seed']}: {record['mode']}: {faults} faults, {outcome}, "
        f"{record['seconds']:.1f} s"
    )


def summary(records):
    for kind in COUNTS:
        mine = [record for record in records if record["kind"] == kind]
        faults = sum((Counter(record["faults"]) for record in mine), Counter())
        failed = [record["seed"] for record in mine if record["error"]]
        yield (
            f"{kind}: {len(mine)} histories in {len({r['mode'] for r in mine})} modes, "
            f"{sum(faults.values())} faults, {sum(r.get('alarms', 0) for r in mine)} alarms, "
            f"{len(failed)} that differ: {failed}"
        )
        yield "  " + ", ".join(f"{count} {name}" for name, count in sorted(faults.items()))
        versions = Counter(record["code"] for record in mine)
        yield "  by version of the code: " + ", ".join(f"{v} {n}" for v, n in versions.items())
        digests = "".join(record.get("digest", "") for record in mine)  # in the order of seeds
        yield f"  SHA-256 of their digests {sha256(digests.encode()).hexdigest()}"


def code():
    paths = sorted(p for part in ("online_svm", "workers") for p in (ROOT / part).rglob("*.*"))
    sources = [path.read_bytes() for path in paths if path.suffix in (".py", ".lua")]
    return sha256(b"\0".join(sources)).hexdigest()[:12]


def run_all(todo, state, run):
    """Keep a line for each record that `run` yields of histories; print what it says.

    The line before may have been cut off, so each begins with the end of a line.
    """
    version = code()
    with (state / FINISHED).open("a") as file:
        for record in run(todo):
            print("\n" + json.dumps(record | {"code": version}), file=file, flush=True)
            print(told(record), flush=True)


opened = ExitStack()
"""What this process needs for histories, until it ends."""


def set_up():
    """Make the stage of this process."""
    atexit.register(opened.close)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    opened.made = opened.enter_context(stage(opened.enter_context(tempfile.TemporaryDirectory())))


def run_one(key):
    return opened.made.run(*key)


def stop_in_order(_number, _frame):
    """End as Ctrl-C does, so that no server and no worker is left behind."""
    raise KeyboardInterrupt


def main():
    """Run what is left to run, in a few processes; exit with 1 if any history differed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inside", type=int, default=1000, help="histories inside one process")
    parser.add_argument("--processes", type=int, default=100, help="histories of whole processes")
    parser.add_argument("--state", type=Path, default=Path("build/histories"), metavar="DIR")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="run at once")
    parser.add_argument("--modes", nargs="+", default=(), metavar="WORD", help="modes with all")
    parser.add_argument("--only", metavar="KIND:SEED", help="run this history alone, again")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, stop_in_order)
    if args.only:
        kind, _, seed = args.only.partition(":")
        set_up()
        record = run_one((kind, int(seed)))
        print(told(record), record["error"] or record["faults"], sep="\n")
        return 1 if record["error"] else 0
    args.state.mkdir(parents=True, exist_ok=True)
    every = wanted(args.inside, args.processes, args.modes)
    todo = left(every, args.state)
    print(f"{len(every) - len(todo)} of {len(every)} histories are done", flush=True)
    with ProcessPoolExecutor(args.jobs, get_context("spawn"), set_up) as pool:
        run_all(todo, args.state, lambda todo: pool.map(run_one, todo))
    found = finished(args.state)
    print(*summary([found[key] for key in every]), sep="\n")
    return 1 if left(every, args.state) else 0


if __name__ == "__main__":
    sys.exit(main())
