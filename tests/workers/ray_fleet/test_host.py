"""What an actor does, without Ray: it answers its feeds, and follows what is stored."""

import json
import string
import time
from contextlib import closing, contextmanager

import pytest
from alarm_receiver import raise_alarms, receiving
from fleet_feeds import begun, fleet_feeds
from many_feeds import SETTINGS
from world import wait_until

from workers.broker.connection import Connection
from workers.feed.selection import owner
from workers.ray_fleet import host as hosting
from workers.ray_fleet.definition import FleetDefinition, FleetStore
from workers.ray_fleet.host import ShardHost
from workers.stop import Stop

pytestmark = pytest.mark.servers("embedded")  # shards: see runner/test_shards_at_work.py

COUNT = 120
TOLD = SETTINGS | {"classes": ["a", "b"]}


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(hosting, "REGISTRY_SECONDS", 0.1)
    monkeypatch.setattr(hosting, "RETRY_SECONDS", 0.2)


@pytest.fixture
def feed(feed):
    """A name that no other test uses; of NAME-0 to NAME-5 a third shard takes some, not all."""
    names = (f"{feed}{letter}" for letter in string.ascii_lowercase)
    return next(name for name in names if 0 < len(moved(f"{name}-{i}" for i in range(6))) < 6)


def moved(names):
    return {name for name in names if owner(name, 2) != owner(name, 3)}


@contextmanager
def stored(url, name):
    """Open what a fleet stores."""
    with closing(Connection(url, Stop())) as connection:
        yield FleetStore(connection, name)


@pytest.fixture
def fleet(redis_url, feed):
    with stored(redis_url, feed) as fleet:
        yield fleet


def definition(feed, shards, **changed):
    return FleetDefinition(patterns=(f"{feed}-?",), shards=shards, settings=TOLD | changed)


@contextmanager
def hosts(url, feed, *indices):
    begun = [ShardHost({"redis": url}, feed, index) for index in indices]
    try:
        yield begun
    finally:
        drained = [host.drain() for host in begun]
        assert all(drained)


def held(host):
    """The feeds that a shard answers."""
    return {feed for feed, stage in host.status()["feeds"].items() if stage == "answering"}


def owned(feeds, shards, index):
    names = [store.keys.feed for store in feeds.stores]
    return {name for name in names if owner(name, shards) == index}


def test_shards_answer_all_feeds_and_move_as_few_as_possible(fleet, redis_url, feed):
    with fleet_feeds(redis_url, feed, 6, COUNT) as feeds:
        feeds.push(40)
        with hosts(redis_url, feed, 0, 1, 2) as shards:
            time.sleep(0.3)
            assert [shard.status()["shards"] for shard in shards] == [None] * 3
            fleet.put(definition(feed, 2))
            wait_until(feeds.is_answered)
            wait_until(lambda: all(held(shards[i]) == owned(feeds, 2, i) for i in range(2)))
            assert held(shards[2]) == set()
            before = {store.keys.feed: begun(store) for store in feeds.stores}
            fleet.put(definition(feed, 3))
            feeds.push(40)
            wait_until(lambda: all(held(shards[i]) == owned(feeds, 3, i) for i in range(3)))
            wait_until(feeds.is_answered)
            after = {store.keys.feed: begun(store) for store in feeds.stores}
            assert {name for name in before if before[name] != after[name]} == moved(before)
            fleet.put(definition(feed, 1))
            feeds.push(40)
            wait_until(lambda: len(held(shards[0])) == 6)
            wait_until(feeds.is_answered)
        feeds.check(redis_url)
        for store in feeds.stores:
            assert store.state().snapshot.cursor == store.state().position.cursor, "drained"
            assert store.call("GET", store.keys.lease) is None


def test_a_shard_that_cannot_go_on_says_why_and_goes_on_when_it_can(fleet, redis_url, feed):
    with fleet_feeds(redis_url, feed, 1, COUNT) as feeds, hosts(redis_url, feed, 0) as shards:
        feeds.push(40)
        fleet.put(definition(feed, 1, window=-3))
        wait_until(lambda: "window" in (shards[0].status()["problem"] or ""))
        fleet.put(FleetDefinition(patterns=("nothing",), shards=1, settings=TOLD))
        wait_until(lambda: shards[0].status()["problem"] is None)
        assert held(shards[0]) == set()
        fleet.put(definition(feed, 1))
        wait_until(feeds.is_answered)
    away = ShardHost({"redis": "redis://127.0.0.1:1/0"}, feed, 0)
    wait_until(lambda: "Unavailable" in (away.status()["problem"] or ""))
    assert away.drain()


def test_a_feed_has_the_settings_of_its_section_and_options_take_precedence(fleet, redis_url, feed):
    with fleet_feeds(redis_url, feed, 2, COUNT) as feeds, hosts(redis_url, feed, 0):
        feeds.push(40)
        options = {name: value for name, value in TOLD.items() if name not in ("gamma", "window")}
        fleet.put(FleetDefinition(
            patterns=(f"{feed}-?",), shards=1, settings=options | {"C": 2.0},
            file={"gamma": 0.5, "window": 60},
            feeds={f"{feed}-*": {"C": 5.0}, f"{feed}-1": {"gamma": 0.25}},
        ))  # fmt: skip
        wait_until(feeds.is_answered)
        first, second = (json.loads(store.state().pinned.config) for store in feeds.stores)
        assert (first["predictor"]["gamma"], second["predictor"]["gamma"]) == (0.5, 0.25)
        assert first["predictor"]["C"] == second["predictor"]["C"] == 2.0
        assert first["predictor"]["window"] == 60


def test_alarms_are_posted_where_the_machine_says_so(fleet, redis_url, feed, monkeypatch):
    with receiving() as received, fleet_feeds(redis_url, feed, 2, COUNT) as feeds:
        monkeypatch.setenv("ONLINE_SVM_ALARM_URL", received.url)
        feeds.push(40)
        fleet.put(definition(feed, 1))
        with hosts(redis_url, feed, 0):
            wait_until(feeds.is_answered)
            for store in feeds.stores:
                raise_alarms(store, 1, first=10**15, closed=False)
            received.wait(2)
        assert {message["feed"] for message in received.messages} == {
            store.keys.feed for store in feeds.stores
        }


def test_a_host_that_is_drained_at_once_ends(fleet, redis_url, feed):
    fleet.put(definition(feed, 1))
    for _ in range(20):
        host = ShardHost({"redis": redis_url}, feed, 0)
        assert host.drain()


def test_a_second_fleet_takes_over_from_one_that_is_stopped(fleet, redis_url, feed):
    with fleet_feeds(redis_url, feed, 4, COUNT) as feeds:
        feeds.push(40)
        fleet.put(definition(feed, 1))
        with hosts(redis_url, feed, 0) as old:
            wait_until(feeds.is_answered)
            with stored(redis_url, f"{feed}.new") as another:
                another.put(definition(feed, 2))
            with hosts(redis_url, f"{feed}.new", 0, 1) as new:
                wait_until(lambda: all(new[i].status()["shards"] == 2 for i in range(2)))
                feeds.push(40)
                wait_until(feeds.is_answered)
                assert held(new[0]) == held(new[1]) == set()
                assert old[0].drain()
                feeds.push(40)
                wait_until(feeds.is_answered)
                assert [held(new[i]) for i in range(2)] == [owned(feeds, 2, i) for i in range(2)]
        feeds.check(redis_url)
