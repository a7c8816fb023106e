"""Many feeds in one process, whose refits take effect at once: no feed waits for another's."""

import threading
from contextlib import ExitStack

import pytest
from held_refits import held_refits, slow_refits
from many_feeds import answer_alone, contents, has_answered, running, settings
from world import push, rows, wait_until

from workers.broker.store import Store
from workers.refit.messages import TASK
from workers.refit.schedule import Schedule
from workers.session.session import Session

COUNT = 130

MODES = {
    "refit_lag = 0": {"refit_lag": 0},
    "early refits": {"refit_lag": None},
}


@pytest.fixture
def feeds(embedded_url, feed):
    """Make stores of feeds on the server, of which each begins with the name of the test's feed."""
    stores = []

    def make(*suffixes):
        stores.extend(Store(embedded_url, f"{feed}-{suffix}", block_ms=20) for suffix in suffixes)
        return stores[-len(suffixes) :]

    yield make
    for store in stores:
        store.close()


def leaving_snapshots(monkeypatch, every, **changed):
    """Return settings with which each feed leaves a snapshot after so many entries of its own."""
    monkeypatch.setattr("workers.config.settings.SNAPSHOT_EVERY", every)
    return settings(**changed, replay_budget=100_000)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batch", [1, 7, 64])
def test_where_refits_are_slow_feeds_have_the_bytes_of_workers_of_their_own(
    feeds, embedded_url, feed, monkeypatch, batch, mode
):
    given = settings(**MODES[mode], batch=batch)
    together, alone = feeds("a", "b"), feeds("alone-a", "alone-b")
    for seed, stores in enumerate(zip(together, alone, strict=True)):
        for store in stores:
            push(store, rows(COUNT, seed))
            store.register()
    for store in alone:
        answer_alone(store, COUNT, settings(**MODES[mode]), inline=True)
    with slow_refits(monkeypatch, 0.02), running([f"{feed}-?"], embedded_url, settings=given):
        wait_until(lambda: all(has_answered(store, COUNT) for store in together))
    assert [contents(store) for store in together] == [contents(store) for store in alone]


@pytest.mark.parametrize("mode", MODES)
def test_a_feed_is_answered_while_a_refit_that_takes_effect_at_once_runs_for_another(
    feeds, embedded_url, monkeypatch, mode
):
    given = settings(**MODES[mode], replay_budget=1000)
    new, settled, alone = feeds("new", "settled", "alone")
    push(settled, rows(45, 0))
    with running([new.keys.feed, settled.keys.feed], embedded_url, settings=given):
        wait_until(lambda: has_answered(settled, 45))
        with held_refits(monkeypatch) as held:
            push(new, rows(30, 1))
            assert held.wait(30.0)
            wait_until(lambda: has_answered(new, 10), seconds=20.0)  # they need no refit
            for i, fields in enumerate(rows(5, 2)):
                push(settled, [fields], first=46 + i)
                wait_until(lambda i=i: has_answered(settled, 46 + i), seconds=20.0)
            assert not has_answered(new, 12), "the refit was to be held all the time"
        wait_until(lambda: has_answered(new, 30))
    push(alone, rows(30, 1))
    answer_alone(alone, 30, settings(**MODES[mode]), inline=True)
    assert contents(new) == contents(alone)


def test_the_next_refit_is_submitted_while_the_one_before_it_is_computed(
    feeds, embedded_url, monkeypatch
):
    (feed,), added = feeds("ahead"), []
    add = Schedule.add
    monkeypatch.setattr(
        Schedule, "add", lambda *given: (added.append(given[-1][0]), add(*given))[-1]
    )
    names, given = [feed.keys.feed], settings(replay_budget=1000)
    push(feed, rows(45, 0))
    with running(names, embedded_url, settings=given):
        wait_until(lambda: has_answered(feed, 45))
    push(feed, rows(60, 1), first=46)
    before = added.count(TASK)
    with ExitStack() as block:
        held = block.enter_context(held_refits(monkeypatch))
        with running(names, embedded_url, settings=given):
            assert held.wait(30.0)
            wait_until(lambda: added.count(TASK) == before + 2, seconds=20.0)
            assert not has_answered(feed, 105), "the refit was to be held all the time"
            block.close()
            wait_until(lambda: has_answered(feed, 105))


def test_a_snapshot_that_is_due_holds_up_nobody_while_the_pool_is_busy_and_is_left_afterwards(
    feeds, embedded_url, monkeypatch
):
    new, settled = feeds("new", "settled")
    push(settled, rows(45, 0))
    names, given = [new.keys.feed, settled.keys.feed], leaving_snapshots(monkeypatch, 47)
    with running(names, embedded_url, settings=given):
        wait_until(lambda: has_answered(settled, 45))
        with held_refits(monkeypatch) as held:
            push(new, rows(12, 1))
            assert held.wait(30.0)
            for i, fields in enumerate(rows(5, 2)):
                push(settled, [fields], first=46 + i)
                wait_until(lambda i=i: has_answered(settled, 46 + i), seconds=20.0)
            assert settled.state().snapshot is None
        wait_until(lambda: has_answered(new, 12))
        for i, fields in enumerate(rows(5, 3)):
            push(settled, [fields], first=51 + i)
            wait_until(lambda i=i: has_answered(settled, 51 + i))
        wait_until(lambda: settled.state().snapshot is not None)  # while the process goes on


@pytest.mark.parametrize("mode", MODES)
def test_a_feed_is_answered_while_another_is_replayed_through_such_refits(
    feeds, embedded_url, monkeypatch, mode
):
    given = settings(**MODES[mode], replay_budget=1000)
    killed, settled, alone = feeds("killed", "settled", "alone")
    names = [killed.keys.feed, settled.keys.feed]
    push(settled, rows(45, 0))
    with running(names, embedded_url, settings=given):
        wait_until(lambda: has_answered(settled, 45))
    push(killed, rows(40, 1))
    with running(names[:1], embedded_url, settings=given, grace=0.0):
        wait_until(lambda: has_answered(killed, 40))
    assert killed.state().snapshot is None
    with held_refits(monkeypatch) as held, running(names, embedded_url, settings=given):
        assert held.wait(30.0)
        for i, fields in enumerate(rows(5, 2)):
            push(settled, [fields], first=46 + i)
            wait_until(lambda i=i: has_answered(settled, 46 + i), seconds=20.0)
        push(killed, rows(30, 3), first=41)
        assert not has_answered(killed, 41), "the refit was to be held all the time"
    with running(names, embedded_url, settings=given):
        wait_until(lambda: has_answered(killed, 70))
    push(alone, [*rows(40, 1), *rows(30, 3)])
    answer_alone(alone, 70, settings(**MODES[mode]), inline=True)
    assert contents(killed) == contents(alone)


@pytest.mark.parametrize("mode", MODES)
def test_a_feed_that_is_stopped_again_and_again_at_such_refits_has_the_same_bytes(
    feeds, embedded_url, monkeypatch, mode
):
    given = leaving_snapshots(monkeypatch, 15, **MODES[mode])
    store, alone = feeds("a", "alone")
    for each in (store, alone):
        push(each, rows(COUNT, 4))
    with slow_refits(monkeypatch, 0.02):
        for reached, grace in (
            (10, 10.0),
            (20, 0.0),
            (35, 0.0),
            (41, 10.0),
            (60, 0.0),
            (COUNT, 10.0),
        ):
            with running(
                [store.keys.feed, f"{alone.keys.feed}-none"],
                embedded_url,
                settings=given,
                grace=grace,
            ):
                wait_until(lambda reached=reached: has_answered(store, reached))
    answer_alone(alone, COUNT, settings(**MODES[mode]), inline=True)
    assert contents(store) == contents(alone)


def test_a_hot_feed_whose_every_batch_ends_at_a_refit_leaves_snapshots(
    feeds, embedded_url, monkeypatch
):
    (store,) = feeds("hot")
    push(store, rows(COUNT, 5))
    given = leaving_snapshots(monkeypatch, 15, refit_lag=0, refit_every=10)
    with (
        slow_refits(monkeypatch, 0.02),
        running([store.keys.feed, f"{store.keys.feed}-none"], embedded_url, settings=given),
    ):
        wait_until(lambda: has_answered(store, COUNT))
        assert store.state().previous.n > 90


def timed(count, seed):
    """Return entries that come a second apart, but for a pause of a minute before the 41st."""
    times = [1000 * i + 60_000 * (i >= 40) for i in range(count)]
    return [(*fields, "time", str(at)) for fields, at in zip(rows(count, seed), times, strict=True)]


def test_a_feed_is_answered_while_one_entry_of_another_waits_for_a_refit_in_its_midst(
    feeds, embedded_url, monkeypatch
):
    """After a pause the horizon of forty examples passes at once: three refits are due within."""
    late = {"horizon": "40s", "refit_lag": 0, "replay_budget": 1000}
    new, settled, alone = feeds("new", "settled", "alone")
    given = {new.keys.feed: settings(**late), settled.keys.feed: settings(replay_budget=1000)}
    push(settled, rows(45, 0))
    push(new, timed(60, 1)[:40])
    with running([*given], embedded_url, settings_of=given.__getitem__):
        wait_until(lambda: has_answered(settled, 45) and has_answered(new, 40))
        with held_refits(monkeypatch) as held:
            push(new, timed(60, 1)[40:], first=41)
            assert held.wait(30.0)
            for i, fields in enumerate(rows(5, 2)):
                push(settled, [fields], first=46 + i)
                wait_until(lambda i=i: has_answered(settled, 46 + i), seconds=20.0)
            assert not has_answered(new, 41), "the refit was to be held all the time"
        wait_until(lambda: has_answered(new, 60))
    push(alone, timed(60, 1))
    answer_alone(alone, 60, settings(**late), inline=True)
    assert contents(new) == contents(alone)


def test_a_feed_that_is_stopped_in_the_midst_of_an_entry_commits_it_and_leaves_a_snapshot(
    feeds, embedded_url, monkeypatch
):
    late = {"horizon": "40s", "refit_lag": 0, "replay_budget": 1000}
    store, alone = feeds("a", "alone")
    names, given = [store.keys.feed, f"{store.keys.feed}-none"], settings(**late)
    send, is_ending = Session.send_snapshot, threading.Event()

    def note(session):
        is_ending.set()
        send(session)

    push(store, timed(60, 1)[:40])
    with running(names, embedded_url, settings=given) as process:
        wait_until(lambda: has_answered(store, 40))
        with held_refits(monkeypatch) as held:
            push(store, timed(60, 1)[40:], first=41)
            assert held.wait(30.0)
            monkeypatch.setattr(Session, "send_snapshot", note)
            process.stop.request()
            assert is_ending.wait(30.0)
            assert not has_answered(store, 41), "the refit was to be held all the time"
    left = store.state()
    assert left.position.seq > 40
    assert left.snapshot is not None
    assert left.snapshot.cursor == left.position.cursor
    with running(names, embedded_url, settings=given):
        wait_until(lambda: has_answered(store, 60))
    push(alone, timed(60, 1))
    answer_alone(alone, 60, settings(**late), inline=True)
    assert contents(store) == contents(alone)
