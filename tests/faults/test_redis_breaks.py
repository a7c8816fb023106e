"""Redis restarts, is killed, loses the end of its file, refuses: the same bytes once it is well."""

import random
import time

import pytest
import redis
from session_steps import advance, answer_batch
from structlog.testing import capture_logs
from world import COUNT, drain, finished, outcome, push, session, wait_until

from workers.broker.client import client
from workers.broker.store import Store
from workers.errors import AccessDenied, StateLost

ALWAYS = pytest.mark.parametrize("server", ["always"], indirect=True)


def answered(store, goal):
    wait_until(lambda: store.length(store.keys.out) >= goal)


def test_a_redis_that_restarts_is_found_again_within_ten_seconds(server, direct, at_work, expected):
    with capture_logs() as logs:
        _, errors = at_work(batch=2)
        for goal in (30, 90):
            answered(direct, goal)
            server.stop()
            server.start()
            up = time.monotonic()
            answered(direct, goal + 10)
            assert time.monotonic() - up < 10.0
    events = [log["event"] for log in logs]
    assert events.count("redis answers again") >= 2
    assert events.index("redis answers again") > events.index(
        "redis refuses or does not answer; trying again"
    )
    assert finished(direct, COUNT, errors) == expected
    assert direct.state().epoch == 1


@ALWAYS
def test_a_redis_that_is_killed_with_fsync_always_loses_nothing(server, direct, at_work, expected):
    _, errors = at_work(batch=2)
    for goal in (20, 70, 120):
        answered(direct, goal)
        server.kill()
        server.start()
        assert direct.length(direct.keys.out) >= goal
    assert finished(direct, COUNT, errors) == expected


def test_an_append_only_file_cut_in_the_last_commits_is_read_again_and_completed(
    server, direct, examples, expected
):
    """Input and answers go together: both stand in the file, in the order they came."""
    choose = random.Random(1)
    running = session(direct, batch=5, snapshot_every=40)
    for goal in range(40, COUNT, 40):
        drain(running, goal)
        size = server.append_only_file.stat().st_size
        server.stop()
        with server.append_only_file.open("r+b") as file:
            file.truncate(size - choose.randint(1, 20_000))
        server.start()
        refill(direct, examples)
    drain(running, COUNT)
    assert outcome(direct) == expected


def refill(store, examples):
    """Push again what the producer finds missing."""
    last = store.call("XREVRANGE", store.keys.input, "+", "-", "COUNT", 1)
    held = int(last[0][0].split(b"-")[0]) if last else 0
    push(store, examples[held:], held + 1)


def test_a_worker_whose_state_went_back_to_nothing_stops_and_begins_nothing(server, direct):
    """A file cut before the feed began is a feed that is gone."""
    running = session(direct, batch=5)
    drain(running, 40)
    server.stop()
    server.append_only_file.write_bytes(b"")
    server.start()
    with pytest.raises(StateLost, match="gone"):
        drain(running, 41)  # the first turn only finds the connection closed, and waits for input
    assert direct.types() == {}


def read_only(store):
    store.call("REPLICAOF", "127.0.0.1", "1")
    return lambda: store.call("REPLICAOF", "NO", "ONE")


def full(store):
    store.call("CONFIG", "SET", "maxmemory", "1")
    return lambda: store.call("CONFIG", "SET", "maxmemory", "0")


def without_replicas(store):
    store.call("CONFIG", "SET", "min-replicas-to-write", "1")
    return lambda: store.call("CONFIG", "SET", "min-replicas-to-write", "0")


@pytest.mark.parametrize("breaks", [read_only, full, without_replicas])
def test_a_redis_that_refuses_writes_gets_no_part_of_a_commit_and_all_of_it_later(
    direct, at_work, expected, breaks
):
    store, errors = at_work(batch=2)
    answered(direct, 40)
    failures = store.failures
    with capture_logs() as lines:
        heals = breaks(direct)
        wait_until(lambda: store.failures > failures)
        before = direct.state().position.seq
        assert direct.length(direct.keys.out) == before
        time.sleep(0.3)
        assert direct.state().position.seq == before < COUNT
        heals()
        assert finished(direct, COUNT, errors) == expected
    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert len(warnings) <= store.failures - failures, "one line for each step of the back-off"
    assert "redis answers again" in [line["event"] for line in lines]


def test_a_busy_redis_is_waited_for(server, direct, at_work, expected):
    """Some other client's script that does not end; BUSY is what everybody else is told."""
    store, errors = at_work(batch=2)
    answered(direct, 40)
    direct.call("CONFIG", "SET", "lua-time-limit", "50")
    with Store(server.url, "other") as other:
        other._connection.timeout = 0.3
        with pytest.raises(Exception, match="does not answer"):
            other.call("EVAL", "while true do end", 0)
    failures = store.failures
    wait_until(lambda: store.failures > failures)
    direct.call("SCRIPT", "KILL")
    assert finished(direct, COUNT, errors) == expected


def test_a_redis_that_is_loading_is_waited_for(server, direct, at_work, expected):
    _, errors = at_work(batch=2)
    answered(direct, 40)
    ballast = "for i = 1, 4000 do redis.call('SET', 'ballast-' .. i, i) end"
    direct.call("EVAL", ballast, 0)
    server.stop()
    server.launch("--key-load-delay", "500")  # microseconds
    wait_until(lambda: is_loading(server))
    assert finished(direct, COUNT, errors) == expected


def is_loading(server):
    try:
        with client(server.url) as connected:
            connected.get("ballast-1")
    except redis.BusyLoadingError:
        return True
    except redis.ConnectionError:
        pass
    return False


def test_scripts_flushed_between_all_commits_are_sent_again(direct, expected):
    running = session(direct)
    while running.position.seq < COUNT:
        direct.call("SCRIPT", "FLUSH")
        advance(running)
    assert outcome(direct) == expected


@pytest.mark.parametrize("command", ["xadd", "set"])
def test_a_permission_taken_away_stops_the_worker_with_nothing_half_written(
    server, direct, expected, command
):
    """It is fatal, with the command named; given back, the next worker goes on."""
    direct.call("ACL", "SETUSER", "worker", "on", ">secret", "~*", "+@all")
    url = server.url.replace("//", "//worker:secret@")
    with Store(url, "f", block_ms=20) as store:
        running = session(store, snapshot_every=50)
        drain(running, 40)
        direct.call("ACL", "SETUSER", "worker", f"-{command}")
        with pytest.raises(AccessDenied) as denied:
            drain(running, COUNT)
        assert "secret" not in str(denied.value)
        assert direct.length(direct.keys.out) == 40
        direct.call("ACL", "SETUSER", "worker", f"+{command}")
        drain(session(store), COUNT)
    assert outcome(direct) == expected


def test_a_bookmark_that_others_destroy_and_move_is_put_back_by_every_commit(direct, expected):
    running, key = session(direct), direct.keys.input
    with capture_logs() as lines:
        while running.position.seq < COUNT:
            if running.position.seq % 20:
                direct.call("XGROUP", "DESTROY", key, "osvm")
            elif running.position.seq:
                direct.call("XGROUP", "SETID", key, "osvm", "$")
            answer_batch(running)
    assert lines == [], "however often it happens, the log does not fill up"
    (group,) = direct.call("XINFO", "GROUPS", key)
    assert running.position.cursor in (group.values() if isinstance(group, dict) else group)
    assert outcome(direct) == expected
