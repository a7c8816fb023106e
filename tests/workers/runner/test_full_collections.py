"""Full collections are put off while feeds are taken over, for a bounded time, and then come."""

import gc

import pytest
from many_feeds import running, wait_for
from world import push, rows, wait_until

from workers import python_process
from workers.broker.store import Store
from workers.python_process import FullCollections
from workers.runner.loop import FeedLoop
from workers.session.recovery import Recovery


@pytest.fixture
def usual():
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_collections_alternate_between_put_off_and_allowed(usual, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(python_process.time, "monotonic", lambda: now)
    collections = FullCollections()
    seen = []
    for _ in range(7):
        collections.put_off()
        seen.append(gc.get_threshold() == usual)
        now += python_process.MAX_PUT_OFF_SECONDS / 2
    assert seen == [False, False, True, True, False, False, True]
    collections.allow()
    collections.allow()
    assert gc.get_threshold() == usual


def test_two_users_of_one_process_restore_usual_collections(usual):
    one, other = FullCollections(), FullCollections()
    one.put_off()
    other.put_off()
    one.allow()
    other.allow()
    assert gc.get_threshold() == usual


def test_a_process_that_fails_while_it_takes_feeds_over_leaves_them_as_usual(
    usual, embedded_url, feed, monkeypatch
):
    def failing(_loop, _longest):
        assert gc.get_threshold() != usual
        raise RuntimeError("a fault")

    monkeypatch.setattr(FeedLoop, "_wait", failing)
    monkeypatch.setattr(FeedLoop, "_start_feeds", lambda loop: loop.collections.put_off())
    with pytest.raises(RuntimeError, match="a fault"), running([feed], embedded_url) as process:
        wait_until(lambda: process.error is not None)
    assert gc.get_threshold() == usual


def test_a_process_puts_them_off_while_it_takes_feeds_over_and_not_after(
    usual, embedded_url, feed, monkeypatch
):
    during, steps = [], Recovery.steps

    def noted(recovery, *arguments):
        during.append(gc.get_threshold())
        return steps(recovery, *arguments)

    monkeypatch.setattr(Recovery, "steps", noted)
    with Store(embedded_url, feed) as store:
        push(store, rows(30, 0))
        with running([feed, f"{feed}-none"], embedded_url):
            wait_for(30, store)
            wait_until(lambda: gc.get_threshold() == usual)
    assert during
    assert all(seen[:2] == usual[:2] and seen[2] > 1_000_000 for seen in during)
    assert gc.get_threshold() == usual
