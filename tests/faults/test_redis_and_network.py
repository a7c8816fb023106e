"""Redis and the network fail in every way: no part of a commit, and the same bytes in the end."""

import random
import threading
from contextlib import closing, contextmanager

import pytest
import redis
from fault_redis import Proxy
from session_steps import advance, answer_batch
from structlog.testing import capture_logs
from threaded_feed import refill
from world import COUNT, drain, wait_until

from workers.broker import permissions
from workers.broker.client import client
from workers.broker.store import _COMMIT
from workers.errors import AccessDenied, StateLost, Stopped, Unavailable
from workers.feed.keys import FeedKeys
from workers.stop import Stop

PATIENCE = 0.5
"""Seconds for a reply, here."""

RECOVERY = 10.0
"""Seconds, as docs/guarantees.md says: it takes two or three on a machine at rest."""


@pytest.fixture
def proxy(server):
    with closing(Proxy(server.port)) as proxy:
        yield proxy


@pytest.fixture
def url(proxy):
    return f"redis://127.0.0.1:{proxy.port}/0"


@pytest.fixture
def through(url, direct):
    return direct.open(url, retry_timeout=10.0)


# Between any two steps of a session


def flush_the_scripts(direct):
    direct.store.call("SCRIPT", "FLUSH")


def destroy_the_bookmark(direct):
    direct.store.call("XGROUP", "DESTROY", direct.store.keys.input, "osvm")


def move_the_bookmark(direct):
    if direct.seq:
        direct.store.call("XGROUP", "SETID", direct.store.keys.input, "osvm", "$")


@pytest.mark.parametrize(
    "strikes",
    [_COMMIT.sha1.encode(), b"XREAD", b"\r\n", flush_the_scripts, destroy_the_bookmark,
     move_the_bookmark],
    ids=["cut commits", "cut reads", "cut anything", "scripts", "no bookmark", "moved bookmark"],
)  # fmt: skip
def test_what_strikes_at_every_step_changes_no_byte(proxy, through, direct, expected, strikes):
    """A commit whose reply is cut is answered ALREADY; a cut read begins at the cursor again."""
    running, is_cut = direct.session(through, batch=20, snapshot_every=40), not callable(strikes)
    step = advance if is_cut else answer_batch  # the last step commits
    with capture_logs() as lines:
        while running.position.seq < COUNT:
            if is_cut:
                proxy.cuts[:] = [strikes]
            else:
                strikes(direct)
            step(running)
            if not is_cut:
                check_bookmark(running, direct)
    proxy.cuts.clear()
    running.finish_commit()
    assert direct.outcome() == expected
    assert direct.store.state().epoch == 1, "a lost reply is no reason to take over again"
    if is_cut:
        assert proxy.cut >= COUNT // 20 - 1  # the last commit may pass uncut
    else:
        assert lines == [], "however often it happens, the log does not fill up"
    check_bookmark(running, direct)


def check_bookmark(running, direct):
    (group,) = direct.store.call("XINFO", "GROUPS", direct.store.keys.input)
    assert running.position.cursor in (group.values() if isinstance(group, dict) else group)


@pytest.mark.parametrize("seconds", [0.2, pytest.param(2.0, marks=pytest.mark.chaos)])
def test_a_slow_network_makes_the_worker_slow_and_nothing_else(
    proxy, through, direct, expected, seconds
):
    proxy.delay = seconds
    drain(direct.session(through, batch=80), COUNT)
    assert through.failures == 0
    assert direct.outcome() == expected


# For a while, under a worker at work


@contextmanager
def restarted(end, server):
    end()
    yield
    server.start()


def stopped(direct, server, proxy):
    return restarted(server.stop, server)


def killed(direct, server, proxy):
    return restarted(server.kill, server)


@contextmanager
def loading(direct, server, proxy):
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


@contextmanager
def busy(direct, server, proxy):
    """Some other client's script does not end; BUSY is what everybody else is told."""
    direct.store.call("CONFIG", "SET", "lua-time-limit", "50")
    other = direct.open()
    other._connection.timeout, other._connection.retry_timeout = 0.3, 0.0
    with pytest.raises(Exception, match="does not answer"):
        other.call("EVAL", "while true do end", 0)
    yield
    direct.store.call("SCRIPT", "KILL")


@contextmanager
def read_only(direct, server, proxy):
    direct.store.call("REPLICAOF", "127.0.0.1", "1")
    yield
    direct.store.call("REPLICAOF", "NO", "ONE")


@contextmanager
def full(direct, server, proxy, name="maxmemory"):
    direct.store.call("CONFIG", "SET", name, "1")
    yield
    direct.store.call("CONFIG", "SET", name, "0")


def without_replicas(*given):
    return full(*given, "min-replicas-to-write")


@contextmanager
def half_open(direct, server, proxy):
    proxy.forget()
    yield


@contextmanager
def swallowed(direct, server, proxy):
    proxy.is_black_hole = True
    yield
    proxy.is_black_hole = False
    proxy.forget()


REFUSING = [read_only, full, without_replicas, swallowed]
"""Meanwhile a look at Redis, past the network, shows what is there."""

AWAY = [stopped, killed, loading, busy, half_open, *REFUSING]


@pytest.mark.parametrize(
    ("server", "breaks"),
    [("always" if one is killed else "no", one) for one in AWAY],
    indirect=["server"],
    ids=[one.__name__ for one in AWAY],
)
def test_a_commit_is_whole_or_absent_whatever_fails(
    server, proxy, url, direct, at_work, expected, breaks
):
    """The same process goes on within its time-out and back-off; what was committed is there."""
    with capture_logs() as lines:
        worker = at_work(url, timeout=PATIENCE)
        for goal in (40, 120):
            worker.wait_for(goal)
            failures, accepted = worker.store.failures, proxy.accepted
            with breaks(direct, server, proxy):
                wait_until(lambda past=failures: worker.store.failures > past)  # it has given up
                if breaks in REFUSING:
                    stands = direct.seq
                    assert direct.store.length(direct.store.keys.out) == stands < COUNT
                    wait_until(lambda past=failures: worker.store.failures > past + 2)
                    assert direct.seq == stands
            assert direct.seq >= goal
            stands = len(worker.confirmed)
            worker.wait_for(min(stands + 3, COUNT), RECOVERY)
            assert proxy.accepted > accepted or breaks in (*REFUSING, busy)
        worker.wait_for(COUNT)
    assert direct.outcome() == expected
    assert direct.store.state().epoch == 1
    events = [line["event"] for line in lines]
    refused = "redis refuses or does not answer; trying again"
    assert events.index(refused) < events.index("redis answers again")
    assert events.count("redis answers again") >= 2
    if breaks in REFUSING:  # else the looks at it are told as well
        warnings = [line for line in lines if line["log_level"] == "warning"]
        assert len(warnings) <= worker.store.failures, "one line for each step of the back-off"


def test_what_a_cut_file_lost_is_answered_again(server, direct, expected):
    """Input and answers go together: both stand in the file, in the order they came."""
    choose = random.Random(1)
    running = direct.session(batch=5, snapshot_every=40)
    for goal in range(40, COUNT, 40):
        drain(running, goal)
        server.stop()
        server.cut(choose.randint(1, 20_000))
        server.start()
        refill(direct.store, direct.entries)
    drain(running, COUNT)
    assert direct.outcome() == expected


def test_a_worker_whose_state_went_back_to_nothing_stops_and_begins_nothing(server, direct):
    running = direct.answer(40, batch=5)
    server.stop()
    server.append_only_file.write_bytes(b"")
    server.start()
    with pytest.raises(StateLost, match="gone"):
        drain(running, 41)  # the first turn only finds the connection closed, and waits for input
    assert direct.store.types() == {}


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


def test_the_check_of_permissions_waits_for_redis_as_long_as_it_is_told_to(proxy, url):
    commands, reachable = permissions.of_worker(FeedKeys("f")), proxy.target
    proxy.target = 1  # nobody listens there
    with pytest.raises(Unavailable):
        permissions.check(url, commands)
    stop = Stop()
    stop.request()
    with pytest.raises(Stopped):
        permissions.check(url, commands, stop, retry_timeout=30.0)
    back = threading.Timer(0.3, lambda: setattr(proxy, "target", reachable))
    back.start()
    permissions.check(url, commands, retry_timeout=30.0)
    back.join()
