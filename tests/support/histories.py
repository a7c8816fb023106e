"""Run many histories of faults over every mode, each compared with an uninterrupted run.

    python tests/support/histories.py --inside 1000 --processes 100 --state build/histories

A history has a seed, which decides its mode, its input and its faults. Most run inside one process
(history_inside.py), some with whole processes (history_processes.py); both on a real Redis with
`appendfsync always` behind a network that fails. Each line of `finished.jsonl` in the directory is
one history: its seed, mode, faults and digest. The same command goes on with the seeds that have no
line there, so it may be stopped at any time. A history that differed, or got stuck, is run again.
"""

import argparse
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
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path

import structlog
from fault_proxy import Proxy
from fault_redis import Server
from fault_workers import Nursery
from history_inside import Inside
from history_modes import MACHINES, MODES, mode_of
from history_parts import alarms_in, difference, digest_of, uninterrupted
from history_processes import Processes
from processes import Process

from workers.broker import embedded
from workers.refit import pool_process

ROOT = Path(__file__).parents[2]
FINISHED = "finished.jsonl"
LONGEST = 86_400.0
"""Seconds that all histories may take."""

COUNTS = {"inside": 110, "processes": 150}
"""Entries of a history of each kind; `Mode.length` times as many."""


class Stage:
    """What histories are run with, one after the other: a nursery, and a Redis without faults.

    That one, of `calm_url`, is for the uninterrupted runs; it is emptied again and again.
    """

    def __init__(self, directory, nursery, calm_url):
        self._directory, self._nursery, self._calm_url = directory, nursery, calm_url

    def run(self, kind, seed):
        """Return the record of one history."""
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
        with tempfile.TemporaryDirectory(dir=self._directory) as directory:
            server = Server(Path(directory) / "redis", "always")
            proxy = Proxy(server.port)
            try:
                yield server, proxy
            finally:
                proxy.close()
                server.kill()


@contextmanager
def stage(directory):
    """Yield a stage; its first use compiles the machine code of every mode, which takes minutes."""
    # Under pytest each test has one of its own.
    os.environ.setdefault("XDG_STATE_HOME", str(directory))
    configs = [mode_of(seed).settings().predictor for seed in range(len(MACHINES))]
    begin = pool_process.begin
    with ExitStack() as opened:
        nursery = Nursery(Path(directory) / "workers.log", configs)
        opened.callback(nursery.close)
        calm = opened.enter_context(embedded.temporary())
        # Inside this process refit processes are forked too, or each would import for a second.
        pool_process.begin = nursery.begin_refits
        try:
            yield Stage(Path(directory), nursery, calm.url)
        finally:
            pool_process.begin = begin


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


def records(every, state):
    """Return the records of those histories that were run, in their order."""
    found = finished(state)
    return [found[key] for key in every if key in found]


def left(every, state):
    """Return kind and seed of the histories that are still to be run, or run again."""
    found = finished(state)
    return [key for key in every if key not in found or found[key]["error"]]


def keep(state, record):
    """Add one line to the file, which several processes may do.

    It begins with the end of a line too: the one before may have been cut off.
    """
    line = "\n" + json.dumps(record) + "\n"
    with (state / FINISHED).open("ab", buffering=0) as file:
        file.write(line.encode())


def told(record):
    """Return a record in one line."""
    faults = sum(record["faults"].values())
    outcome = "DIFFERS" if record["error"] else f"digest {record['digest'][:16]}"
    return (
        f"{record['kind']} {record['seed']}: {record['mode']}: {faults} faults, {outcome}, "
        f"{record['seconds']:.1f} s"
    )


def summary(records):
    """Return the lines that say what all histories came to."""
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
    """Return a digest of the software that is tested."""
    paths = sorted(p for part in ("online_svm", "workers") for p in (ROOT / part).rglob("*.*"))
    sources = [path.read_bytes() for path in paths if path.suffix in (".py", ".lua")]
    return sha256(b"\0".join(sources)).hexdigest()[:12]


def run_slot(todo, state, made):
    """Run histories one after the other on a stage, and keep the record of each."""
    version = code()
    for kind, seed in todo:
        record = made.run(kind, seed) | {"code": version}
        keep(state, record)
        print(told(record), flush=True)


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
    parser.add_argument("--slot", type=int, help=argparse.SUPPRESS)  # one of those run at once
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, stop_in_order)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    if args.only:
        kind, _, seed = args.only.partition(":")
        with tempfile.TemporaryDirectory() as directory, stage(directory) as made:
            record = made.run(kind, int(seed))
        print(told(record))
        print(record["error"] or record["faults"])
        return 1 if record["error"] else 0
    args.state.mkdir(parents=True, exist_ok=True)
    every = wanted(args.inside, args.processes, args.modes)
    todo = left(every if args.slot is None else every[args.slot :: args.jobs], args.state)
    if args.slot is not None:
        with tempfile.TemporaryDirectory() as directory, stage(directory) as made:
            run_slot(todo, args.state, made)
        return 0
    print(f"{len(every) - len(todo)} of {len(every)} histories are done", flush=True)
    slots = [
        Process([sys.executable, *sys.argv, "--jobs", str(args.jobs), "--slot", str(slot)])
        for slot in range(args.jobs if todo else 0)
    ]
    try:
        codes = [slot.wait(LONGEST) for slot in slots]
    finally:
        for slot in slots:
            slot.terminate()
            slot.wait(LONGEST)
    for line in summary(records(every, args.state)):
        print(line)
    return 1 if any(codes) or left(every, args.state) else 0


if __name__ == "__main__":
    sys.exit(main())
