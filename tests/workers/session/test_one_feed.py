"""The real command in processes of its own: killed, paused, stopped, replaced."""

import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from fault_redis import Server
from world import World, rows, wait_until

from workers.admin.reset import reset

COUNT = 600


@pytest.fixture
def make(embedded_url, feed):
    """Make worlds of further feeds, filled with one and the same stream."""
    with ExitStack() as opened:

        def fill(suffix, **changes):
            made = World(embedded_url, f"{feed}-{suffix}", retry_timeout=10.0, **changes)
            opened.enter_context(made).push(rows(COUNT))
            return made

        yield fill


@pytest.fixture
def alone(own_redis):
    """A feed of two examples on a server of its own."""
    with World(own_redis.url, "f") as world:
        world.entries = [["x", "[1]", "y", "a"]] * 3
        yield world


def killed(process):
    process.kill()
    process.wait()


def ended(worker, code, *said):
    """Wait until a worker ends with a code; it must have said this, in one line."""
    assert worker.wait() == code, worker.said
    assert "Traceback" not in worker.said
    for text in said:
        assert text in worker.said


def test_a_stop_frees_the_lease_and_leaves_no_process(make):
    world = make("stopped")
    worker = world.worker()
    world.wait_for(1)
    worker.send_signal(signal.SIGINT)
    ended(worker, 0)
    assert world.store.call("EXISTS", world.store.keys.lease) == 0
    state = world.store.state()
    assert state.snapshot.cursor == state.position.cursor


def test_a_standby_outlives_a_restart_of_redis_and_then_takes_over(tmp_path):
    server = Server(tmp_path / "redis", "always")
    try:
        with World(server.url, "f", retry_timeout=10.0) as world:
            world.push(1)
            first = world.worker()
            world.wait_for(1)
            second = world.worker()
            wait_until(lambda: "waiting for the lease" in second.said)
            server.stop()
            time.sleep(0.5)
            server.start()
            world.wait_for(world.push(1))
            assert world.store.state().epoch == 1, "one at a time"
            killed(first)
            world.wait_for(world.push(1))
            second.stopped()
            assert world.store.state().epoch == 2
    finally:
        server.kill()


def test_a_flushed_redis_exits_4(alone):
    worker = alone.worker()
    alone.wait_for(alone.push(1))
    alone.store.call("FLUSHALL")
    # Nothing arrives any more: the lease that is gone tells the worker.
    ended(worker, 4, "Redis was flushed")
    assert alone.store.call("KEYS", "*") == []


def test_a_flushed_feed_is_begun_by_no_later_worker_until_it_is_reset(alone):
    store = alone.store
    alone.push(1)
    alone.work()
    store.call("FLUSHALL")
    alone.push(1)
    ended(alone.worker(), 4, "online-svm reset f", "says that it was answered")
    assert store.call("KEYS", "*") == [store.keys.input.encode()]
    reset(store, with_input=False)
    alone.work(1)
    assert store.call("EXISTS", store.keys.restart_mark) == 0


def test_a_standby_begins_no_feed_whose_state_it_saw_while_it_waited(alone):
    """When it came there was none yet, so neither its first look nor an earlier process knows."""
    store = alone.store
    store.call("SET", store.keys.lease, "another")
    standby = alone.worker("--lease", 1)
    wait_until(lambda: "waiting for the lease" in standby.said)
    store.call("HSET", store.keys.state, "epoch", "1")
    noted = Path(os.environ["XDG_STATE_HOME"]) / "online-svm" / "feeds"
    wait_until(lambda: [*noted.rglob("f")], why="it has seen the state")
    store.call("FLUSHALL")
    alone.push(1)
    ended(standby, 4)
    assert store.call("KEYS", "*") == [store.keys.input.encode()]
