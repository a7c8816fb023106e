"""One feed of a process, step by step: what it needs, and that no step waits for a refit."""

import threading
import time
from contextlib import closing, contextmanager

import pytest
from many_feeds import has_answered, settings
from refits import held_refits
from session_steps import shared_pool
from world import push, rows, wait_until

from workers.broker.store import Store
from workers.runner.feed_task import FeedTask
from workers.runner.opening import FeedOpening, SnapshotFetcher, WorkerContext
from workers.runner.redis_context import redis_context
from workers.session.known_feeds import KnownFeeds
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
        task.start()
        while task.start_step() == "recovery":
            pass
        yield task, budget
        task.stop()


def arrive(task):
    """Tell a feed that there is input."""
    for read in task.reads():
        read.input.put([], True)


def answer(task, store, count):
    """Let a feed answer all that was pushed."""

    def is_done():
        arrive(task)
        if task.need() == "turn":
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
            while task.need() != "refit":
                count += 1
                push(store, rows(count, 0)[-1:], first=count)
                answer(task, store, count)
            assert held.wait(30.0)
            push(store, rows(count + 5, 0)[-5:], first=count + 1)
            arrive(task)
            assert task.need() == "turn"
            yield task, budget
        budget.forget("another")
        task.blocked_until = 0.0
        answer(task, store, count + 5)


def test_a_turn_beyond_the_replay_budget_waits_for_no_refit(store, monkeypatch):
    with waiting_for_a_refit(store, monkeypatch) as (task, budget):
        budget.note("another", 1001)  # the commits of others, between the need and the turn
        needs = []
        turn = threading.Thread(target=lambda: needs.append(task.work()), daemon=True)
        turn.start()
        turn.join(30.0)
        assert needs == ["refit"], "it waits for the refit, which is held for longer"


def test_a_feed_whose_consumers_are_behind_takes_its_refit_meanwhile(store, monkeypatch):
    with waiting_for_a_refit(store, monkeypatch) as (task, _):
        task.blocked_until = time.monotonic() + 60.0
        assert task.need() == "refit"
