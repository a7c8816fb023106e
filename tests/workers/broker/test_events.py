"""Operational events: noted beside the feed, bounded, and in the way of nothing."""

import json

import pytest

from workers.broker.store import Store
from workers.feed.commit import Commit
from workers.feed.position import START, Position
from workers.feed.state import Agreement
from workers.message import event
from workers.message.schema import EVENT_CODES, EventMessage

AGREEMENT = Agreement("{}", "00", "{}")


def push(store, count):
    for i in range(1, count + 1):
        store.call("XADD", store.keys.input, f"{i}-0", "x", "[1]")


def commit_of(ids):
    return Commit(1, START, Position(ids[-1], len(ids), len(ids), bytes(32)), ids, ids)


@pytest.fixture
def begun(store):
    """A feed with five entries of input, taken over."""
    push(store, 5)
    store.fence("tester", AGREEMENT)
    return store


def events(store):
    entries = store.call("XRANGE", store.keys.events, "-", "+")
    return [json.loads(fields[1]) for _, fields in entries]


def test_an_event_is_noted_and_no_part_of_the_digest(begun):
    commit = commit_of([b"1-0", b"2-0"])
    begun.note("began", "epoch 1, seq 0")
    begun.commit(commit)
    begun.note("snapshot_not_kept", "at 2-0")
    assert [found["code"] for found in events(begun)] == ["began", "snapshot_not_kept"]
    assert [EventMessage(**found).epoch for found in events(begun)] == [1, 1]
    assert begun.state().position == commit.after


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
    with Store(own_redis.url, feed) as store:
        push(store, 5)
        store.fence("tester", AGREEMENT)
        if how == "another type":
            store.call("SET", store.keys.events, "foreign")
        else:
            allowed = [f"~{key}" for key in (store.keys.input, store.keys.state)]
            allowed += [f"~{key}" for key in store.keys.outputs]
            store.call("ACL", "SETUSER", "default", "resetkeys", *allowed)
        store.note("began", "")
        commit = commit_of([b"1-0", b"2-0"])
        store.commit(commit)
        store.note("stopped", "")
        assert store.state().position == commit.after
        assert store.failures == 0


def test_about_a_thousand_events_are_kept(begun):
    for i in range(1500):
        begun.note("began", str(i))
    assert event.KEPT <= begun.length(begun.keys.events) <= event.KEPT + 100
    assert events(begun)[-1]["detail"] == "1499"


def test_a_long_detail_is_cut(begun):
    begun.note("began", "x" * 10_000)
    assert len(events(begun)[0]["detail"]) == 1000


def test_every_code_of_an_event_is_described():
    assert tuple(EVENT_CODES) == event.CODES
