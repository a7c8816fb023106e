"""One feed of a process, step by step: what it needs, and that no step waits for a refit."""

import threading
import time
from contextlib import closing, contextmanager

import pytest
from many_feeds import has_answered, settings
from refits import held_refits
from session_steps import shared_pool
from world import push, rows, wait_until

from workers.broker.leases import FeedLease
from workers.broker.store import Store
from workers.errors import Stopped, Unavailable
from workers.runner.feed_states import TaskState
from workers.runner.feed_task import FeedOpening, FeedTask, SnapshotFetcher, WorkerContext
from workers.runner.redis_context import redis_context
from workers.session.preflight import KnownFeeds
from workers.session.session import Session
from workers.session.snapshots import ReplayBudget
from workers.session.telemetry import Telemetry
from workers.stop import Stop


@pytest.fixture
def store(embedded_url, feed):
    with Store(embedded_url, feed, block_ms=20) as store:
        yield store


@contextmanager
def taken_over(store, given):
    """Take a feed over; yield it, and the budget that it shares."""
    stop, url, pool, budget = Stop(), store.url, shared_pool(), ReplayBudget(1000)
    with (
        redis_context(given, url, stop, KnownFeeds(url)) as redis,
        closing(SnapshotFetcher(url, stop.wake)) as fetcher,
    ):
        context = WorkerContext(
            redis, "test", lambda used, told: pool.refitter(used.predictor, told, stop),
            lambda *_: None, budget, fetcher,
        )  # fmt: skip
        task = FeedTask(
            store.keys.feed, FeedOpening(store.keys.feed, given, redis), context, Telemetry()
        )
        task.lease = FeedLease(store.keys.feed, store.keys.lease, 10.0, is_held=True)
        task.follow_lease()
        task.start()
        while task.state is TaskState.STARTING:
            task.start_step()
        yield task, budget
        task.stop()


def arrive(task):
    """Tell a feed that there is input."""
    for read in task.reads():
        read.input.put([], True)


def found(task):
    """Let a feed look what it can do; return its state."""
    task.look()
    return task.state


def answer(task, store, count):
    """Let a feed answer all that was pushed."""

    def is_done():
        arrive(task)
        if found(task) is TaskState.READY:
            task.work()
        task.finish_commit()
        return has_answered(store, count)

    wait_until(is_done)


@contextmanager
def waiting_for_a_refit(store, monkeypatch):
    """Yield a feed that has input and may answer it before the refit that it needs, with a budget.

    The refit does not end within the block.
    """
    given = settings(replay_budget=1000)
    push(store, rows(45, 0))
    with taken_over(store, given) as (task, budget):
        answer(task, store, 45)
        count = 45
        with held_refits(monkeypatch) as held:
            while found(task) is not TaskState.REFIT:
                count += 1
                push(store, rows(count, 0)[-1:], first=count)
                answer(task, store, count)
            assert held.wait(30.0)
            push(store, rows(count + 5, 0)[-5:], first=count + 1)
            arrive(task)
            assert found(task) is TaskState.READY
            yield task, budget
        budget.forget("another")
        task.blocked_until = 0.0
        answer(task, store, count + 5)


def test_a_turn_beyond_the_replay_budget_waits_for_no_refit(store, monkeypatch):
    with waiting_for_a_refit(store, monkeypatch) as (task, budget):
        budget.note("another", 1001)  # the commits of others, between the need and the turn
        turn = threading.Thread(target=task.work, daemon=True)
        turn.start()
        turn.join(30.0)
        assert (turn.is_alive(), task.state) == (False, TaskState.REFIT), (
            "it waits for the refit, which is held for longer"
        )


def test_a_feed_whose_consumers_are_behind_takes_its_refit_meanwhile(store, monkeypatch):
    with waiting_for_a_refit(store, monkeypatch) as (task, _):
        task.blocked_until = time.monotonic() + 60.0
        assert found(task) is TaskState.REFIT


def failing(monkeypatch, method, error):
    """Let a method of sessions raise an error."""

    def fail(*_):
        raise error

    monkeypatch.setattr(Session, method, fail)


def test_a_feed_keeps_its_session_while_redis_is_silent(store, monkeypatch):
    push(store, rows(10, 0))
    with taken_over(store, settings()) as (task, _):
        session = task.session
        arrive(task)
        assert found(task) is TaskState.READY
        for method, step in (("answer", task.work), ("resume", task.resume)):
            with monkeypatch.context() as silent:
                failing(silent, method, Unavailable("no reply"))
                step()
            assert (task.state, task.session, task.reason) == (
                TaskState.SILENT,
                session,
                "no reply",
            )
        task.resume()
        assert (task.state, task.reason) == (TaskState.IDLE, None)
        answer(task, store, 10)


def test_a_silent_redis_parks_a_feed_that_recovers(store, monkeypatch):
    push(store, rows(10, 0))
    with taken_over(store, settings()) as (task, _):
        task.session.reload()
        assert found(task) is TaskState.STARTING
        failing(monkeypatch, "recover_step", Unavailable("no reply"))
        task.start_step()
        assert (task.state, task.session, task.error) == (TaskState.PARKED, None, None)


def test_a_feed_whose_step_was_interrupted_leaves_no_snapshot(store, monkeypatch):
    push(store, rows(10, 0))
    with taken_over(store, settings()) as (task, _):
        answer(task, store, 10)
        push(store, rows(11, 0)[10:], first=11)
        arrive(task)
        with monkeypatch.context() as interrupted:
            failing(interrupted, "answer", Stopped("stopped"))
            task.work()
        task.finish_commit()
        assert task.state is TaskState.STOPPED
    assert store.state().snapshot is None
