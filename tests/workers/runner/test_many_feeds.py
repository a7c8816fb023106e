"""Many feeds in one process: each has the bytes that a worker of its own gives it."""

import pytest
from many_feeds import alone, contents, fill, newest_event, running, settings, wait_for
from refits import slow_refits
from world import push, rows, wait_until

from workers.feed.selection import Selection
from workers.runner import feed_task

COUNT = 130

pytestmark = pytest.mark.servers("embedded")  # broker/test_servers.py has the other kinds


def test_feeds_served_together_have_the_bytes_of_workers_of_their_own(
    feeds, redis_url, feed, monkeypatch, lagging
):
    together = feeds("a", "b", "c")
    for seed, store in enumerate(together):
        fill(rows(COUNT, seed), store)
    given = settings(refit_processes=2)
    for count in (70, COUNT):  # the second process begins with snapshots
        slowly = slow_refits(monkeypatch, 0.02)
        with slowly, running([f"{feed}-?"], redis_url, settings=given, pool=None):
            wait_for(count, *together)
    for seed, store in enumerate(together):
        assert contents(store) == alone(redis_url, rows(COUNT, seed))
        assert store.state().snapshot.cursor == store.state().position.cursor
        assert store.call("GET", store.keys.lease) is None


def test_input_that_comes_while_feeds_wait_is_answered_in_every_feed(feeds, redis_url):
    stores = feeds(*"abcde")
    with running([store.keys.feed for store in stores], redis_url):
        wait_until(lambda: all(store.state() is not None for store in stores))
        for i in range(30):  # one entry each in turn, so that most reads are blocked ones
            for seed, store in enumerate(stores):
                push(store, rows(30, seed)[i : i + 1], first=i + 1)
        wait_for(30, *stores)
    for seed, store in enumerate(stores):
        assert contents(store) == alone(redis_url, rows(30, seed))


def test_a_hot_feed_does_not_hold_up_a_slow_one(feeds, redis_url):
    hot, slow = feeds("hot", "slow")
    push(hot, rows(COUNT, 0) * 40)
    left, done, seen = list(enumerate(rows(10, 1), 1)), 0, []

    def observe(name, outcome):
        """Push to the slow feed while the hot one is answered; note how much of it is so far."""
        nonlocal done
        if name == slow.keys.feed:
            seen.append(done)
            return
        done += len(outcome.ids)
        if done > 200 and left and slow.state() is not None:
            i, fields = left.pop(0)
            push(slow, [fields], first=i)

    with running([hot.keys.feed, slow.keys.feed], redis_url, observe=observe):
        wait_for(COUNT * 40, hot, seconds=120.0)
        wait_for(10, slow)
    assert max(seen) < COUNT * 40, "the slow feed was answered after the hot one"


def test_a_feed_that_fails_is_parked_and_the_others_go_on(feeds, redis_url):
    lost, anew, damaged, good = feeds("lost", "anew", "damaged", "good")
    for store in (lost, anew, good):
        push(store, rows(COUNT, 1)[:20])
    push(damaged, rows(50, 2))
    damaged.call("SET", damaged.keys.out, "no stream")
    with running([store.keys.feed for store in (lost, anew, damaged, good)], redis_url):
        wait_for(20, lost, anew, good)
        lost.call("DEL", lost.keys.state)
        push(lost, rows(1, 3), first=21)
        wait_until(lambda: "StateLost" in newest_event(lost))
        anew.call("DEL", anew.keys.input)  # while the feed is idle
        push(anew, rows(1, 1))
        wait_until(lambda: "InputLost" in newest_event(anew))
        push(good, rows(COUNT, 1)[20:], first=21)
        wait_for(COUNT, good)
        wait_until(lambda: lost.call("GET", lost.keys.lease) is None)  # another process may try
    assert damaged.call("TYPE", damaged.keys.state) == b"none"
    assert contents(good) == alone(redis_url, rows(COUNT, 1))


def test_new_feeds_are_taken_up_to_max_feeds(feeds, redis_url, feed):
    first, second, third = feeds("1", "2", "3")
    fill(rows(10, 0), first)
    with running([f"{feed}-*"], redis_url, settings=settings(max_feeds=2)):
        wait_for(10, first)
        fill(rows(10, 0), second)
        wait_for(10, second)
        fill(rows(10, 0), third)
        push(first, rows(10, 1), first=11)
        wait_for(20, first)
        assert third.state() is None


@pytest.mark.parametrize("named", [(), ("stays",), ("stays", "goes")])
def test_a_feed_that_is_another_process_s_now_is_given_up_with_a_snapshot(
    feeds, redis_url, feed, named
):
    stays, goes = feeds("stays", "goes")
    mine = {stays.keys.feed, goes.keys.feed}
    fill(rows(30, 0), stays, goes)
    texts = [f"{feed}-*", *(f"{feed}-{name}" for name in named)]
    with running([], redis_url, selection=Selection(texts, owns=lambda name: name in mine)):
        wait_for(30, stays, goes)
        mine.remove(goes.keys.feed)
        wait_until(lambda: goes.call("GET", goes.keys.lease) is None)
        wait_until(lambda: goes.state().snapshot is not None)
        assert goes.state().snapshot.cursor == b"30-0"
        push(stays, rows(5, 1), first=31)
        wait_for(35, stays)


def test_a_second_process_waits_and_takes_over_every_feed(feeds, redis_url):
    stores = feeds("a", "b", "c")
    names = [store.keys.feed for store in stores]
    fill(rows(80, 0)[:40], *stores)
    with running(names, redis_url, name="first") as first:
        wait_for(40, *stores)
        with running(names, redis_url, name="second"):
            fill(rows(80, 0)[40:60], *stores, first=41)
            wait_for(60, *stores)
            assert {store.state().writer for store in stores} == {"first"}
            first.end()
            wait_until(lambda: {store.state().writer for store in stores} == {"second"})
            fill(rows(80, 0)[60:], *stores, first=61)
            wait_for(80, *stores)
    assert [contents(store) for store in stores] == [alone(redis_url, rows(80, 0))] * 3


def test_large_entries_of_one_feed_do_not_stop_the_others(feeds, redis_url):
    large, small = feeds("large", "small")
    with running([large.keys.feed, small.keys.feed], redis_url):
        wait_until(lambda: large.state() is not None and small.state() is not None)
        push(large, [["x", "1" * 900_000]] * 30)
        push(small, rows(20, 0))
        wait_for(20, small)
        wait_for(30, large)
    assert large.length(large.keys.dlq) == 30


def test_a_hot_feed_is_answered_in_slices_of_many_entries(feeds, redis_url, monkeypatch):
    """A slice costs as much as twenty entries: small ones would take the processor's time."""
    monkeypatch.setattr(feed_task, "SLICE_SECONDS", 1.0)  # a busy machine may need it for a slice
    hot, idle = feeds("hot", "idle")
    push(hot, rows(COUNT, 0) * 20)
    sizes, given = [], settings(refit_every=10_000)
    with running([hot.keys.feed, idle.keys.feed], redis_url, settings=given,
                 observe=lambda _feed, outcome: sizes.append(len(outcome.ids))):  # fmt: skip
        wait_for(COUNT * 20, hot)
    assert COUNT * 20 / len(sizes) > 30, sizes
