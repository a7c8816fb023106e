"""Snapshots in parts: no larger than Redis takes, whole or not at all."""

import pytest
from world import CONFIG, COUNT, drain, payloads, push, rows, session

from online_svm.predictor.online_predictor import OnlinePredictor
from workers.admin.reset import reset
from workers.admin.restore import backup_of
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import InvalidStoredSnapshot, WorkerError
from workers.feed.agreement import agreement
from workers.feed.commit import Commit, SnapshotMove
from workers.feed.position import START
from workers.feed.state import Pointer
from workers.session import snapshots
from workers.session.preflight import check_snapshots

SMALL = 1500
"""Bytes of a part: some ten of them make a snapshot here."""


@pytest.fixture
def parted(store):
    """A feed in the middle, its snapshots in parts."""
    push(store, rows())
    drain(session(store, batch=10, snapshot_every=50, part_bytes=SMALL), 130)
    return store


def parts_of(store):
    return {key for pointer in store.state().snapshots for key in pointer.keys(store.keys)}


def test_snapshots_in_parts_change_no_byte_and_leave_nothing_behind(parted, redis_url, feed):
    state = parted.state()
    assert all(pointer.parts > 5 for pointer in state.snapshots)
    assert all(0 < parted.call("STRLEN", key) <= SMALL for key in parts_of(parted))
    drain(session(parted, batch=10, snapshot_every=50, part_bytes=SMALL), 160)
    # From parts to one key, as when the bound is raised.
    drain(session(parted, batch=10, snapshot_every=50), COUNT)
    with Store(redis_url, f"{feed}-whole", block_ms=20) as whole:
        push(whole, rows())
        drain(session(whole, batch=10, snapshot_every=50), COUNT)
        assert payloads(whole) == payloads(parted)
        assert whole.state().position == parted.state().position
        assert whole.state().snapshot.parts == 1
    assert set(parted.snapshot_keys()) == parts_of(parted)
    assert all(parted.call("TTL", key) == -1 for key in parts_of(parted))


def test_the_parts_together_are_the_bytes_that_one_key_would_hold(parted):
    state = parted.state()
    data = b"".join(parted.call("GET", key) for key in state.snapshot.keys(parted.keys))
    assert backup_of(parted).data == data
    whole = Pointer(state.snapshot.n, state.snapshot.sha256, state.snapshot.cursor)
    stored = snapshots.decode(data, whole, parted.keys.feed, state.agreement.config_hash)
    predictor = OnlinePredictor(session(parted)._predictor.config)
    predictor.restore(stored.body)
    assert predictor.n == state.snapshot.n


@pytest.mark.parametrize("damage", ["gone", "cut", "swapped"])
def test_a_snapshot_with_one_part_damaged_is_passed_over_and_all_its_parts_go(parted, damage):
    newest = parted.state().snapshot.keys(parted.keys)
    second, third = (parted.call("GET", key) for key in newest[1:3])
    if damage == "gone":
        parted.call("DEL", newest[1])
    elif damage == "cut":
        parted.call("SET", newest[1], second[:-1])
    else:
        parted.call("MSET", newest[1], third, newest[2], second)
    assert len(check_snapshots(parted, parted.state())) == 1
    drain(session(parted, batch=10, snapshot_every=50, part_bytes=SMALL), COUNT)
    assert check_snapshots(parted, parted.state()) == ()
    assert set(parted.snapshot_keys()) == parts_of(parted)


def test_reset_takes_all_parts_away(parted):
    reset(parted, with_input=False)
    assert not parted.has_snapshots()


@pytest.mark.parametrize("text", [b":1", b":0", b":2:3", b":x"])
def test_a_pointer_with_a_forged_number_of_parts_is_damaged(text):
    whole = b"5:%b:1-0" % (b"ab" * 32)
    assert Pointer.parse(whole).parts == 1
    with pytest.raises(ValueError, match="number"):
        Pointer.parse(whole + text)


def test_a_snapshot_larger_than_redis_takes_as_one_value_is_kept_in_parts(own_redis, feed):
    body = bytes(range(256)) * (3 << 12)  # 3 MiB
    with Store(own_redis.url, feed) as store:
        state = store.fence("tester", agreement(CONFIG, Limits()))
        store.call("CONFIG", "SET", "proto-max-bulk-len", 1 << 20)
        agreed = state.agreement.config_hash
        whole, data = snapshots.encode(feed, agreed, START, body)
        with pytest.raises(WorkerError):
            store.finish_snapshot(store.put_snapshot(whole, data))
        pointer, data = snapshots.encode(feed, agreed, START, body, part_bytes=1 << 20)
        assert pointer.parts == 4
        store.finish_snapshot(store.put_snapshot(pointer, data))
        store.commit(Commit(state.epoch, START, START, move=SnapshotMove(pointer, None)))
        assert snapshots.read(store, store.state().snapshot, agreed).body == body
        with pytest.raises(InvalidStoredSnapshot, match="gone"):
            snapshots.read(store, whole, agreed)
