"""Many feeds in one process: each has the bytes that a worker of its own gives it."""

import time

import pytest
from fault_redis import Server
from many_feeds import answer_alone, contents, has_answered, running, settings
from structlog.testing import capture_logs
from world import push, rows, wait_until

from workers.admin.reset import reset
from workers.broker import embedded
from workers.broker.store import Store
from workers.feed.keys import REGISTRY
from workers.feed.selection import Selection
from workers.runner import hosted_feed

COUNT = 130


@pytest.fixture
def feeds(redis_url, feed):
    """Make stores of feeds on the server, of which each begins with the name of the test's feed."""
    stores = []

    def make(*suffixes):
        stores.extend(Store(redis_url, f"{feed}-{suffix}", block_ms=20) for suffix in suffixes)
        return stores[-len(suffixes) :]

    yield make
    for store in stores:
        store.close()


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_feeds_served_together_have_the_bytes_of_workers_of_their_own(
    feeds, redis_url, feed, batch
):
    together, alone = feeds("a", "b", "c"), feeds("alone-a", "alone-b", "alone-c")
    for seed, stores in enumerate(zip(together, alone, strict=True)):
        for store in stores:
            push(store, rows(COUNT, seed))
            store.register()
    for store in alone:
        answer_alone(store, COUNT, settings(batch=batch))
    with running([f"{feed}-?"], redis_url, settings=settings(batch=batch)):
        wait_until(lambda: all(has_answered(store, COUNT) for store in together))
    assert [contents(store) for store in together] == [contents(store) for store in alone]
    for store in together:
        assert store.state().snapshot.cursor == store.state().position.cursor
        assert store.call("GET", store.keys.lease) is None


def test_input_that_comes_while_feeds_wait_is_answered_in_every_feed(feeds, redis_url, feed):
    stores = feeds(*map(str, range(5)))
    given = [rows(30, seed) for seed in range(5)]
    with running([store.keys.feed for store in stores], redis_url):
        wait_until(lambda: all(store.state() is not None for store in stores))
        for i in range(30):  # one entry each in turn, so that most reads are blocked ones
            for store, fields in zip(stores, given, strict=True):
                push(store, fields[i : i + 1], first=i + 1)
        wait_until(lambda: all(has_answered(store, 30) for store in stores))
    for seed, alone in enumerate(feeds(*(f"alone-{seed}" for seed in range(5)))):
        push(alone, given[seed])
        answer_alone(alone, 30, settings())
        assert contents(alone) == contents(stores[seed])


def test_a_hot_feed_does_not_hold_up_a_slow_one(feeds, redis_url, feed):
    hot, slow = feeds("hot", "slow")
    push(hot, rows(COUNT, 0) * 40)
    with running([hot.keys.feed, slow.keys.feed], redis_url):
        wait_until(lambda: slow.state() is not None and has_answered(hot, 200))
        for i, fields in enumerate(rows(10, 1)):
            push(slow, [fields], first=i + 1)
            wait_until(lambda i=i: has_answered(slow, i + 1), seconds=20.0)
        assert not has_answered(hot, COUNT * 40), "the hot feed was to have work all the time"


def test_a_feed_that_cannot_go_on_is_set_aside_with_its_reason_and_the_others_go_on(
    feeds, redis_url, feed
):
    bad, damaged, good, alone = feeds("bad", "damaged", "good", "alone")
    push(bad, rows(20, 0))
    push(good, rows(COUNT, 1)[:50])
    push(alone, rows(COUNT, 1))
    push(damaged, rows(50, 2))
    damaged.call("SET", damaged.keys.out, "no stream")
    names = [store.keys.feed for store in (bad, damaged, good)]
    with running(names, redis_url):
        wait_until(lambda: has_answered(bad, 20) and has_answered(good, 50))
        bad.call("DEL", bad.keys.state)
        push(bad, rows(1, 3), first=21)
        wait_until(lambda: "StateLost" in reason(bad))
        push(good, rows(COUNT, 1)[50:], first=51)
        wait_until(lambda: has_answered(good, COUNT))
        assert bad.call("GET", bad.keys.lease) is None, "another process may try"
    assert damaged.call("TYPE", damaged.keys.state) == b"none"
    answer_alone(alone, COUNT, settings())
    assert contents(good) == contents(alone)


def reason(store):
    """Return what the newest event of a feed says."""
    newest = store.call("XREVRANGE", store.keys.events, "+", "-", "COUNT", 1)
    return newest[0][1][1].decode() if newest else ""


def test_input_that_is_made_anew_while_a_feed_is_idle_is_noticed(feeds, redis_url, feed):
    gone, good = feeds("gone", "good")
    for store in (gone, good):
        push(store, rows(10, 0))
    with running([gone.keys.feed, good.keys.feed], redis_url):
        wait_until(lambda: has_answered(gone, 10) and has_answered(good, 10))
        gone.call("DEL", gone.keys.input)
        push(gone, rows(1, 1))
        wait_until(lambda: "InputLost" in reason(gone))
        push(good, rows(1, 1), first=11)
        wait_until(lambda: has_answered(good, 11))


def test_a_feed_that_was_set_aside_goes_on_once_it_is_repaired(feeds, redis_url, feed, monkeypatch):
    monkeypatch.setattr("workers.runner.hosted_feed.FIRST_RETRY", 0.2)
    (store,) = feeds("wrong")
    push(store, rows(40, 0))
    store.call("SET", store.keys.met, "no stream")
    with running([store.keys.feed, f"{feed}-none"], redis_url):
        wait_until(lambda: store.call("TYPE", store.keys.lease) == b"string")
        assert store.state() is None
        store.call("DEL", store.keys.met)
        wait_until(lambda: has_answered(store, 40))


def test_a_new_feed_of_the_registry_is_taken_up_and_no_more_than_max_feeds_are(
    feeds, redis_url, feed
):
    first, second, third = feeds("1", "2", "3")
    push(first, rows(10, 0))
    first.register()
    with running([f"{feed}-*"], redis_url, settings=settings(max_feeds=2)):
        wait_until(lambda: has_answered(first, 10))
        for store in (second, third):
            push(store, rows(10, 0))
            store.register()
            if store is second:
                wait_until(lambda: has_answered(second, 10))
        push(first, rows(10, 1), first=11)
        wait_until(lambda: has_answered(first, 20))
        assert third.state() is None


def test_a_feed_that_only_has_input_is_answered_and_listed(redis_url, feed):
    with Store(redis_url, f"{feed}-unlisted") as store:
        with running([f"{feed}-*"], redis_url):
            push(store, rows(30, 0))
            wait_until(lambda: has_answered(store, 30))
        assert store.call("SISMEMBER", REGISTRY, store.keys.feed) == 1


def test_texts_of_the_registry_that_are_no_names_are_passed_over(feeds, redis_url, feed, own_redis):
    with Store(own_redis.url, "f-1") as store:
        push(store, rows(10, 0))
        store.register()
        bad = ["f-a b", "f-\n", "f-" + "x" * 100, "f-" + "y" * 1_000_000, "", "../f-2"]
        store.call("SADD", "osvm:feeds", *bad)
        with running(["f-*"], own_redis.url):
            wait_until(lambda: has_answered(store, 10))
        assert store.call("KEYS", "osvm:{*}:st") == [b"osvm:{f-1}:st"]


@pytest.mark.parametrize("named", [(), ("stays",), ("stays", "goes")])
def test_a_feed_that_is_another_process_s_now_is_given_up_with_a_snapshot(
    feeds, redis_url, feed, named
):
    stays, goes = feeds("stays", "goes")
    mine = {stays.keys.feed, goes.keys.feed}
    for store in (stays, goes):
        push(store, rows(30, 0))
        store.register()
    texts = [f"{feed}-*", *(f"{feed}-{name}" for name in named)]
    selection = Selection(texts, owns=lambda name: name in mine)
    with running([], redis_url, selection=selection):
        wait_until(lambda: has_answered(stays, 30) and has_answered(goes, 30))
        mine.remove(goes.keys.feed)
        wait_until(lambda: goes.call("GET", goes.keys.lease) is None)
        assert goes.state().snapshot.cursor == b"30-0"
        push(stays, rows(5, 1), first=31)
        wait_until(lambda: has_answered(stays, 35))


def test_a_second_process_waits_and_takes_over_every_feed(feeds, redis_url, feed):
    stores = feeds("a", "b", "c")
    for store in stores:
        push(store, rows(40, 0))
    names = [store.keys.feed for store in stores]
    with running(names, redis_url, name="first") as first:
        wait_until(lambda: all(has_answered(store, 40) for store in stores))
        with running(names, redis_url, name="second"):
            for store in stores:
                push(store, rows(20, 1), first=41)
            wait_until(lambda: all(has_answered(store, 60) for store in stores))
            assert {store.state().writer for store in stores} == {"first"}
            first.end()
            wait_until(lambda: {store.state().writer for store in stores} == {"second"})
            for store in stores:
                push(store, rows(20, 2), first=61)
            wait_until(lambda: all(has_answered(store, 80) for store in stores))
    (alone,) = feeds("alone")
    push(alone, [*rows(40, 0), *rows(20, 1), *rows(20, 2)])
    answer_alone(alone, 80, settings())
    assert {contents(store)[0] for store in stores} == {contents(alone)[0]}


def test_one_that_was_replaced_waits_for_the_lease_again_and_never_writes_twice(
    feeds, redis_url, feed
):
    (store,) = feeds("a")
    push(store, rows(40, 0))
    with running([store.keys.feed, f"{feed}-b"], redis_url, name="replaced"):
        wait_until(lambda: has_answered(store, 40))
        store.fence("another", None)  # as one that took the feed after a pause of this process
        push(store, rows(20, 1), first=41)
        wait_until(lambda: has_answered(store, 60))
    (alone,) = feeds("alone")
    push(alone, [*rows(40, 0), *rows(20, 1)])
    answer_alone(alone, 60, settings())
    assert contents(store) == contents(alone)


def test_refits_in_a_pool_of_processes_give_the_bytes_of_refits_of_their_own(
    feeds, redis_url, feed
):
    lagging = {"refit_lag": 10}
    together, alone = feeds("a", "b", "c"), feeds("alone-a", "alone-b", "alone-c")
    for seed, stores in enumerate(zip(together, alone, strict=True)):
        for store in stores:
            push(store, rows(COUNT, seed))
            store.register()
    for store in alone:
        answer_alone(store, COUNT, settings(**lagging))
    given = settings(**lagging, refit_processes=1)
    with running([f"{feed}-?"], redis_url, settings=given, pool=None):
        wait_until(lambda: all(has_answered(store, 70) for store in together))
    with running([f"{feed}-?"], redis_url, settings=given, pool=None):  # from snapshots
        wait_until(lambda: all(has_answered(store, COUNT) for store in together))
    assert [contents(store) for store in together] == [contents(store) for store in alone]


def test_while_redis_is_gone_all_feeds_wait_for_it_and_then_go_on(tmp_path):
    server = Server(tmp_path / "redis")
    stores = [Store(server.url, f"f-{i}", block_ms=20) for i in range(3)]
    for store in stores:
        store.be_patient()
        push(store, rows(40, 0))
        store.register()
    with running(["f-*"], server.url):
        wait_until(lambda: all(has_answered(store, 40) for store in stores))
        server.kill()
        time.sleep(1.5)  # longer than the leases
        server.start()
        for store in stores:
            push(store, rows(20, 1), first=41)
        wait_until(lambda: all(has_answered(store, 60) for store in stores))
    alone = Store(server.url, "alone")
    push(alone, [*rows(40, 0), *rows(20, 1)])
    answer_alone(alone, 60, settings())
    assert {contents(store)[0] for store in stores} == {contents(alone)[0]}
    for store in (*stores, alone):
        store.close()
    server.stop()


def test_large_entries_of_one_feed_do_not_stop_the_others(feeds, redis_url, feed):
    large, small = feeds("large", "small")
    with running([large.keys.feed, small.keys.feed], redis_url):
        wait_until(lambda: large.state() is not None and small.state() is not None)
        for i in range(30):
            large.call("XADD", large.keys.input, f"{i + 1}-0", "x", "1" * 900_000)
        push(small, rows(20, 0))
        wait_until(lambda: has_answered(small, 20) and has_answered(large, 30))
    assert large.length(large.keys.dlq) == 30


def test_where_the_grace_period_is_over_feeds_leave_no_snapshot_and_the_next_start_replays(
    feeds, redis_url, feed
):
    stores = feeds("a", "b")
    for store in stores:
        push(store, rows(30, 0))
        store.register()
    with running([f"{feed}-*"], redis_url, settings=settings(replay_budget=1000), grace=0.0):
        wait_until(lambda: all(has_answered(store, 30) for store in stores))
    assert [store.state().snapshot for store in stores] == [None, None]
    assert "without a snapshot" in reason(stores[0])
    with running([f"{feed}-*"], redis_url):
        wait_until(lambda: {store.state().epoch for store in stores} == {2})
        for store in stores:
            push(store, rows(20, 1), first=31)
        wait_until(lambda: all(has_answered(store, 50) for store in stores))
    (alone,) = feeds("alone")
    push(alone, [*rows(30, 0), *rows(20, 1)])
    answer_alone(alone, 50, settings())
    assert [contents(store) for store in stores] == [contents(alone)] * 2


def test_a_hot_feed_is_answered_in_slices_of_many_entries(feeds, redis_url, feed, monkeypatch):
    """A slice costs as much as twenty entries: small ones would take the processor's time."""
    monkeypatch.setattr(hosted_feed, "LONGEST", 1.0)  # a busy machine may need it for a slice
    hot, idle = feeds("hot", "idle")
    push(hot, rows(COUNT, 0) * 20)
    sizes = []
    with running(
        [hot.keys.feed, idle.keys.feed],
        redis_url,
        settings=settings(refit_every=10_000),
        observe=lambda _feed, outcome: sizes.append(len(outcome.ids)),
    ):
        wait_until(lambda: has_answered(hot, COUNT * 20))
    assert COUNT * 20 / len(sizes) > 30, sizes


def test_a_flushed_feed_is_set_aside_until_it_is_reset(tmp_path, monkeypatch):
    monkeypatch.setattr(hosted_feed, "FIRST_RETRY", 0.05)
    monkeypatch.setattr(hosted_feed, "LAST_RETRY", 0.05)
    with embedded.temporary() as server, Store(server.url, "f") as store, capture_logs() as logged:
        push(store, rows(40, 0))
        store.register()
        with running(["f*"], server.url):
            wait_until(lambda: has_answered(store, 40))
            store.call("FLUSHALL")
            push(store, rows(40, 0))
            wait_until(lambda: sum("set aside" in each["event"] for each in logged) >= 5)
            assert store.types().keys() <= {store.keys.input, store.keys.lease}
            reset(store, with_input=False, force=True)
            wait_until(lambda: has_answered(store, 40))


def test_a_process_that_waits_for_the_leases_begins_no_feed_that_was_flushed_meanwhile():
    with embedded.temporary() as server, Store(server.url, "f") as store, capture_logs() as logged:
        push(store, rows(40, 0))
        with running(["f", "g", "other-*"], server.url, name="first"):
            wait_until(lambda: has_answered(store, 40))
            with running(["f", "g", "other-*"], server.url, name="second"):
                wait_until(lambda: sum("waiting for the lease" in e["event"] for e in logged) == 2)
                time.sleep(0.5)  # it looks ten times a second
                store.call("FLUSHALL")
                push(store, rows(40, 0))
                wait_until(lambda: sum("set aside" in each["event"] for each in logged) >= 4)
                assert store.state() is None


def test_a_thousand_listed_names_keep_no_feed_with_state_from_being_taken_up(own_redis):
    with Store(own_redis.url, "f-z") as store:
        push(store, rows(20, 0))
        answer_alone(store, 20, settings())
        push(store, rows(20, 1), first=21)
        store.call("SADD", REGISTRY, "f-z", *(f"f-{i}" for i in range(1000)))
        with running(["f-*"], own_redis.url, settings=settings(max_feeds=3)):
            wait_until(lambda: has_answered(store, 40))
