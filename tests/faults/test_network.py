"""A bad network between worker and Redis: every answer once, and the same as on a good one."""

import threading

import pytest
from fault_proxy import Proxy
from session_steps import advance
from world import COUNT, drain, wait_until

from workers.broker import permissions
from workers.broker.backoff import CAP
from workers.broker.store import _COMMIT
from workers.errors import Fenced, Stopped, Unavailable
from workers.feed.keys import FeedKeys
from workers.stop import Stop

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
    return direct.open(url, patience=10.0)


@pytest.mark.parametrize("cut", [_COMMIT.sha1.encode(), b"XREAD"], ids=["commit", "read"])
def test_a_commit_or_a_read_whose_reply_is_cut_is_repeated_and_changes_no_byte(
    proxy, through, direct, expected, cut
):
    """The commit is answered ALREADY; the read begins at the cursor again."""
    running = direct.session(through)
    for _ in range(3):
        drain(running, running.position.seq + 10)
        proxy.cuts.append(cut)
        drain(running, running.position.seq + 10)
    assert proxy.cut == 3
    drain(running, COUNT)
    assert direct.outcome() == expected
    assert direct.store.state().epoch == 1, "a lost reply is no reason to take over again"


def test_lines_cut_anywhere_change_no_byte(proxy, through, direct, expected):
    """Whatever the request: the next reply of the worker ends in the middle, again and again."""
    running = direct.session(through, batch=7, snapshot_every=40)
    while running.position.seq < COUNT:
        proxy.cuts[:] = [b"\r\n"]
        advance(running)
    assert proxy.cut >= COUNT // 7
    proxy.cuts.clear()
    assert direct.outcome() == expected


def check_slow(seconds, proxy, through, direct, expected):
    proxy.delay = seconds
    drain(direct.session(through, batch=80), COUNT)
    assert through.failures == 0
    assert direct.outcome() == expected


def test_a_slow_network_makes_the_worker_slow_and_nothing_else(proxy, through, direct, expected):
    check_slow(0.2, proxy, through, direct, expected)


@pytest.mark.chaos
def test_two_seconds_of_latency_make_the_worker_slow_and_nothing_else(
    proxy, through, direct, expected
):
    check_slow(2.0, proxy, through, direct, expected)


def test_half_open_connections_are_given_up_and_replaced(proxy, url, direct, at_work, expected):
    worker = at_work(url, timeout=PATIENCE)
    for goal in (40, 120):
        worker.wait_for(goal)
        accepted, stands = proxy.accepted, len(worker.confirmed)
        proxy.forget()
        worker.wait_for(stands + 3, RECOVERY)
        assert proxy.accepted > accepted
    worker.wait_for(COUNT)
    assert direct.outcome() == expected


def test_a_black_hole_stops_the_feed_and_it_goes_on_when_the_hole_closes(
    proxy, url, direct, at_work, expected
):
    worker = at_work(url, timeout=PATIENCE)
    worker.wait_for(40)
    proxy.is_black_hole = True
    failures = worker.store.failures
    wait_until(lambda: worker.store.failures > failures)  # so it has given up
    stands = direct.seq
    wait_until(lambda: worker.store.failures > failures + 1)
    assert direct.seq == stands < COUNT
    proxy.is_black_hole = False
    proxy.forget()
    wait_until(lambda: direct.seq > stands, RECOVERY)
    worker.wait_for(COUNT)
    assert direct.outcome() == expected


def test_a_worker_on_a_line_that_hangs_is_fenced_when_it_comes_back(
    proxy, url, direct, at_work, expected
):
    worker = at_work(url, timeout=PATIENCE)
    worker.wait_for(40)
    proxy.is_black_hole = True
    direct.answer(COUNT)
    proxy.is_black_hole = False
    proxy.forget()
    assert isinstance(worker.wait_for_end(10.0), Fenced)
    assert direct.outcome() == expected


def test_the_check_of_permissions_waits_for_redis_as_long_as_it_is_told_to(proxy, url):
    commands, reachable = permissions.of_worker(FeedKeys("f")), proxy.target
    proxy.target = 1  # nobody listens there
    with pytest.raises(Unavailable):
        permissions.check(url, commands)
    stop = Stop()
    stop.request()
    with pytest.raises(Stopped):
        permissions.check(url, commands, stop, patience=30.0)
    back = threading.Timer(0.3, lambda: setattr(proxy, "target", reachable))
    back.start()
    permissions.check(url, commands, patience=30.0)
    back.join()
