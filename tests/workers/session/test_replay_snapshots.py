"""Snapshots that a replay leaves: proven, fenced, two are kept; the next start goes on there."""

import pytest
from session_steps import recovery, taken_over
from world import CONFIG, COUNT, drain

from workers.config.settings import Limits
from workers.errors import Fenced, ReplayMismatch
from workers.feed.position import parse_id
from workers.session import snapshots as snapshot_policy
from workers.session.session import Session, SessionOptions

SLICE = 20


def begun(store, **options):
    """Return a session that has still to take the feed over, in steps."""
    made = recovery(store, CONFIG, Limits(), slice=SLICE, replay_snapshot_seconds=0.0)
    return Session(made, SessionOptions(snapshot_every=10**6, **options))


def take_over(store, **options):
    return taken_over(begun(store, **options))


def snapshots(store):
    """Return where the kept snapshots stand, the newest first."""
    return [int(pointer.cursor.split(b"-")[0]) for pointer in store.state().snapshots]


@pytest.fixture(autouse=True)
def _always_due(monkeypatch):
    monkeypatch.setattr(snapshot_policy, "REPLAY_SNAPSHOT_REST", 0.0)


@pytest.fixture
def world(world):
    """A feed whose entries are all answered, and which has no snapshot."""
    world.push()
    world.answer(snapshot_every=10**6)
    assert world.store.state().snapshots == ()
    return world


def test_a_replay_leaves_snapshots_and_the_next_start_goes_on_from_the_newest(world):
    store, reached = world.store, []
    for _ in range(5):
        running = begun(store)
        before = snapshots(store)
        while snapshots(store) == before:
            assert not running.recover_step()
        reached.append(snapshots(store)[0])
    assert reached == sorted(set(reached))
    assert snapshots(store) == reached[:-3:-1]
    assert len([key for key in store.snapshot_keys() if ":memory:" not in key]) == 2
    running = take_over(store)
    assert running.unsaved == COUNT - snapshots(store)[0] <= SLICE
    world.check()


def test_what_comes_after_such_a_replay_is_what_would_have_come(world):
    world.entries += world.entries
    take_over(world.store)
    world.push(COUNT)
    drain(take_over(world.store), 2 * COUNT)
    world.check()


def test_input_is_trimmed_up_to_the_older_of_them_and_never_within_the_window(world):
    take_over(world.store)
    older = world.store.state().previous
    oldest = world.store.call("XRANGE", world.store.keys.input, "-", "+", "COUNT", 1)[0][0]
    assert oldest > b"0-0"
    assert parse_id(oldest) <= parse_id(older.cursor)
    learned = world.store.state().position.n - CONFIG.window
    assert parse_id(oldest)[0] <= learned + COUNT // 50 + 1  # one in fifty is not learned
    take_over(world.store)


def test_input_that_is_kept_is_not_trimmed(world):
    take_over(world.store, keep_input=True)
    assert world.store.length(world.store.keys.input) == COUNT
    newest, older = snapshots(world.store)
    assert COUNT - 2 * SLICE <= older < newest < COUNT


def test_a_replay_that_gives_other_bytes_leaves_none(world):
    world.store.call("HSET", world.store.keys.state, "digest", "11" * 32)
    with pytest.raises(ReplayMismatch):
        take_over(world.store)
    assert snapshots(world.store) == []


def test_no_snapshot_is_left_before_a_missing_or_wrong_answer(world):
    """What is stored proves nothing of what came before it; after it the chain is whole."""
    store = world.store
    store.call("XTRIM", store.keys.out, "MINID", f"{COUNT // 2}-0")
    running = begun(store)
    while not snapshots(store):
        assert not running.recover_step()
    assert snapshots(store)[0] in range(COUNT // 2 - 1, COUNT // 2 + SLICE)
    take_over(store)


def test_a_replay_of_a_worker_that_was_replaced_leaves_none(world):
    running = begun(world.store)
    running.recover_step()
    with world.open() as other:
        other.fence("successor", None)
        before = other.state()
        with pytest.raises(Fenced):
            taken_over(running)
        assert other.state() == before


def test_a_state_that_stands_elsewhere_is_found_by_the_next_commit(world):
    running = begun(world.store)
    running.recover_step()
    world.store.call("HSET", world.store.keys.state, "cursor", "1-0")
    before = world.store.state()
    taken_over(running)
    assert world.store.state() == before
