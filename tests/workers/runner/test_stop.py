"""A graceful stop of many feeds: snapshots within the grace period, the longest replays first."""

import pytest
from many_feeds import alone, contents, newest_event, running, settings, wait_for
from world import push, rows, wait_until

from workers.errors import Stopped
from workers.session.session import Session
from workers.stop import Stop

pytestmark = pytest.mark.servers("embedded")

LACKS = "without a snapshot"


def test_a_stop_saves_the_longest_replays_first(feeds, redis_url, monkeypatch):
    stores = dict(zip([25, 85, 45, 65], feeds(*"abcd"), strict=True))  # no refit is under way then
    names, given = [store.keys.feed for store in stores.values()], settings(replay_budget=1000)
    send, sent = Session.send_snapshot, []

    def note(session):
        send(session)
        sent.append(session)

    # Each snapshot takes 0.45 of the grace period, on any machine.
    monkeypatch.setattr(Session, "send_snapshot", note)
    monkeypatch.setattr(Stop, "age", property(lambda stop: 0.45 * len(sent) * stop.grace))
    with running(names, redis_url, settings=given):
        for count, store in stores.items():
            push(store, rows(105, count)[:count])
            wait_for(count, store)
    monkeypatch.undo()
    kept = [store.state().snapshot is not None for store in stores.values()]
    assert kept == [False, True, False, True]
    told = [LACKS in newest_event(store) for store in stores.values()]
    assert told == [True, False, True, False]
    with running(names, redis_url, settings=given):
        for count, store in stores.items():
            push(store, rows(105, count)[count : count + 20], first=count + 1)
            wait_for(count + 20, store)
    for count, store in stores.items():
        assert contents(store) == alone(redis_url, rows(105, count)[: count + 20])


def test_a_late_refit_costs_a_feed_its_snapshot_which_is_told(feeds, redis_url, monkeypatch):
    stores, awaited, send = feeds("a", "b"), [], Session.send_snapshot

    def first_awaits_in_vain(session):
        if not awaited:
            awaited.append(session)
            raise Stopped("stopped while a refit was awaited")
        send(session)

    names, given = [store.keys.feed for store in stores], settings(replay_budget=1000)
    with running(names, redis_url, settings=given):
        for store in stores:
            push(store, rows(25, 0))
        wait_for(25, *stores)
        monkeypatch.setattr(Session, "send_snapshot", first_awaits_in_vain)
    monkeypatch.undo()
    kept = [store.state().snapshot is not None for store in stores]
    assert sorted(kept) == [False, True]
    assert [LACKS in newest_event(store) for store in stores] == [not k for k in kept]


def test_a_feed_with_nothing_new_lacks_no_snapshot(feeds, redis_url):
    (store,) = feeds("a")
    push(store, rows(30, 0))
    names = [store.keys.feed, f"{store.keys.feed}-none"]
    with running(names, redis_url):
        wait_for(30, store)
    before = store.state().snapshot
    with running(names, redis_url, grace=0.0):
        wait_until(lambda: store.state().epoch == 2 and '"began"' in newest_event(store))
    assert store.state().snapshot == before
    assert "seq 30" in newest_event(store)
