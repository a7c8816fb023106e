"""The sum of the replays after a kill is bounded: feeds leave snapshots early."""

import pytest
from many_feeds import alone, contents, fill, running, settings, wait_for
from world import push, rows, wait_until

from workers.session import snapshots

pytestmark = pytest.mark.servers("embedded")


@pytest.fixture
def stores(feeds):
    opened = feeds(*"0123")
    for seed, store in enumerate(opened):
        fill(rows(150, seed)[:130], store)
    return opened


def lacking(store):
    """Return how many entries the newest snapshot of a feed lacks."""
    state = store.state()
    if state.snapshot is None:
        return state.position.seq
    kept = snapshots.read(store, state.snapshot, state.pinned.config_hash)
    return state.position.seq - kept.position.seq


def settle(stores):
    """Wait until the feeds keep the budget of 100, and let them lack something."""
    wait_until(lambda: sum(map(lacking, stores)) <= 100)
    if not any(map(lacking, stores)):  # each left one at its end, where they were answered in turn
        push(stores[0], rows(150, 0)[130:], first=131)
        wait_for(150, stores[0])


def check_early_snapshots(stores, url, feed, **given):
    with running([f"{feed}-?"], url, settings=settings(replay_budget=100, **given)):
        wait_for(130, *stores)
        settle(stores)
        assert any(lacking(store) for store in stores), "no more of them than needed"
    for seed, store in enumerate(stores):
        count = store.state().position.seq
        assert contents(store) == alone(url, rows(150, seed)[:count], **given)


def test_snapshots_are_left_early_until_all_feeds_lack_the_budget_at_most(stores, redis_url, feed):
    check_early_snapshots(stores, redis_url, feed)


@pytest.mark.slow
def test_early_snapshots_wait_for_the_refits_of_a_pool(stores, redis_url, feed, lagging):
    check_early_snapshots(stores, redis_url, feed, refit_processes=1)


def test_within_the_budget_no_snapshot_is_left_early(stores, redis_url, feed):
    with running([f"{feed}-?"], redis_url, settings=settings(replay_budget=4 * 130)):
        wait_for(130, *stores)
        assert [store.state().snapshot for store in stores] == [None] * 4
