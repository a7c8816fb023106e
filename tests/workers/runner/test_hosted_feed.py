"""One feed of a process, step by step: what it needs, and that no step waits for a refit."""

import threading
import time
from contextlib import closing, contextmanager

import pytest
from held_refits import held_refits
from many_feeds import has_answered, settings
from session_steps import shared_pool
from world import push, rows, wait_until

from workers.broker.store import Store
from workers.runner.hosted_feed import HostedFeed
from workers.runner.link import linked
from workers.runner.opening import OwnInput, Shared
from workers.runner.replay_budget import ReplayBudget
from workers.runner.snapshot_fetcher import SnapshotFetcher
from workers.session.known_feeds import KnownFeeds
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
        linked(given, url, stop, False, KnownFeeds(url)) as link,
        closing(SnapshotFetcher(url, stop.wake)) as fetcher,
    ):
        shared = Shared(
            link, "test", lambda used, told: pool.refitter(used.predictor, told, stop),
            lambda *_: None, budget, fetcher,
        )  # fmt: skip
        hosted = HostedFeed(
            store.keys.feed, OwnInput(store.keys.feed, given, link), shared, Telemetry()
        )
        hosted.begin()
        while hosted.start_some() == "recovery":
            pass
        yield hosted, budget
        hosted.end()


def arrive(hosted):
    """Tell a feed that there is input."""
    for wanted in hosted.wanted():
        wanted.input.hand_in([], True)


def answer(hosted, store, count):
    """Let a feed answer all that was pushed."""

    def is_done():
        arrive(hosted)
        if hosted.need() == "turn":
            hosted.work()
        hosted.finish_commit()
        return has_answered(store, count)

    wait_until(is_done)


@contextmanager
def waiting_for_a_refit(store, monkeypatch):
    """Yield a feed that has input and may answer it before the refit that it needs, with a budget.

    The refit does not end within the block.
    """
    given = settings(replay_budget=1000)
    push(store, rows(45, 0))
    with taken_over(store, given) as (hosted, budget):
        answer(hosted, store, 45)
        count = 45
        with held_refits(monkeypatch) as held:
            while hosted.need() != "refit":
                count += 1
                push(store, rows(count, 0)[-1:], first=count)
                answer(hosted, store, count)
            assert held.wait(30.0)
            push(store, rows(count + 5, 0)[-5:], first=count + 1)
            arrive(hosted)
            assert hosted.need() == "turn"
            yield hosted, budget
        budget.forget("another")
        hosted.open_at = 0.0
        answer(hosted, store, count + 5)


def test_a_feed_whose_turn_comes_when_it_may_go_ahead_no_more_waits_for_no_refit(
    store, monkeypatch
):
    with waiting_for_a_refit(store, monkeypatch) as (hosted, budget):
        budget.note("another", 1001)  # the commits of others, between the need and the turn
        needs, began = [], time.monotonic()
        turn = threading.Thread(target=lambda: needs.append(hosted.work()), daemon=True)
        turn.start()
        turn.join(5.0)
        assert needs == ["refit"]
        assert time.monotonic() - began < 5.0


def test_a_feed_whose_consumers_are_behind_takes_its_refit_meanwhile(store, monkeypatch):
    with waiting_for_a_refit(store, monkeypatch) as (hosted, _):
        hosted.open_at = time.monotonic() + 60.0
        assert hosted.need() == "refit"
