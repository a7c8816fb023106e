"""The replay: where it begins, and what it shows of a stream that differs."""

import pytest
from world import drain, push, rows, session

from workers.broker.store import Store
from workers.errors import InputLost
from workers.session.replay import check_same, compare, entries_of, kept_positions, restored


@pytest.fixture
def store(redis_url, feed):
    """A feed of 120 answers, with a snapshot amid them and one after them."""
    with Store(redis_url, feed, block_ms=20) as store:
        push(store, rows(120))
        running = session(store, batch=20, snapshot_every=1000)
        for count in (60, 120):
            drain(running, count)
            running.snapshot()
        yield store


def damage(store, pointer):
    key = pointer.keys(store.keys)[0]
    store.call("SET", key, b"no snapshot")


def test_a_replay_gives_every_entry_that_is_stored(store):
    state = store.state()
    replay = restored(store, state, [None])
    found = list(replay.outcomes(store, state.position.cursor))
    assert replay.position == state.position
    for place, stream in enumerate(store.keys.outputs):
        stored = [entry for page in store.pages(stream, b"0-0") for entry in page]
        computed = [entry for outcome in found for entry in entries_of(outcome)[place]]
        assert len(computed) == {0: 120, 1: 11, 2: 0, 3: 3}[place]
        assert all(pair.is_same for pair in compare(stored, computed))


def test_the_first_snapshot_that_can_be_used_is_restored_and_the_others_are_told(store):
    state, told = store.state(), []
    damage(store, state.snapshot)
    replay = restored(
        store,
        state,
        state.snapshots,
        on_unusable=lambda pointer, error: told.append((pointer, str(error))),
    )
    assert replay.position.cursor == state.previous.cursor != state.snapshot.cursor
    assert told == [(state.snapshot, "its SHA-256 is not the one recorded: it is damaged")]
    assert list(kept_positions(store, state)) == [replay.position]
    assert replay.run(store, state.position.cursor) == state.position


def test_without_a_snapshot_that_can_be_used_there_is_no_replay(store):
    state = store.state()
    for pointer in state.snapshots:
        damage(store, pointer)
    assert restored(store, state, state.snapshots) is None


def test_a_replay_that_stands_at_the_end_reads_no_input(store):
    state = store.state()
    store.call("DEL", store.keys.input)
    replay = restored(store, state, [state.snapshot])
    assert replay.run(store, state.position.cursor) == state.position


def test_what_differs_is_found_by_id_in_stored_and_computed_entries():
    stored = [(b"1-0", [b"p", b"A"]), (b"2-0", [b"p", b"B"]), (b"3-0", [b"p", b"C"])]
    computed = [(b"1-0", [b"p", b"A"]), (b"2-0", [b"p", b"X"]), (b"4-0", [b"p", b"D"])]
    different = {pair.id: pair[1:] for pair in compare(stored, computed) if not pair.is_same}
    assert different == {
        b"2-0": ([b"p", b"B"], [b"p", b"X"]),
        b"3-0": ([b"p", b"C"], None),
        b"4-0": (None, [b"p", b"D"]),
    }


def test_a_replay_of_other_entries_than_were_answered_is_a_loss_of_input(store):
    """Found before the bytes are compared: they differ too, and would be blamed."""
    state = store.state()
    store.call("XDEL", store.keys.input, "100-0")
    replay = restored(store, state, [state.previous])
    found = replay.run(store, state.position.cursor)
    with pytest.raises(InputLost, match=r"120 input entries were answered .* reaches 119 at 120-0"):
        check_same(store.keys.feed, found, state.position)
