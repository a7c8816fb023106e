"""A graceful stop of many feeds: snapshots within the grace period, the longest replays first."""

import pytest
from many_feeds import answer_alone, contents, has_answered, running, settings
from world import push, rows
from world import wait_until as wait

from workers.broker.store import Store
from workers.errors import Stopped
from workers.session.session import Session
from workers.stop import Stop


@pytest.fixture
def stores(embedded_url, feed):
    opened = [Store(embedded_url, f"{feed}-{i}", block_ms=20) for i in range(4)]
    yield opened
    for store in opened:
        store.close()


def said(store):
    newest = store.call("XREVRANGE", store.keys.events, "+", "-", "COUNT", 1)
    return newest[0][1][1].decode()


def test_feeds_leave_snapshots_by_the_length_of_their_replays_until_the_grace_period_ends(
    stores, embedded_url, feed, monkeypatch
):
    counts = [25, 85, 45, 65]  # no refit is under way then
    given = settings(replay_budget=1000)
    send, sent = Session.send_snapshot, []

    def note(session):
        send(session)
        sent.append(session)

    # Each snapshot takes 0.45 of the grace period, on any machine.
    monkeypatch.setattr(Session, "send_snapshot", note)
    monkeypatch.setattr(Stop, "age", property(lambda stop: 0.45 * len(sent) * stop.grace))
    with running([store.keys.feed for store in stores], embedded_url, settings=given):
        for seed, (store, count) in enumerate(zip(stores, counts, strict=True)):
            push(store, rows(count, seed))
        wait(lambda: all(map(has_answered, stores, counts)))
    monkeypatch.undo()
    kept = [store.state().snapshot is not None for store in stores]
    assert kept == [False, True, False, True]
    told = ["without a snapshot" in said(store) for store in stores]
    assert told == [True, False, True, False]
    with running([store.keys.feed for store in stores], embedded_url, settings=given):
        for seed, (store, count) in enumerate(zip(stores, counts, strict=True)):
            push(store, rows(20, seed + 10), first=count + 1)
        wait(lambda: all(has_answered(s, n + 20) for s, n in zip(stores, counts, strict=True)))
    for seed, (store, count) in enumerate(zip(stores, counts, strict=True)):
        with Store(embedded_url, f"{feed}.alone-{seed}", block_ms=20) as alone:
            push(alone, [*rows(count, seed), *rows(20, seed + 10)])
            answer_alone(alone, count + 20, settings())
            assert contents(alone) == contents(store)


def test_a_feed_whose_refit_does_not_come_in_time_says_that_it_left_no_snapshot(
    stores, embedded_url, feed, monkeypatch
):
    given = settings(replay_budget=1000)
    with running([store.keys.feed for store in stores[:2]], embedded_url, settings=given):
        for store in stores[:2]:
            push(store, rows(25, 0))
        wait(lambda: all(has_answered(store, 25) for store in stores[:2]))
        send = Session.send_snapshot

        def first_awaits_in_vain(session):
            if not awaited:
                awaited.append(session)
                raise Stopped("stopped while a refit was awaited")
            send(session)

        awaited = []
        monkeypatch.setattr(Session, "send_snapshot", first_awaits_in_vain)
    monkeypatch.undo()
    kept = [store.state().snapshot is not None for store in stores[:2]]
    assert sorted(kept) == [False, True]
    assert ["without a snapshot" in said(store) for store in stores[:2]] == [not k for k in kept]


def test_a_feed_with_nothing_new_needs_no_snapshot_and_is_not_said_to_lack_one(
    stores, embedded_url, feed
):
    store = stores[0]
    push(store, rows(30, 0))
    names = [store.keys.feed, f"{feed}-none"]
    with running(names, embedded_url):
        wait(lambda: has_answered(store, 30))
    before = store.state().snapshot
    with running(names, embedded_url, grace=0.0):
        wait(lambda: store.state().epoch == 2 and '"began"' in said(store))
    assert store.state().snapshot == before
    assert "seq 30" in said(store)
