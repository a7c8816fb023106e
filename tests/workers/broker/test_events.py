"""Operational events: noted beside the feed, bounded, and in the way of nothing."""

import json

import pytest
from world import World, drain

from workers.feed.state import Agreement
from workers.message import event
from workers.message.schema import EVENT_CODES, EventMessage


@pytest.fixture
def begun(store):
    """A feed that was taken over."""
    store.fence("tester", Agreement("{}", "00", "{}"))
    return store


def events(store):
    entries = store.call("XRANGE", store.keys.events, "-", "+")
    return [json.loads(fields[1]) for _, fields in entries]


def test_an_event_is_noted_and_no_part_of_the_state(begun):
    before = begun.state()
    begun.note("began", "epoch 1, seq 0")
    begun.note("snapshot_not_kept", "x" * 10_000)
    noted = [EventMessage(**found) for found in events(begun)]
    assert [(one.code, one.epoch) for one in noted] == [("began", 1), ("snapshot_not_kept", 1)]
    assert len(noted[1].detail) == 1000, "a long detail is cut"
    assert begun.state() == before


def test_a_writer_that_has_not_taken_the_feed_over_notes_nothing(store):
    store.note("failed", "nothing begun")
    assert events(store) == []


def test_a_worker_that_outlives_its_feed_does_not_make_the_stream_again(begun):
    begun.note("began", "")
    begun.call("DEL", begun.keys.events)
    begun.note("failed", "StateLost: the feed is gone")
    assert begun.call("EXISTS", begun.keys.events) == 0


@pytest.mark.parametrize("how", ["another type", "no permission"])
def test_events_that_cannot_be_written_are_in_nobodys_way(own_redis, feed, how):
    with World(own_redis.url, feed) as world:
        world.push(20)
        running, keys = world.session(), world.store.keys
        if how == "another type":
            world.store.call("DEL", keys.events)
            world.store.call("SET", keys.events, "foreign")
        else:
            all_but_events = f"~osvm:{{{feed}}}:[^e]*"
            world.store.call("ACL", "SETUSER", "default", "resetkeys", all_but_events)
        world.store.note("began", "")
        drain(running, 20)
        world.store.note("stopped", "")
        assert (world.seq, world.store.failures) == (20, 0)


def test_about_a_thousand_events_are_kept(begun):
    for i in range(1500):
        begun.note("began", str(i))
    assert event.KEPT <= begun.length(begun.keys.events) <= event.KEPT + 100
    assert events(begun)[-1]["detail"] == "1499"


def test_every_code_of_an_event_is_described():
    assert tuple(EVENT_CODES) == event.CODES
