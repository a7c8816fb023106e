"""Every decision about snapshots, as tables; snapshots in parts, whole or not at all."""

import json
import random

import pytest
from world import CONFIG, COUNT, drain, payloads, push, rows, session

from workers.admin.reset import reset
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import InvalidStoredSnapshot, WorkerError
from workers.feed.keys import FeedKeys
from workers.feed.pinned_config import pinned_config
from workers.feed.position import START, Position
from workers.feed.state import Commit, FeedState, PinnedConfig, Pointer, SnapshotMove
from workers.feed.state_fields import Mark
from workers.session import snapshots
from workers.session.preflight import check_snapshots
from workers.session.snapshots import BUDGET_CANDIDATES, KeptSnapshots, ReplayBudget
from workers.session.telemetry import Telemetry

KEYS = FeedKeys("f")


def pointer(n, parts=1):
    """Return the pointer to the snapshot after n entries, all of them learned."""
    return Pointer(n, f"{n:064x}", b"%d-0" % n, parts)


def position(seq):
    return Position(b"%d-0" % seq, seq, seq, bytes(32))


FIRST, SECOND, THIRD = pointer(100), pointer(200), pointer(300, parts=2)


@pytest.mark.parametrize(
    ("unsaved", "is_requested", "expected"),
    [
        (0, False, False),
        (99, False, False),
        (100, False, True),
        (250, False, True),
        (0, True, True),
    ],
)
def test_a_feed_at_work_takes_one_after_so_many_entries_or_on_request(
    unsaved, is_requested, expected
):
    assert snapshots.is_due(unsaved, 100, is_requested) == expected


@pytest.mark.parametrize(
    ("at", "saved", "has_rested", "expected"),
    [
        (50, 0, True, True),
        (50, 0, False, False),  # the last one was a moment ago
        (50, 50, True, False),  # nothing new
        (90, 50, True, False),  # the end of the replay
    ],
)
def test_a_replay_takes_one_of_something_new_before_its_end(at, saved, has_rested, expected):
    found = snapshots.is_due_in_replay(position(at), saved, position(90), has_rested)
    assert found == expected


@pytest.mark.parametrize(("took", "pause"), [(0.0, 0.25), (0.01, 0.25), (0.5, 4.0)])
def test_a_replay_spends_a_ninth_of_its_time_on_snapshots_at_most(took, pause):
    assert snapshots.replay_pause(took) == pause


@pytest.mark.parametrize(
    ("unsaved", "age", "expected"),
    [(0, 0.0, "nothing new"), (0, 9.9, "nothing new"), (1, 7.9, "take"), (1, 8.0, "too late")],
)
def test_a_stopping_feed_takes_one_while_there_is_time(unsaved, age, expected):
    assert snapshots.at_stop(unsaved, age, 10.0) == expected


@pytest.mark.parametrize(("size", "parts"), [(0, 1), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3)])
def test_a_snapshot_is_stored_in_parts(size, parts, monkeypatch):
    monkeypatch.setattr(snapshots, "PART_BYTES", 10)
    assert snapshots.parts_of(size) == parts


@pytest.mark.parametrize(
    ("window", "pending", "expected"), [(None, 0, None), (None, 9, None), (60, 0, 60), (60, 9, 69)]
)
def test_input_is_kept_of_the_window_and_of_delayed_labels(window, pending, expected):
    assert snapshots.kept_examples(window, pending) == expected


@pytest.mark.parametrize(
    ("unusable", "newest", "previous"),
    [((), SECOND, FIRST), ((FIRST,), SECOND, None), ((SECOND,), FIRST, None)],
)
def test_snapshots_that_cannot_be_used_are_not_relied_on(unusable, newest, previous):
    state = FeedState(1, "w", position(250), SECOND, FIRST, PinnedConfig("{}", "00"))
    kept = snapshots.usable(state, unusable)
    assert (kept.newest, kept.previous, kept.unusable) == (newest, previous, unusable)
    assert kept.marks == (FIRST.mark, SECOND.mark)


MARKS = (Mark(0, b"0-0"), Mark(100, b"100-0"), Mark(200, b"200-0"))


@pytest.mark.parametrize(
    ("kept", "examples", "keep_input", "previous", "dropped", "trim"),
    [
        pytest.param(KeptSnapshots(None, None), 60, False, None, [], b"", id="the first"),
        pytest.param(
            KeptSnapshots(SECOND, FIRST, (), MARKS), 60, False, SECOND, [FIRST], b"200-0",
            id="the third drops the first",
        ),
        pytest.param(
            KeptSnapshots(SECOND, FIRST, (), MARKS), 150, False, SECOND, [FIRST], b"100-0",
            id="the window needs more input than a replay",
        ),
        pytest.param(
            KeptSnapshots(SECOND, FIRST, (), MARKS), 60, True, SECOND, [FIRST], b"",
            id="all input is kept",
        ),
        pytest.param(
            KeptSnapshots(FIRST, None, (SECOND,), MARKS), 60, False, FIRST, [SECOND], b"100-0",
            id="one that cannot be used is dropped",
        ),
        pytest.param(
            KeptSnapshots(SECOND, None, (THIRD,), MARKS), 60, False, SECOND, [], b"200-0",
            id="one that is taken again stays",
        ),
    ],
)  # fmt: skip
def test_two_are_kept_and_input_that_neither_they_nor_the_window_need_is_trimmed(
    kept, examples, keep_input, previous, dropped, trim
):
    move = snapshots.move_to(THIRD, kept, KEYS, examples, keep_input)
    assert (move.newest, move.previous, move.trim) == (THIRD, previous, trim)
    assert move.dropped == tuple(key for one in dropped for key in one.keys(KEYS))
    after = snapshots.moved(kept, move)
    assert after == KeptSnapshots(THIRD, kept.newest, (), move.marks)
    assert after.cursor == THIRD.cursor


def test_without_any_the_feed_stands_at_its_start():
    assert KeptSnapshots(None, None).cursor == b"0-0"


def test_the_sum_follows_what_each_feed_lacks():
    choose, budget, expected = random.Random(0), ReplayBudget(500), dict[str, int]()
    for _ in range(2000):
        feed = f"f-{choose.randrange(20)}"
        if choose.random() < 0.1:
            budget.forget(feed)
            expected.pop(feed, None)
        else:
            expected[feed] = choose.randrange(50)
            budget.note(feed, expected[feed])
        assert budget.total == sum(expected.values())
        assert budget.is_exceeded == (budget.total > 500)
        lacking = sorted((n for n in expected.values() if n), reverse=True)
        assert [expected[name] for name in budget.largest()] == lacking[:BUDGET_CANDIDATES]


SMALL = 1500
"""Bytes of a part: some ten of them make a snapshot here."""


@pytest.fixture
def parted(store, monkeypatch):
    """A feed in the middle, its snapshots in parts."""
    monkeypatch.setattr(snapshots, "PART_BYTES", SMALL)
    push(store, rows())
    drain(session(store, batch=10, snapshot_every=50), 130)
    return store


def keys_of_parts(store):
    return {key for pointer in store.state().snapshots for key in pointer.keys(store.keys)}


def test_snapshots_in_parts_change_no_byte_and_leave_nothing_behind(
    parted, redis_url, feed, monkeypatch
):
    state = parted.state()
    assert all(pointer.parts > 5 for pointer in state.snapshots)
    parts = [key for key in keys_of_parts(parted) if ":memory:" not in key]
    assert all(0 < parted.call("STRLEN", key) <= SMALL for key in parts)
    drain(session(parted, batch=10, snapshot_every=50), 160)
    monkeypatch.undo()
    # From parts to one key, as when the bound is raised.
    drain(session(parted, batch=10, snapshot_every=50), COUNT)
    with Store(redis_url, f"{feed}-whole", block_ms=20) as whole:
        push(whole, rows())
        drain(session(whole, batch=10, snapshot_every=50), COUNT)
        assert payloads(whole) == payloads(parted)
        assert whole.state().position == parted.state().position
        assert whole.state().snapshot.parts == 1
    assert set(parted.snapshot_keys()) == keys_of_parts(parted)
    assert all(parted.call("TTL", key) == -1 for key in keys_of_parts(parted))


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
    drain(session(parted, batch=10, snapshot_every=50), COUNT)
    assert check_snapshots(parted, parted.state()) == ()
    assert set(parted.snapshot_keys()) == keys_of_parts(parted)


class Sizes(Telemetry, list):
    """Notes the bytes of each snapshot that a commit kept."""

    def kept_snapshot(self, size):
        self.append(size)


def test_the_bytes_of_each_snapshot_are_reported(store):
    push(store, rows())
    sizes = Sizes()
    drain(session(store, batch=10, snapshot_every=50, telemetry=sizes), 130)
    kept = [sum(store.call("STRLEN", key) for key in pointer.keys(store.keys))
            for pointer in reversed(store.state().snapshots)]  # fmt: skip
    assert sizes == kept


class Losing(Store):
    """A store that loses each snapshot before the commit that points to it."""

    def put_snapshot(self, *_):
        return []


def test_a_snapshot_that_is_lost_again_is_told_and_its_answers_are_kept(redis_url, feed):
    with Losing(redis_url, feed, block_ms=20) as store:
        push(store, rows())
        running = session(store, batch=10, snapshot_every=50)
        store.note("began", "")
        drain(running, 130)
        assert (store.state().snapshot, store.length(store.keys.out)) == (None, 130)
        events = [json.loads(fields[1]) for _, fields in store.call(
            "XRANGE", store.keys.events, "-", "+")]  # fmt: skip
    told = [one["detail"] for one in events if one["code"] == "snapshot_not_kept"]
    assert told
    assert all(detail.startswith("at ") for detail in told)


def test_reset_takes_all_parts_away(parted):
    reset(parted, with_input=False)
    assert not parted.has_snapshots()


@pytest.mark.parametrize("text", [b":1", b":0", b":2:3", b":x"])
def test_a_pointer_with_a_forged_number_of_parts_is_damaged(text):
    whole = b"5:%b:1-0" % (b"ab" * 32)
    assert Pointer.parse(whole).parts == 1
    with pytest.raises(ValueError, match="number"):
        Pointer.parse(whole + text)


def test_a_snapshot_larger_than_redis_takes_as_one_value_is_kept_in_parts(
    own_redis, feed, monkeypatch
):
    body = bytes(range(256)) * (3 << 12)  # 3 MiB
    with Store(own_redis.url, feed) as store:
        state = store.fence("tester", pinned_config(CONFIG, Limits()))
        store.call("CONFIG", "SET", "proto-max-bulk-len", 1 << 20)
        agreed = state.pinned.config_hash
        whole, data = snapshots.encode(feed, agreed, START, body)
        with pytest.raises(WorkerError):
            store.finish_snapshot(store.put_snapshot(whole, data))
        monkeypatch.setattr(snapshots, "PART_BYTES", 1 << 20)
        pointer, data = snapshots.encode(feed, agreed, START, body)
        assert pointer.parts == 4
        store.finish_snapshot(store.put_snapshot(pointer, data))
        store.commit(Commit(state.epoch, START, START, move=SnapshotMove(pointer, None)))
        assert snapshots.read(store, store.state().snapshot, agreed).body == body
        with pytest.raises(InvalidStoredSnapshot, match="gone"):
            snapshots.read(store, whole, agreed)
