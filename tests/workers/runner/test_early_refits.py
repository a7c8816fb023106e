"""Many feeds in one process, whose refits take effect at once: no feed waits for another's."""

import threading
from contextlib import ExitStack

import pytest
from many_feeds import alone, contents, has_answered, running, settings, wait_for
from refits import held_refits, slow_refits
from world import push, rows, wait_until

from workers.refit.process import TASK
from workers.refit.schedule import Schedule
from workers.session.session import Session

pytestmark = pytest.mark.servers("embedded")

COUNT = 130
LATE = {"horizon": "40s"}


def lazy(**changed):
    """Return settings with which no feed leaves a snapshot early."""
    return settings(**{"replay_budget": 1000} | changed)


def leaving_snapshots(monkeypatch, every, **changed):
    """Return settings with which each feed leaves a snapshot after so many entries of its own."""
    monkeypatch.setattr("workers.config.settings.SNAPSHOT_EVERY", every)
    return settings(**changed, replay_budget=100_000)


def check_it_is_answered(store, count=5):
    """Push entries one by one: each is answered soon."""
    first = store.state().position.seq + 1
    for i, fields in enumerate(rows(count, 2), first):
        push(store, [fields], first=i)
        wait_for(i, store)


def timed(count, seed):
    """Return entries that come a second apart, but for a pause of a minute before the 41st.

    The horizon of forty examples passes at once then: three refits are due within that entry.
    """
    times = [1000 * i + 60_000 * (i >= 40) for i in range(count)]
    return [(*fields, "time", str(at)) for fields, at in zip(rows(count, seed), times, strict=True)]


@pytest.mark.parametrize(
    ("given", "entries", "held_at"),
    [
        pytest.param({}, [[], rows(30, 1)], 12, id="early"),
        pytest.param(LATE, [timed(60, 1)[:40], timed(60, 1)[40:]], 41, id="within one entry"),
    ],
)
def test_a_refit_of_one_feed_delays_no_other(
    feeds, redis_url, monkeypatch, given, entries, held_at
):
    new, settled = feeds("new", "settled")
    kinds = {new.keys.feed: lazy(**given), settled.keys.feed: lazy()}
    (before, after), whole = entries, [*entries[0], *entries[1]]
    push(settled, rows(45, 0))
    push(new, before)
    with running([*kinds], redis_url, settings_of=kinds.__getitem__):
        wait_for(45, settled)
        wait_for(len(before), new)
        with held_refits(monkeypatch) as held:
            push(new, after, first=len(before) + 1)
            assert held.wait(60.0)
            wait_for(held_at - 2, new)  # they need no refit
            check_it_is_answered(settled)
            assert not has_answered(new, held_at), "the refit was to be held all the time"
        wait_for(len(whole), new)
    assert contents(new) == alone(redis_url, whole, **given)


def test_a_refit_is_submitted_while_another_is_computed(feeds, redis_url, monkeypatch):
    (feed,), added = feeds("ahead"), []
    submit = Schedule.submit
    monkeypatch.setattr(
        Schedule, "submit", lambda *given: (added.append(given[-1][0]), submit(*given))[-1]
    )
    push(feed, rows(45, 0))
    with running([feed.keys.feed], redis_url, settings=lazy()):
        wait_for(45, feed)
    push(feed, rows(60, 1), first=46)
    before = added.count(TASK)
    with ExitStack() as block:
        held = block.enter_context(held_refits(monkeypatch))
        with running([feed.keys.feed], redis_url, settings=lazy()):
            assert held.wait(60.0)
            wait_until(lambda: added.count(TASK) == before + 2)
            assert not has_answered(feed, 105), "the refit was to be held all the time"
            block.close()
            wait_for(105, feed)


def test_a_due_snapshot_waits_for_the_pool_and_delays_no_feed(feeds, redis_url, monkeypatch):
    new, settled = feeds("new", "settled")
    push(settled, rows(45, 0))
    given = leaving_snapshots(monkeypatch, 47)
    with running([new.keys.feed, settled.keys.feed], redis_url, settings=given):
        wait_for(45, settled)
        with held_refits(monkeypatch) as held:
            push(new, rows(12, 1))
            assert held.wait(60.0)
            check_it_is_answered(settled)
            assert settled.state().snapshot is None
        wait_for(12, new)

        def is_left():
            check_it_is_answered(settled, 1)  # it is left with an answer, once the pool gave it
            return settled.state().snapshot is not None

        wait_until(is_left)


def test_the_replay_of_one_feed_delays_no_other(feeds, redis_url, monkeypatch):
    killed, settled = feeds("killed", "settled")
    names, given = [killed.keys.feed, settled.keys.feed], lazy()
    push(settled, rows(45, 0))
    with running(names, redis_url, settings=given):
        wait_for(45, settled)
    push(killed, rows(70, 1)[:40])
    with running(names[:1], redis_url, settings=given, grace=0.0):
        wait_for(40, killed)
    assert killed.state().snapshot is None
    with held_refits(monkeypatch) as held, running(names, redis_url, settings=given):
        assert held.wait(60.0)
        check_it_is_answered(settled)
        push(killed, rows(70, 1)[40:], first=41)
        assert not has_answered(killed, 41), "the refit was to be held all the time"
    with running(names, redis_url, settings=given):
        wait_for(70, killed)
    assert contents(killed) == alone(redis_url, rows(70, 1))


def test_a_hot_feed_leaves_snapshots_between_its_refits(feeds, redis_url, monkeypatch):
    (store,) = feeds("hot")
    push(store, rows(COUNT, 5))
    given = leaving_snapshots(monkeypatch, 15, refit_every=10)
    names = [store.keys.feed, f"{store.keys.feed}-none"]
    with slow_refits(monkeypatch, 0.02), running(names, redis_url, settings=given):
        wait_for(COUNT, store)
        assert store.state().previous.n >= 90


def test_a_stop_within_an_entry_commits_it_and_leaves_a_snapshot(feeds, redis_url, monkeypatch):
    (store,) = feeds("a")
    names, given = [store.keys.feed, f"{store.keys.feed}-none"], lazy(**LATE)
    send, is_ending = Session.send_snapshot, threading.Event()

    def note(session):
        is_ending.set()
        send(session)

    push(store, timed(60, 1)[:40])
    with running(names, redis_url, settings=given) as process:
        wait_for(40, store)
        with held_refits(monkeypatch) as held:
            push(store, timed(60, 1)[40:], first=41)
            assert held.wait(60.0)
            monkeypatch.setattr(Session, "send_snapshot", note)
            process.stop.request()
            assert is_ending.wait(60.0)
            assert not has_answered(store, 41), "the refit was to be held all the time"
    left = store.state()
    assert left.position.seq > 40
    assert left.snapshot.cursor == left.position.cursor
    with running(names, redis_url, settings=given):
        wait_for(60, store)
    assert contents(store) == alone(redis_url, timed(60, 1), **LATE)
