"""The leases of many feeds: one thread, a hundred in a call, and each decides alone."""

import time

import pytest
from many_feeds import wait_until

from workers.broker.lease import Holder, Lease
from workers.feed.keys import FeedKeys
from workers.fleet.leases import Leases
from workers.stop import Stop


@pytest.fixture
def leases(redis_url):
    with Leases(redis_url, "many", 0.6, wake=lambda: None, together=3) as leases:
        yield leases


def holder(store, feed):
    found = Holder.parse(store.call("GET", FeedKeys(feed).lease) or b"")
    return found and found.name


def test_many_leases_are_held_beyond_their_time_and_given_up_at_the_end(redis_url, store):
    feeds = [f"{store.keys.feed}-{i}" for i in range(10)]
    with Leases(redis_url, "many", 0.6, wake=lambda: None, together=3) as leases:
        asked = [leases.ask(feed) for feed in feeds]
        wait_until(lambda: all(lease.is_held for lease in asked))
        assert {lease.feed for lease in leases.changed()} == set(feeds)
        time.sleep(1.0)
        assert {holder(store, feed) for feed in feeds} == {"many"}
        assert not any(lease.pop_loss() for lease in asked)
        assert leases.changed() == []
        leases.release(asked[:1])
        time.sleep(0.4)
        assert holder(store, feeds[0]) is None
        assert holder(store, feeds[1]) == "many"
    assert {holder(store, feed) for feed in feeds} == {None}


def test_a_lease_of_another_is_waited_for_and_the_others_are_held_meanwhile(
    redis_url, store, leases
):
    feeds = [f"{store.keys.feed}-{i}" for i in range(4)]
    other = Lease(redis_url, FeedKeys(feeds[2]).lease, "other", 0.6)
    other.acquire(Stop())
    asked = [leases.ask(feed) for feed in feeds]
    wait_until(lambda: sum(lease.is_held for lease in asked) == 3)
    assert not asked[2].is_held
    wait_until(lambda: asked[2].holder == "other")
    other.release()
    wait_until(lambda: asked[2].is_held)


def test_a_lease_that_was_lost_is_told_and_taken_again(store, leases):
    lease = leases.ask(store.keys.feed)
    wait_until(lambda: lease.is_held)
    leases.changed()
    store.call("DEL", lease.key)
    wait_until(lambda: holder(store, store.keys.feed) == "many")
    assert lease.pop_loss()
    assert leases.changed() == [lease]


def test_a_key_of_another_type_is_told_and_the_others_are_held(store, leases):
    bad, good = f"{store.keys.feed}-bad", f"{store.keys.feed}-good"
    store.call("SADD", FeedKeys(bad).lease, "x")
    refused, held = leases.ask(bad), leases.ask(good)
    wait_until(lambda: held.is_held and refused.problem is not None)
    assert FeedKeys(bad).lease in refused.problem
    assert not refused.is_held
