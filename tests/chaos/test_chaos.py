"""Workers killed, paused and started together, and a Redis killed under them: the same bytes."""

import random
import signal
import time

import pytest
from fault_redis import Server
from fault_workers import is_holder
from world import wait_until

# Each test injects 20 to 200 faults, and waits for progress between two.
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]

SEED = 5
FENCED = 3


@pytest.fixture
def server(tmp_path):
    """A Redis that synchronises always."""
    with Server(tmp_path / "redis", "always") as server:
        yield server


def test_kills_at_random_moments(trial, times, told):
    """Each after real progress: a random number of entries further than the worker before it."""
    choose, kills, step = random.Random(SEED), times["KILLS"], 25
    feed = trial(kills * step + 100)
    for _ in range(kills):
        goal = feed.pushed + choose.randint(1, step)
        feed.push(step)
        batch, budget = choose.choice((1, 3, 7, 64)), choose.choice((30, 200))
        worker = feed.start("--batch", batch, "--replay-budget", budget)
        feed.wait_for(goal)
        time.sleep(choose.random() * 0.01)
        assert worker.kill() == -signal.SIGKILL
    feed.push(100)
    position = feed.check(feed.start())
    assert feed.store.state().epoch == kills + 1
    told(f"{kills} kills", position)


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


@pytest.mark.parametrize("breaks", ["stop", "kill"])
def test_a_redis_that_goes_away_and_comes_back(server, trial, times, told, breaks):
    """Stopped in order or killed, with fsync always; the worker lives through all of it."""
    choose, count, step = random.Random(SEED), times["REDIS"], 60
    feed = trial(count * step, server.url, retry_timeout=20.0)
    worker = feed.start("--batch", 2, "--replay-budget", 100)
    for _ in range(count):
        feed.wait_for(feed.push(step) - choose.randrange(step))
        getattr(server, breaks)()
        server.start()
    position = feed.check(worker)
    assert feed.store.state().epoch == 1
    told(f"{count} times Redis {breaks}, fsync always", position)


def test_an_append_only_file_cut_at_any_byte(server, trial, times, told):
    """The producer pushes again what the file lost; the worker notices and reads again."""
    choose, cuts, step = random.Random(SEED), times["CUTS"], 30
    feed = trial(cuts * step, server.url, retry_timeout=20.0)
    worker = feed.start("--batch", 3, "--replay-budget", 50)
    for _ in range(cuts):
        feed.wait_for(feed.push(step))
        server.stop()
        server.cut(choose.randint(1, 8000))
        server.start()
        last = feed.store.call("XREVRANGE", feed.store.keys.input, "+", "-", "COUNT", 1)
        feed.pushed = int(last[0][0].split(b"-")[0])
    feed.push(cuts * step - feed.pushed)
    told(f"{cuts} cuts of the append-only file", feed.check(worker))
