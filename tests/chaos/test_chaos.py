"""Workers that are paused, and workers that start together: the same bytes by one writer."""

import random
import signal
import time

import pytest
from fault_workers import is_holder
from world import wait_until

# Each test injects 20 to 200 faults, and waits for progress between two.
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]

SEED = 5
FENCED = 3


def test_pauses_with_a_take_over(trial, times, told):
    choose, pauses, step = random.Random(SEED), times["PAUSES"], 20
    feed = trial(2 * pauses * step)
    worker = feed.start("--lease", "0.5", "--batch", 1)
    for _ in range(pauses):
        feed.wait_for(feed.push(step) - choose.randrange(step))
        worker.send_signal(signal.SIGSTOP)
        successor = feed.start("--lease", "0.5", "--batch", choose.choice((1, 5)))
        feed.wait_for(feed.push(step) - choose.randrange(step))
        worker.send_signal(signal.SIGCONT)
        resumed = time.monotonic()
        assert worker.wait() == FENCED
        assert time.monotonic() - resumed < 5.0
        worker = successor
    position = feed.check(worker)
    assert feed.store.state().epoch == pauses + 1
    told(f"{pauses} pauses with a take-over", position)


def test_two_workers_that_start_together(trial, times, told):
    """One writer an epoch: the other waits, and takes over when the first is stopped."""
    starts, step = times["STARTS"], 20
    feed = trial(starts * step)
    for turn in range(starts):
        feed.push(step)
        pair = [feed.start("--lease", "0.5", "--batch", 3) for _ in "ab"]
        feed.wait_for(feed.pushed)
        assert feed.store.state().epoch == 2 * turn + 1
        pair.sort(key=lambda worker: not is_holder(feed.store, worker))
        for epoch, worker in enumerate(pair, 2 * turn + 1):
            wait_until(lambda worker=worker: is_holder(feed.store, worker))
            wait_until(lambda epoch=epoch: feed.store.state().epoch == epoch)
            worker.stopped()
    told(f"{starts} pairs started together", feed.check())
