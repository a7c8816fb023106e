"""The commit script: what it writes, and everything it refuses, on a real Redis."""

import pytest

from workers.broker.store import Store
from workers.errors import (
    BatchChanged,
    Fenced,
    InvalidStoredSnapshot,
    OutputAhead,
    PositionMoved,
    StateLost,
    Unavailable,
    WrongKeyType,
)
from workers.feed.position import ALARMS, MET, OUT, START, Position, chain
from workers.feed.retention import Retention
from workers.feed.state import Commit, PinnedConfig, Pointer, RejectedEntry, SnapshotMove

AGREEMENT = PinnedConfig("{}", "00")
UNKNOWN_SNAPSHOT = SnapshotMove(Pointer(1, "a" * 64, b"1-0"), None)


def push(store, count, first=1):
    """Add `count` entries with the IDs first-0, (first + 1)-0, ..."""
    ids = [b"%d-0" % i for i in range(first, first + count)]
    for entry_id in ids:
        store.call("XADD", store.keys.input, entry_id, "x", "[1]")
    return ids


def commit_of(ids, epoch=1, before=START, met=(), dlq=(), move=None, alarms=()):
    """Return a commit that answers `ids` with one distinct payload each."""
    out = [b"answer to " + entry_id for entry_id in ids]
    links = [(OUT, i, p) for i, p in zip(ids, out, strict=True)] + [(MET, i, p) for i, p in met]
    links += [(ALARMS, i, p) for i, p in alarms]
    digest = chain(before.digest, links)
    seq = before.seq + len(ids)
    after = Position(ids[-1] if ids else before.cursor, seq, seq, digest)
    return Commit(epoch, before, after, ids, out, met, dlq, move, alarms=alarms)


def contents(store):
    """Return all that a feed has in Redis, to show that nothing was written."""
    keys = store.call("KEYS", f"osvm:{{{store.keys.feed}}}:*")
    return {key: store.call("DUMP", key) for key in keys}


def bookmark(store):
    (group,) = store.call("XINFO", "GROUPS", store.keys.input)
    return group["last-delivered-id"] if isinstance(group, dict) else group[7]


def ids_in(store, key):
    return [entry[0] for entry in store.call("XRANGE", key, "-", "+")]


def put(store, pointer):
    store.finish_snapshot(store.put_snapshot(pointer, b"the bytes"))


@pytest.fixture
def begun(store):
    """A feed with five entries of input, taken over at epoch 1."""
    push(store, 5)
    assert store.fence("tester", AGREEMENT).epoch == 1
    return store


def test_a_commit_writes_answers_reports_alarms_dead_letters_position_and_bookmark(begun):
    ids = [b"1-0", b"2-0", b"3-0"]
    letter = RejectedEntry(b"2-0", "not_finite", "{}", 8, b"x=[NaN]\n")
    alarms = [(b"1-0", b"first"), (b"3-0", b"second")]
    commit = commit_of(ids, met=[(b"3-0", b"report")], dlq=[letter], alarms=alarms)
    begun.commit(commit)
    keys = begun.keys
    out = begun.call("XRANGE", keys.out, "-", "+")
    assert out == [[i, [b"p", b"answer to " + i]] for i in ids]
    assert begun.call("XRANGE", keys.met, "-", "+") == [[b"3-0", [b"p", b"report"]]]
    found = begun.call("XRANGE", keys.alarms, "-", "+")
    assert found == [[b"1-0", [b"p", b"first"]], [b"3-0", [b"p", b"second"]]]
    (dead,) = begun.call("XRANGE", keys.dlq, "-", "+")
    assert dead[0] == b"2-0"
    assert dict(zip(dead[1][::2], dead[1][1::2], strict=True)) == {
        b"code": b"not_finite",
        b"about": b"{}",
        b"size": b"8",
        b"head": b"x=[NaN]\n",
    }
    assert begun.state().position == commit.after
    assert bookmark(begun) == b"3-0"


def test_a_commit_of_one_example_takes_redis_eight_commands(own_redis, feed):
    with Store(own_redis.url, feed) as store:
        push(store, 2)
        store.fence("tester", AGREEMENT)
        first = commit_of([b"1-0"])
        store.commit(first)
        store.call("CONFIG", "RESETSTAT")
        store.commit(commit_of([b"2-0"], before=first.after))
        told = store.call("INFO", "commandstats").decode().split()
        lines = [line.partition(":") for line in told if line.startswith("cmdstat_")]
        calls = {name[8:].split("|")[0]: line.split(",")[0] for name, _, line in lines}
        calls.pop("config", None)
        names = ["evalsha", "hmget", "hset", "xadd", "xgroup", "xinfo", "xrange", "xread"]
        assert calls == dict.fromkeys(names, "calls=1")


def test_a_commit_repeated_after_a_lost_reply_writes_nothing_and_is_no_error(begun):
    commit = commit_of([b"1-0", b"2-0"])
    begun.commit(commit)
    before = contents(begun)
    begun.commit(commit)
    assert contents(begun) == before


def test_a_repeated_commit_with_other_answers_is_an_error(begun):
    begun.commit(commit_of([b"1-0"]))
    other = commit_of([b"1-0"], met=[(b"1-0", b"report")])
    with pytest.raises(StateLost, match="other answers"):
        begun.commit(other)


def test_an_older_epoch_is_fenced_before_anything_else_is_looked_at(begun):
    commit = commit_of([b"1-0"])
    begun.commit(commit)
    begun.fence("successor", None)
    before = contents(begun)
    with pytest.raises(Fenced, match="epoch 2"):
        begun.commit(commit)
    with pytest.raises(Fenced):
        begun.commit(commit_of([b"2-0"], before=commit.after))
    assert contents(begun) == before


ELSEWHERE = Position(b"2-0", 2, 2, bytes(32))
ONE, TWO, THREE = ({"ids": [b"1-0", b"2-0", b"3-0"][:n]} for n in (1, 2, 3))
IN_ALL = TWO | {
    "met": [(b"2-0", b"r")], "alarms": [(b"2-0", b"a")],
    "dlq": [RejectedEntry(b"2-0", "label", "{}", 1, b"")],
}  # fmt: skip
REFUSED = {
    "the epoch fell back": ([], ONE | {"epoch": 2}, PositionMoved, ""),
    "from another position": ([], {"ids": [b"3-0"], "before": ELSEWHERE}, PositionMoved, ""),
    "an entry is left out": ([], {"ids": [b"1-0", b"3-0"]}, BatchChanged, ""),
    **{
        f"entry {i} is gone": ([("XDEL", "input", i)], THREE, BatchChanged, "")
        for i in ("1-0", "2-0", "3-0")
    },
    "the input is gone": ([("DEL", "input")], ONE, BatchChanged, ""),
    "the state is gone": ([("DEL", "state")], ONE, StateLost, "reset"),
    "the last answer was deleted": (
        [("XADD", "out", "9-0", "p", "foreign"), ("XDEL", "out", "9-0")], ONE, OutputAhead, "out",
    ),
    "an unknown snapshot": ([], ONE | {"move": UNKNOWN_SNAPSHOT}, InvalidStoredSnapshot, ""),
    **{
        f"{stream} is ahead": (
            [("XADD", stream, "2-0", "p", "foreign")], IN_ALL, OutputAhead, stream,
        )
        for stream in ("out", "met", "alarms", "dlq")
    },
    **{
        f"{key} is a string": (
            [("DEL", key), ("SET", key, "foreign")], ONE, WrongKeyType, "string",
        )
        for key in ("input", "out", "met", "alarms", "dlq", "state")
    },
}  # fmt: skip


@pytest.mark.parametrize(("before", "commit", "error", "told"), REFUSED.values(), ids=REFUSED)
def test_a_commit_that_does_not_fit_is_refused_whole(begun, before, commit, error, told):
    for name, key, *rest in before:
        begun.call(name, getattr(begun.keys, key), *rest)
    found = contents(begun)
    with pytest.raises(error, match=told or None):
        begun.commit(commit_of(**commit))
    assert contents(begun) == found


def test_ids_compare_as_numbers(store):
    """As text "5-9" is after "5-10", and 10-0 before 9-0; near 2^64 a double cannot tell."""
    top = 2**64 - 1
    ids = [b"5-9", b"5-10", b"9-0", b"10-0", b"%d-%d" % (top, top - 2), b"%d-%d" % (top, top - 1)]
    for entry_id in ids:
        store.call("XADD", store.keys.input, entry_id, "x", "[1]")
    store.fence("tester", AGREEMENT)
    before = START
    for entry_id in ids:
        letter = RejectedEntry(entry_id, "not_finite", "{}", 8, b"")
        commit = commit_of([entry_id], 1, before, [(entry_id, b"report")], [letter])
        store.commit(commit)
        before = commit.after
    assert [ids_in(store, key) for key in (store.keys.out, store.keys.met, store.keys.dlq)] == [
        ids
    ] * 3
    assert (store.state().position, bookmark(store)) == (before, ids[-1])


def test_a_destroyed_or_moved_bookmark_is_put_back(begun):
    first = commit_of([b"1-0"])
    begun.commit(first)
    begun.call("XGROUP", "DESTROY", begun.keys.input, "osvm")
    second = commit_of([b"2-0"], before=first.after)
    begun.commit(second)
    assert bookmark(begun) == b"2-0"
    begun.call("XGROUP", "SETID", begun.keys.input, "osvm", "0")
    begun.commit(commit_of([b"3-0"], before=second.after))
    assert bookmark(begun) == b"3-0"


def test_a_snapshot_pointer_moves_with_the_commit_and_takes_the_old_away(begun):
    keys = begun.keys
    pointers = [Pointer(n, f"{n}" * 64, b"%d-0" % n) for n in (1, 2, 3)]
    names = [keys.snapshot(p.n, p.sha256) for p in pointers]
    before = START
    for i, pointer in enumerate(pointers):
        put(begun, pointer)
        previous = pointers[i - 1] if i else None
        dropped = (names[i - 2],) if i == 2 else ()
        trim = b"" if previous is None else previous.cursor
        move = SnapshotMove(pointer, previous, dropped, trim)
        commit = commit_of([b"%d-0" % (i + 1)], before=before, move=move)
        begun.commit(commit)
        before = commit.after
    state = begun.state()
    assert (state.snapshot, state.previous) == (pointers[2], pointers[1])
    assert [begun.call("GET", name) for name in names] == [None, b"the bytes", b"the bytes"]
    assert begun.call("TTL", names[2]) == -1, "a referenced snapshot must not expire"
    assert ids_in(begun, keys.input) == [b"2-0", b"3-0", b"4-0", b"5-0"]


def test_a_snapshot_alone_can_be_committed(begun):
    begun.commit(commit_of([b"1-0"]))
    position = begun.state().position
    pointer = Pointer(1, "a" * 64, b"1-0")
    put(begun, pointer)
    begun.commit(Commit(1, position, position, move=SnapshotMove(pointer, None)))
    state = begun.state()
    assert (state.position, state.snapshot, state.previous) == (position, pointer, None)


def test_outputs_are_trimmed_to_their_retention(redis_url, feed):
    with Store(redis_url, feed, retention=Retention(out=150, met=0, alarms=150, dlq=0)) as store:
        ids = push(store, 1000)
        store.fence("tester", AGREEMENT)
        before = START
        for begin in range(0, 1000, 100):
            batch = ids[begin : begin + 100]
            alarms = [(entry_id, b"alarm") for entry_id in batch]
            commit = commit_of(batch, before=before, met=[(batch[-1], b"report")], alarms=alarms)
            store.commit(commit)
            before = commit.after
        # Redis trims whole nodes of 100 entries, so a little more than asked for stays.
        assert 150 <= store.length(store.keys.out) <= 250
        assert 150 <= store.length(store.keys.alarms) <= 250
        assert store.length(store.keys.met) == 10
        assert store.state().position.seq == 1000


def test_out_of_memory_refuses_the_whole_batch_and_heals(own_redis, feed):
    with Store(own_redis.url, feed) as store:
        push(store, 3)
        store.fence("tester", AGREEMENT)
        before = contents(store)
        store.call("CONFIG", "SET", "maxmemory", "1")
        commit = commit_of([b"1-0", b"2-0", b"3-0"])
        with pytest.raises(Unavailable, match="maxmemory"):
            store.commit(commit)
        assert contents(store) == before
        store.call("CONFIG", "SET", "maxmemory", "0")
        store.commit(commit)
        assert store.length(store.keys.out) == 3


def test_flushed_scripts_are_sent_again(begun):
    begun.call("SCRIPT", "FLUSH")
    begun.commit(commit_of([b"1-0"]))
    assert begun.length(begun.keys.out) == 1


def test_kept_snapshots_that_a_replaced_worker_writes_once_more_do_not_expire(begun):
    older, newer = Pointer(1, "a" * 64, b"1-0"), Pointer(2, "b" * 64, b"2-0", parts=2)
    before = START
    for pointer, previous in ((older, None), (newer, older)):
        put(begun, pointer)
        assert all(0 < begun.call("TTL", key) <= 3600 for key in pointer.keys(begun.keys))
        commit = commit_of([pointer.cursor], before=before, move=SnapshotMove(pointer, previous))
        begun.commit(commit)
        before = commit.after
    begun.call("SET", older.keys(begun.keys)[0], "damaged")
    for pointer in (older, newer):
        put(begun, pointer)
    keys = [key for pointer in (older, newer) for key in pointer.keys(begun.keys)]
    assert [begun.call("TTL", key) for key in keys] == [-1, -1, -1]
    assert begun.get_snapshot(older) == begun.get_snapshot(newer) == (b"the bytes", ())


def test_a_snapshot_of_which_one_part_is_gone_is_not_pointed_at(begun):
    pointer = Pointer(1, "a" * 64, b"1-0", parts=3)
    put(begun, pointer)
    parts = pointer.keys(begun.keys)
    assert [begun.call("GET", key) for key in parts] == [b"the", b" by", b"tes"]
    begun.call("DEL", parts[1])
    before = contents(begun)
    with pytest.raises(InvalidStoredSnapshot, match="expired"):
        begun.commit(commit_of([b"1-0"], move=SnapshotMove(pointer, None)))
    assert contents(begun) == before
    assert begun.get_snapshot(pointer) is None
