"""Leases: one thread renews a hundred in a call, each decides alone, and no more than who waits."""

import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from processes import Process
from structlog.testing import capture_logs
from world import wait_until

from workers.broker.leases import Holder, Leases, holding, process_start
from workers.broker.store import Store
from workers.errors import WrongKeyType
from workers.feed.keys import FeedKeys


@pytest.fixture
def leases(redis_url):
    with Leases(redis_url, "many", 3.0, wake=lambda: None, feeds_per_call=3) as leases:
        yield leases


def holder(store, feed):
    found = Holder.parse(store.call("GET", FeedKeys(feed).lease) or b"")
    return found and found.name


def lapses_at(store, feed):
    return time.monotonic() + store.call("PTTL", FeedKeys(feed).lease) / 1000


def test_many_leases_are_held_beyond_their_time_and_given_up_at_the_end(redis_url, store):
    feeds = [f"{store.keys.feed}-{i}" for i in range(10)]
    with Leases(redis_url, "many", 3.0, wake=lambda: None, feeds_per_call=3) as leases:
        asked = [leases.request(feed) for feed in feeds]
        wait_until(lambda: all(lease.is_held for lease in asked))
        assert {lease.feed for lease in leases.take_changes()} == set(feeds)
        before = {feed: lapses_at(store, feed) for feed in feeds}
        wait_until(lambda: all(lapses_at(store, feed) > before[feed] + 0.5 for feed in feeds))
        assert {holder(store, feed) for feed in feeds} == {"many"}
        assert not any(lease.pop_loss() for lease in asked)
        assert leases.take_changes() == []
        leases.release(asked[:1])
        assert holder(store, feeds[0]) is None
        assert holder(store, feeds[1]) == "many"
    assert {holder(store, feed) for feed in feeds} == {None}


def test_a_lease_of_another_is_waited_for_and_the_others_are_held_meanwhile(
    redis_url, store, leases
):
    feeds = [f"{store.keys.feed}-{i}" for i in range(4)]
    with holding(redis_url, feeds[2], "other", 5.0):
        asked = [leases.request(feed) for feed in feeds]
        wait_until(lambda: sum(lease.is_held for lease in asked) == 3)
        assert not asked[2].is_held
        wait_until(lambda: asked[2].holder == "other")
    wait_until(lambda: asked[2].is_held)


def test_a_lease_that_was_lost_is_told_and_taken_again(store, leases):
    lease = leases.request(store.keys.feed)
    wait_until(lambda: lease.is_held)
    leases.take_changes()
    store.call("DEL", lease.key)
    wait_until(lambda: holder(store, store.keys.feed) == "many")
    assert lease.pop_loss()
    assert leases.take_changes() == [lease]


def test_a_key_of_another_type_is_told_and_the_others_are_held(store, leases):
    bad, good = f"{store.keys.feed}-bad", f"{store.keys.feed}-good"
    store.call("SADD", FeedKeys(bad).lease, "x")
    refused, held = leases.request(bad), leases.request(good)
    wait_until(lambda: held.is_held and refused.problem is not None)
    assert FeedKeys(bad).lease in refused.problem
    assert not refused.is_held


def test_a_key_of_another_type_is_held_by_nobody(redis_url, store):
    store.call("SADD", store.keys.lease, "x")
    with (
        pytest.raises(WrongKeyType, match="holds another type"),
        holding(redis_url, store.keys.feed, "first", 0.6),
    ):
        pass


def test_a_dead_holder_on_this_host_is_replaced_at_once(redis_url, store):
    with Process([sys.executable, "-c", ""]) as process:
        process.wait()
    dead = replace(Holder.here("dead"), pid=process.pid)
    store.call("SET", store.keys.lease, dead.encode(), "PX", 60_000)
    with holding(redis_url, store.keys.feed, "heir", 5.0):
        assert holder(store, store.keys.feed) == "heir"


@pytest.mark.parametrize("held", ["elsewhere", b"\xff garbage"])
def test_a_holder_elsewhere_and_a_text_that_is_none_are_waited_for(redis_url, store, held):
    if held == "elsewhere":
        held = replace(Holder.here("away"), host="elsewhere", pid=2**22 - 1).encode()
    began = time.monotonic()
    store.call("SET", store.keys.lease, held, "PX", 500)
    with holding(redis_url, store.keys.feed, "heir", 2.0):
        assert time.monotonic() - began > 0.4
        assert holder(store, store.keys.feed) == "heir"


def test_a_lease_that_another_took_is_reported_lost_and_not_freed(redis_url, store):
    other = replace(Holder.here("other"), host="elsewhere")
    with holding(redis_url, store.keys.feed, "first", 2.0) as first:
        store.call("SET", store.keys.lease, other.encode(), "PX", 60_000)
        wait_until(first.pop_loss)
    assert holder(store, store.keys.feed) == "other"


def test_a_lease_that_is_released_while_it_is_acquired_is_free_again(redis_url, store):
    leases = Leases(redis_url, "many", 3.0, wake=lambda: None)  # its thread is not started
    asked = leases.request(store.keys.feed)
    connection = leases._connection()
    leases.release([asked])
    leases._acquire(connection, [(asked, b"")])
    connection.close()
    assert not asked.is_held
    assert holder(store, store.keys.feed) is None


def test_leases_that_could_not_be_renewed_and_are_again_say_both(own_redis, feed):
    url = own_redis.url
    with Store(url, feed) as store, holding(url, feed, "first", 0.3) as lease:
        with capture_logs() as logs:
            store.call("ACL", "SETUSER", "default", "-eval", "-evalsha")
            wait_until(lambda: any(log["log_level"] == "warning" for log in logs))
            store.call("ACL", "SETUSER", "default", "+eval", "+evalsha")
            wait_until(lambda: any(log["log_level"] == "info" for log in logs))
        events = [log["event"] for log in logs]
        assert events[0] == "leases are not renewed"
        assert "leases are renewed again" in events
        wait_until(lambda: lease.is_held)


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


def test_two_holders_of_one_process_are_told_apart():
    one, two = Holder.here("x"), Holder.here("x")
    assert one.pid == two.pid == os.getpid()
    assert one.token != two.token
    assert Holder.parse(one.encode()) == one
