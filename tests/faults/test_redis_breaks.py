"""Redis restarts, is killed, loses the end of its file, refuses: the same bytes once it is well."""

import random
from contextlib import contextmanager

import pytest
import redis
from session_steps import advance, answer_batch
from structlog.testing import capture_logs
from threaded_feed import refill
from world import COUNT, drain, wait_until

from workers.broker.client import client
from workers.errors import AccessDenied, StateLost


@pytest.mark.parametrize(
    ("server", "ends"), [("no", "stop"), ("always", "kill")], indirect=["server"]
)
def test_a_redis_that_restarts_or_is_killed_is_found_again_within_ten_seconds_and_lost_nothing(
    server, direct, at_work, expected, ends
):
    with capture_logs() as logs:
        worker = at_work()
        for goal in (30, 70, 120):
            worker.wait_for(goal)
            getattr(server, ends)()
            server.start()
            assert direct.seq >= goal
            worker.wait_for(goal + 10, 10.0)
        worker.wait_for(COUNT)
    events = [log["event"] for log in logs]
    assert events.count("redis answers again") >= 3
    assert events.index("redis answers again") > events.index(
        "redis refuses or does not answer; trying again"
    )
    assert direct.outcome() == expected
    assert direct.store.state().epoch == 1


def test_an_append_only_file_cut_in_the_last_commits_is_read_again_and_completed(
    server, direct, expected
):
    """Input and answers go together: both stand in the file, in the order they came."""
    choose = random.Random(1)
    running = direct.session(batch=5, snapshot_every=40)
    for goal in range(40, COUNT, 40):
        drain(running, goal)
        size = server.append_only_file.stat().st_size
        server.stop()
        with server.append_only_file.open("r+b") as file:
            file.truncate(size - choose.randint(1, 20_000))
        server.start()
        refill(direct.store, direct.entries)
    drain(running, COUNT)
    assert direct.outcome() == expected


def test_a_worker_whose_state_went_back_to_nothing_stops_and_begins_nothing(server, direct):
    """A file cut before the feed began is a feed that is gone."""
    running = direct.answer(40, batch=5)
    server.stop()
    server.append_only_file.write_bytes(b"")
    server.start()
    with pytest.raises(StateLost, match="gone"):
        drain(running, 41)  # the first turn only finds the connection closed, and waits for input
    assert direct.store.types() == {}


@contextmanager
def configured(direct, name, value, healthy):
    direct.store.call("CONFIG", "SET", name, value)
    yield
    direct.store.call("CONFIG", "SET", name, healthy)


def full(server, direct):
    return configured(direct, "maxmemory", "1", "0")


def without_replicas(server, direct):
    return configured(direct, "min-replicas-to-write", "1", "0")


@contextmanager
def read_only(server, direct):
    direct.store.call("REPLICAOF", "127.0.0.1", "1")
    yield
    direct.store.call("REPLICAOF", "NO", "ONE")


@contextmanager
def busy(server, direct):
    """Some other client's script does not end; BUSY is what everybody else is told."""
    direct.store.call("CONFIG", "SET", "lua-time-limit", "50")
    other = direct.open()
    other._connection.timeout, other._connection.patience = 0.3, 0.0
    with pytest.raises(Exception, match="does not answer"):
        other.call("EVAL", "while true do end", 0)
    yield
    direct.store.call("SCRIPT", "KILL")


@contextmanager
def loading(server, direct):
    ballast = "for i = 1, 4000 do redis.call('SET', 'ballast-' .. i, i) end"
    direct.store.call("EVAL", ballast, 0)
    server.stop()
    server.launch("--key-load-delay", "500")  # microseconds
    wait_until(lambda: is_loading(server))
    yield


def is_loading(server):
    try:
        with client(server.url) as connected:
            connected.get("ballast-1")
    except redis.BusyLoadingError:
        return True
    except redis.ConnectionError:
        pass
    return False


@pytest.mark.parametrize("breaks", [read_only, full, without_replicas, busy, loading])
def test_a_redis_that_refuses_gets_no_part_of_a_commit_and_all_of_it_later(
    server, direct, at_work, expected, breaks
):
    worker = at_work()
    worker.wait_for(40)
    with capture_logs() as lines, breaks(server, direct):
        failures = worker.store.failures
        wait_until(lambda: worker.store.failures > failures)
        if breaks not in (busy, loading):  # they refuse this look, too
            before = direct.seq
            assert direct.store.length(direct.store.keys.out) == before < COUNT
            wait_until(lambda: worker.store.failures > failures + 2)
            assert direct.seq == before
    with capture_logs() as later:
        worker.wait_for(COUNT)
    assert direct.outcome() == expected
    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert len(warnings) <= worker.store.failures, "one line for each step of the back-off"
    assert "redis answers again" in [line["event"] for line in lines + later]


def test_scripts_flushed_between_all_commits_are_sent_again(direct, expected):
    running = direct.session()
    while running.position.seq < COUNT:
        direct.store.call("SCRIPT", "FLUSH")
        advance(running)
    assert direct.outcome() == expected


@pytest.mark.parametrize("command", ["xadd", "set"])
def test_a_permission_taken_away_stops_the_worker_with_nothing_half_written(
    direct, expected, command
):
    """It is fatal, with the command named; given back, the next worker goes on."""
    direct.store.call("ACL", "SETUSER", "worker", "on", ">secret", "~*", "+@all")
    store = direct.open(direct.url.replace("//", "//worker:secret@"))
    running = direct.session(store, snapshot_every=50)
    drain(running, 40)
    direct.store.call("ACL", "SETUSER", "worker", f"-{command}")
    with pytest.raises(AccessDenied) as denied:
        drain(running, COUNT)
    assert "secret" not in str(denied.value)
    assert direct.store.length(direct.store.keys.out) == 40
    direct.store.call("ACL", "SETUSER", "worker", f"+{command}")
    drain(direct.session(store), COUNT)
    assert direct.outcome() == expected


def test_a_bookmark_that_others_destroy_and_move_is_put_back_by_every_commit(direct, expected):
    running, key = direct.session(), direct.store.keys.input
    with capture_logs() as lines:
        while running.position.seq < COUNT:
            if running.position.seq % 20:
                direct.store.call("XGROUP", "DESTROY", key, "osvm")
            elif running.position.seq:
                direct.store.call("XGROUP", "SETID", key, "osvm", "$")
            answer_batch(running)
    assert lines == [], "however often it happens, the log does not fill up"
    (group,) = direct.store.call("XINFO", "GROUPS", key)
    assert running.position.cursor in (group.values() if isinstance(group, dict) else group)
    assert direct.outcome() == expected
