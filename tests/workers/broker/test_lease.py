"""The lease: who runs a feed, who may take it, and that it decides nothing but that."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
from posted_alarms import settled
from processes import Process
from structlog.testing import capture_logs

from workers.broker.lease import Holder, Lease, process_start
from workers.errors import Stopped, Unavailable
from workers.stop import Stop


@pytest.fixture
def lease(redis_url, store):
    """Make leases on one feed, and release them after the test."""
    made = []

    def make(name, seconds=0.6):
        made.append(Lease(redis_url, store.keys.lease, name, seconds))
        return made[-1]

    yield make
    for each in made:
        each.release()


def holder(store):
    return Holder.parse(store.call("GET", store.keys.lease) or b"")


def test_a_lease_is_held_renewed_and_released(store, lease):
    first = lease("first")
    first.acquire(Stop())
    time.sleep(1.0)
    assert holder(store).name == "first", "renewed beyond its 0.6 seconds"
    assert 0 < store.call("PTTL", store.keys.lease) <= 600
    assert not first.pop_loss()
    first.release()
    assert holder(store) is None


def test_a_second_worker_waits_until_the_first_releases(store, lease):
    first, second = lease("first"), lease("second")
    first.acquire(Stop())
    waiting = threading.Thread(target=second.acquire, args=(Stop(),))
    waiting.start()
    time.sleep(0.8)
    assert holder(store).name == "first"
    first.release()
    waiting.join(5.0)
    assert holder(store).name == "second"


def test_a_stop_ends_the_wait(lease):
    lease("first").acquire(Stop())
    stop = Stop()
    stop.request()
    with pytest.raises(Stopped):
        lease("second").acquire(stop)


def test_a_dead_holder_on_this_host_is_replaced_at_once(store, lease):
    with Process([sys.executable, "-c", ""]) as process:
        process.wait()
    dead = replace(Holder.here("dead"), pid=process.pid)
    store.call("SET", store.keys.lease, dead.encode(), "PX", 60_000)
    lease("heir").acquire(Stop())
    assert holder(store).name == "heir"


def test_a_holder_whose_process_id_was_given_to_another_process_is_dead():
    assert replace(Holder.here("x"), started="0").is_dead()
    assert not Holder.here("x").is_dead()


def test_a_zombie_process_is_dead():
    """It has ended, and nobody has asked how: its id is still taken."""
    process = Process([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    holder = replace(Holder.here("x"), pid=process.pid, started=process_start(process.pid))
    assert not holder.is_dead()
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ends, and is left as it is
    assert holder.is_dead()
    os.kill(process.pid, 0)
    process.wait()


def test_a_holder_on_another_host_is_waited_for(store, lease):
    away = replace(Holder.here("away"), host="elsewhere", pid=2**22 - 1)
    store.call("SET", store.keys.lease, away.encode(), "PX", 500)
    began = time.monotonic()
    lease("heir").acquire(Stop())
    assert time.monotonic() - began > 0.3
    assert holder(store).name == "heir"


def test_a_lease_that_another_took_is_reported_lost_and_not_freed(store, lease):
    first = lease("first")
    first.acquire(Stop())
    other = replace(Holder.here("other"), host="elsewhere")
    store.call("SET", store.keys.lease, other.encode(), "PX", 60_000)
    deadline = time.monotonic() + 5.0
    while not first.pop_loss():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    first.release()
    assert holder(store) == other


def test_a_lapsed_lease_that_nobody_took_is_taken_again_and_reported_lost(store, lease):
    first = lease("first")
    first.acquire(Stop())
    store.call("DEL", store.keys.lease)
    time.sleep(0.5)
    assert holder(store).name == "first"
    assert first.pop_loss()
    time.sleep(0.3)
    assert not first.pop_loss()


def test_a_lease_that_could_not_be_renewed_and_is_again_says_both(store, lease):
    first = lease("first", seconds=0.3)
    first.acquire(Stop())
    with capture_logs() as logs:
        store.call("DEL", store.keys.lease)
        store.call("HSET", store.keys.lease, "not", "ours")
        settled(lambda: logs)
        store.call("DEL", store.keys.lease)
        settled(lambda: holder(store) is not None and logs[-1]["log_level"] == "info")
    *warned, last = [log["event"] for log in logs]
    assert set(warned) == {"the lease is not renewed"}
    assert last == "the lease is renewed again"


def test_a_text_that_is_no_holder_is_waited_for_until_it_lapses(store, lease):
    store.call("SET", store.keys.lease, b"\xff garbage", "PX", 300)
    lease("heir").acquire(Stop())
    assert holder(store).name == "heir"


def test_an_unreachable_redis_is_reported_within_the_patience(tmp_path):
    lease = Lease(f"unix://{tmp_path}/none.sock", "key", "first")
    with pytest.raises(Unavailable, match=r"none\.sock"):
        lease.acquire(Stop(), patience=0.2)


def test_two_leases_of_one_process_are_told_apart():
    one, two = Holder.here("x"), Holder.here("x")
    assert one.pid == two.pid == os.getpid()
    assert one.token != two.token
    assert Holder.parse(one.encode()) == one
