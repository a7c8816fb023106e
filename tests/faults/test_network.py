"""A bad network between worker and Redis: every answer once, and the same as on a good one."""

import threading
import time

import pytest
from fault_proxy import Proxy
from session_steps import advance
from world import COUNT, drain, finished, outcome, session, wait_until

from workers.broker import permissions
from workers.broker.backoff import CAP
from workers.broker.store import _COMMIT, Store
from workers.errors import Stopped, Unavailable
from workers.feed.keys import FeedKeys
from workers.stop import Stop

COMMIT = _COMMIT.sha1.encode()

PATIENCE = 0.5
"""Seconds for a reply, here."""

RECOVERY = 2 * (PATIENCE + CAP) + 1.0
"""Either connection gives up and steps back once; a second for the work and a busy machine."""


@pytest.fixture
def proxy(server):
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def url(proxy):
    return f"redis://127.0.0.1:{proxy.port}/0"


@pytest.fixture
def through(url, direct):
    """A store that reaches Redis through the proxy."""
    with Store(url, "f", patience=10.0, block_ms=20) as store:
        yield store


def test_a_commit_whose_reply_is_cut_is_answered_already_and_changes_no_byte(
    proxy, through, direct, expected
):
    running = session(through)
    drain(running, 50)
    for _ in range(3):
        proxy.cuts.append(COMMIT)
        drain(running, running.position.seq + 10)
    assert proxy.cut == 3
    drain(running, COUNT)
    assert outcome(direct) == expected
    assert direct.state().epoch == 1, "a lost reply is no reason to take the feed over again"


def test_a_read_whose_reply_is_cut_is_read_again_from_the_cursor(proxy, through, direct, expected):
    running = session(through)
    for _ in range(3):
        proxy.cuts.append(b"XREAD")
        drain(running, running.position.seq + 10)
    assert proxy.cut == 3
    drain(running, COUNT)
    assert outcome(direct) == expected


def test_lines_cut_anywhere_change_no_byte(proxy, through, direct, expected):
    """Whatever the request: the next reply of the worker ends in the middle, again and again."""
    running = session(through, batch=7, snapshot_every=40)
    while running.position.seq < COUNT:
        proxy.cuts[:] = [b"\r\n"]
        advance(running)
    assert proxy.cut >= COUNT // 7
    proxy.cuts.clear()
    assert outcome(direct) == expected


def test_a_slow_network_makes_the_worker_slow_and_nothing_else(proxy, url, direct, expected):
    proxy.delay = 0.2
    with Store(url, "f", block_ms=20) as store:
        drain(session(store, batch=80), COUNT)
        assert store.failures == 0
    assert outcome(direct) == expected


@pytest.mark.chaos
def test_two_seconds_of_latency_make_the_worker_slow_and_nothing_else(proxy, url, direct, expected):
    proxy.delay = 2.0
    with Store(url, "f", block_ms=20) as store:
        drain(session(store, batch=80), COUNT)
        assert store.failures == 0
    assert outcome(direct) == expected


def test_half_open_connections_are_given_up_and_replaced(proxy, url, direct, at_work, expected):
    _, errors = at_work(url, timeout=PATIENCE, batch=2)
    for goal in (40, 120):
        wait_until(lambda goal=goal: direct.length(direct.keys.out) >= goal)
        accepted, stands = proxy.accepted, direct.length(direct.keys.out)
        proxy.forget()
        is_back = lambda n=stands: direct.length(direct.keys.out) > n + 2  # noqa: E731  (one use)
        wait_until(is_back, RECOVERY)
        assert proxy.accepted > accepted
    assert finished(direct, COUNT, errors) == expected


def test_a_black_hole_stops_the_feed_and_it_goes_on_when_the_hole_closes(
    proxy, url, direct, at_work, expected
):
    _, errors = at_work(url, timeout=PATIENCE, batch=2)
    wait_until(lambda: direct.length(direct.keys.out) >= 40)
    proxy.is_black_hole = True
    time.sleep(1.5)
    stands = direct.state().position
    time.sleep(0.5)
    assert direct.state().position == stands
    assert stands.seq < COUNT
    proxy.is_black_hole = False
    proxy.forget()
    wait_until(lambda: direct.state().position.seq > stands.seq, RECOVERY)
    assert finished(direct, COUNT, errors) == expected


def test_a_worker_on_a_line_that_hangs_is_fenced_when_it_comes_back(
    proxy, url, direct, at_work, expected
):
    _, errors = at_work(url, timeout=PATIENCE, batch=2)
    wait_until(lambda: direct.length(direct.keys.out) >= 40)
    proxy.is_black_hole = True
    successor = session(direct)
    drain(successor, COUNT)
    proxy.is_black_hole = False
    proxy.forget()
    wait_until(lambda: errors, 10.0)
    assert type(errors[0]).__name__ == "Fenced"
    assert outcome(direct) == expected


def test_the_check_of_permissions_waits_for_redis_as_long_as_it_is_told_to(proxy, url):
    commands, reachable = permissions.of_worker(FeedKeys("f")), proxy.target
    proxy.target = 1  # nobody listens there
    with pytest.raises(Unavailable):
        permissions.check(url, commands)
    stop = Stop()
    stop.request()
    with pytest.raises(Stopped):
        permissions.check(url, commands, stop, patience=30.0)

    def reach():
        proxy.target = reachable

    back = threading.Timer(0.3, reach)
    back.start()
    permissions.check(url, commands, patience=30.0)
    back.join()
