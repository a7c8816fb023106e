"""SIGTERM whatever the real command is doing, and refit processes that die, hang or crawl."""

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from session_steps import InlineRefits, run
from world import COUNT, World, drain, rows, wait_until

from scripts.bench.harness import is_running
from workers.broker.store import Store
from workers.errors import PositionMoved, Stopped
from workers.stop import Stop

GRACE = 4.0


@pytest.fixture
def filled(embedded_url, feed, request):
    """A feed with its input; a parameter of the test holds settings."""
    with World(embedded_url, feed, **getattr(request, "param", {})) as world:
        world.push()
        yield world


def start(world, *options):
    return world.worker("--quiet", "--grace", GRACE, *options)


def stop(world, worker):
    """Stop a worker, which ends in time with its lease free: a refit that hangs does not end."""
    worker.stopped(GRACE + 30.0)
    assert world.store.call("EXISTS", world.store.keys.lease) == 0


def go_on(world):
    """Let another worker answer the rest, and be stopped while it is idle."""
    worker = start(world)
    world.wait_for(world.pushed)
    stop(world, worker)
    world.check()


def refit_process_of(worker):
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
def test_a_stop_while_a_refit_hangs_ends_in_time_and_changes_no_byte(lagging, filled):
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
    time.sleep(2.0)  # a busy machine may stand still for a second
    return world.seq == reached


HARDEST = {"window": 1040, "refit_every": 1040, "committee": "single", "C": 1e6}
"""The largest penalty. Where labels are noise, the solver stops after ten million steps."""


@pytest.mark.slow
@pytest.mark.parametrize("filled", [HARDEST], indirect=True, ids=["hardest"])
def test_a_stop_in_the_longest_loop_of_a_kernel_ends_in_time(filled):
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(810, 3)), rng.choice(["a", "b"], 810)
    filled.push(
        [["x", json.dumps(x.tolist()), "y", str(y)] for x, y in zip(X, labels, strict=True)]
    )
    worker = start(filled)
    filled.wait_for(1040)
    child = refit_process_of(worker)
    wait_until(lambda: waits(filled))
    stands = filled.seq
    assert is_running(child)
    stop(filled, worker)
    assert not Path(f"/proc/{child}").exists()
    assert filled.seq == stands < filled.pushed  # the loop was cut short


class Slow(InlineRefits):
    """Takes a tenth of a second longer than it should, which is more than ten times as long."""

    def result(self):
        time.sleep(0.1)
        return super().result()


def test_refits_that_are_ten_times_slower_take_effect_at_the_same_examples(lagging, filled):
    filled.answer(refits=Slow(filled.settings.predictor))
    filled.check()


class Refusing(Store):
    """A store whose next commit comes to nothing while a stop is requested; then it works again."""

    refusal = stop = None

    def send(self, commit):
        return super().send(commit) if self.refusal is None else None

    def confirm(self, commit, sent):
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            self.stop.request()
            raise refusal
        super().confirm(commit, sent)


@pytest.mark.parametrize("refusal", [Stopped("no answer"), PositionMoved("elsewhere")])
def test_a_stop_leaves_no_snapshot_of_an_uncommitted_batch(embedded_url, feed, expected, refusal):
    """With the feed moved, the position is read again, and the stop ends the replay."""
    stop = Stop()
    with World(embedded_url, feed) as world, Refusing(embedded_url, feed, stop, block_ms=20) as bad:
        world.push()
        world.answer(50)
        running = world.session(bad, stop=stop)
        drain(running, 70)
        bad.refusal, bad.stop = refusal, stop
        run(running, stop)
        assert world.store.state().snapshot is None
        assert world.seq == 70
        world.answer()
        assert world.outcome() == expected
