"""SIGTERM whatever the real command is doing, and refit processes that die, hang or crawl."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from session_steps import OwnRefits
from world import COUNT, World, drain, rows, wait_until

from online_svm.refit.inline import InlineRefitter
from scripts.bench.processes import is_running

GRACE = 4.0
LAG = {"refit_lag": 15}


@pytest.fixture
def filled(embedded_url, feed, request):
    """A feed with its input; a parameter of the test holds settings."""
    with World(embedded_url, feed, **getattr(request, "param", {})) as world:
        world.push()
        yield world


lagging = pytest.mark.parametrize("filled", [LAG], indirect=True, ids=["lagging"])


def start(world, *options):
    return world.worker("--quiet", "--grace", GRACE, *options)


def stop(world, worker):
    """Stop a worker, which ends in time with its lease free."""
    worker.stopped(GRACE + 1.0)
    assert world.store.call("EXISTS", world.store.keys.lease) == 0


def go_on(world):
    """Let another worker answer the rest, and be stopped while it is idle."""
    worker = start(world)
    world.wait_for(world.pushed)
    stop(world, worker)
    world.check()


def refit_process_of(worker):
    """Return the child that computes the refits."""
    return int(Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()[0])


def test_a_stop_in_the_stream_and_one_while_idle_change_no_byte(filled):
    worker = start(filled, "--batch", "1")
    filled.wait_for(20)
    stop(filled, worker)
    go_on(filled)


@pytest.mark.chaos
def test_a_stop_in_a_replay_leaves_everything_as_it_was(filled):
    """Three pages to answer again, in the middle of which the stop comes."""
    filled.push(rows(3_000, seed=2))
    filled.answer(batch=2000, snapshot_every=10**9)
    before = filled.outcome()
    for epoch in (2, 3):
        worker = start(filled)
        wait_until(lambda epoch=epoch: filled.store.state().epoch == epoch)
        stop(filled, worker)
        assert filled.outcome() == before


@pytest.mark.slow
@lagging
def test_a_stop_while_a_refit_hangs_ends_in_time_and_changes_no_byte(filled):
    worker = start(filled, "--batch", "1")
    filled.wait_for(30)
    os.kill(refit_process_of(worker), signal.SIGSTOP)
    stands = filled.seq
    wait_until(lambda: waits(filled))
    assert stands <= filled.seq < COUNT
    stop(filled, worker)
    go_on(filled)


def waits(world):
    """Return whether nothing was answered in a while: the feed waits for a refit."""
    reached = world.seq
    time.sleep(0.5)
    return world.seq == reached


DEAR = {"window": 600, "refit_every": 300, "refit_lag": 200, "C": 1e6}
"""With labels that are noise, a refit takes a while."""


@pytest.mark.slow
@pytest.mark.parametrize("filled", [DEAR], indirect=True, ids=["dear"])
def test_a_stop_while_a_refit_computes_ends_in_time_and_changes_no_byte(filled):
    labels = np.random.default_rng(1).choice(["a", "b"], 320)
    noise = [[*fields[:3], str(y)] for fields, y in zip(rows(320, seed=2), labels, strict=True)]
    filled.push(noise)
    filled.entries += noise
    worker = start(filled, "--batch", "1")
    filled.wait_for(310)  # the refit of the first 300 good ones has begun
    child = refit_process_of(worker)
    wait_until(lambda: is_running(child))
    stop(filled, worker)
    assert filled.seq < filled.pushed
    go_on(filled)


class Slow(InlineRefitter):
    """Takes a tenth of a second longer than it should, which is more than ten times as long."""

    def result(self):
        time.sleep(0.1)
        return super().result()


@lagging
def test_refits_that_are_ten_times_slower_take_effect_at_the_same_examples(filled):
    filled.answer(refits=Slow(filled.settings.predictor))
    filled.check()


@pytest.mark.chaos
@lagging
def test_refit_processes_killed_all_along_a_feed_change_no_byte(filled):
    killed, own = [], OwnRefits(filled.settings.predictor, patience=60.0)
    with own as refits:
        running = filled.session(refits=refits)
        # A process may have computed the two refits that come next before it is killed. The third
        # takes effect within 55 examples, so between two of these goals another process is needed.
        for goal in (40, 100, 160):
            drain(running, goal)
            killed.append(own.pid)
            os.kill(own.pid, signal.SIGKILL)
        drain(running, COUNT)
    assert len({*killed}) == 3
    filled.check()
