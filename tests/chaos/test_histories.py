"""Histories of faults over the matrix of modes: all learners, splits and maps, repeated ids, a
blocking consumer, two workers and late labels, under faults of all that takes part.

CHAOS_INSIDE and CHAOS_PROCESSES say how many of each kind run, spread over the modes. A history has
a seed, which decides its mode, its input and its faults. Most run inside one process, some with
whole processes; both on a real Redis with `appendfsync always` behind a network that fails. What
comes out is compared with an uninterrupted run.
"""

import itertools
import tempfile
import time
import traceback
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from fault_redis import Proxy, Server
from fault_workers import Nursery
from history_faults import Inside, Processes
from history_modes import MACHINES, MODES, mode_of
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


def line_of(record):
    faults = sum(record["faults"].values())
    outcome = "DIFFERS" if record["error"] else f"digest {record['digest'][:16]}"
    return (
        f"{record['kind']} {record['seed']}: {record['mode']}: {faults} faults, {outcome}, "
        f"{record['seconds']:.1f} s"
    )


POLICIES = ("report", "refit", "reset")


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    directory, begin = tmp_path_factory.mktemp("stage"), refit_process.start
    with ExitStack() as opened:
        nursery = Nursery(directory / "workers.log")
        opened.callback(nursery.close)
        calm = opened.enter_context(embedded.temporary())
        # Inside this process refit processes are forked too, or each would import for a second.
        refit_process.start = nursery.begin_refits
        try:
            yield Stage(directory, nursery, calm.url)
        finally:
            refit_process.start = begin


def check(stage, told, every):
    for kind, seed in every:
        record = stage.run(kind, seed)
        told(line_of(record))
        assert not record["error"], record["error"]
        assert record["found"] == record["digest"]
        yield record


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_few_histories_inside_a_process_change_no_byte(stage, told):
    assert len([*check(stage, told, wanted(8, 0))]) == 8


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_few_histories_of_named_rows_of_every_kind_change_no_byte(stage, told):
    assert len([*check(stage, told, wanted(4, 2, ("kinds",)))]) == 6


@pytest.mark.chaos
@pytest.mark.timeout(7200)  # a thousand take 90 minutes
@pytest.mark.parametrize("kind", COUNTS)
def test_no_history_over_the_mixed_matrix_changes_a_byte(stage, times, told, kind):
    every = [(kind, seed) for seed in range(times[kind.upper()])]
    assert len([*check(stage, told, every)]) == len(every)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("policy", POLICIES)
def test_two_workers_that_replace_each_other_leave_the_same_alarms(stage, times, told, policy):
    """Labels are late and turned round; what an alarm begins is under way when a worker dies."""
    count = max(1, times["PROCESSES"] // 5)
    every = wanted(0, count, ("drift", policy, "late", "two"))
    assert all(record["alarms"] for record in check(stage, told, every))


def test_every_mode_comes_once_in_as_many_seeds():
    assert len({str(mode_of(seed)) for seed in range(MODES)}) == MODES
    assert {mode_of(seed).machine for seed in range(20)} == set(MACHINES)


@pytest.mark.chaos
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("labels", [(), ("late",)])
def test_histories_of_drift_raise_alarms(embedded_url, policy, labels):
    """Else those that compare them compare nothing."""
    for _, seed in wanted(4, 0, ("drift", policy, *labels)):
        mode = mode_of(seed)
        count = mode.length * COUNTS["inside"]
        assert uninterrupted(mode, seed, count, embedded_url).alarms, seed


@pytest.mark.chaos
def test_one_payload_that_differs_or_is_missing_is_found(embedded_url):
    expected = uninterrupted(mode_of(0), 0, 60, embedded_url)
    for stream in ("out", "met", "dlq"):
        entries = list(getattr(expected, stream))
        for changed in (entries[:-1], [*entries[:-1], (b"1-0", b"{}")]):
            found = replace(expected, **{stream: tuple(changed)})
            assert difference(found, expected).startswith(f"{stream}: ")
    position = expected.position
    moved = replace(expected, position=replace(position, n=position.n + 1))
    assert "n=" in difference(moved, expected)
    assert not difference(expected, expected)
