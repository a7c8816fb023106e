"""What a worker checks before it writes anything, and what the agreement of a feed refuses."""

import json
from contextlib import nullcontext
from hashlib import sha256
from importlib.metadata import version

import pytest

from online_svm.config import PredictorConfig
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import (
    BadConfiguration,
    EnvironmentChanged,
    InvalidStoredSnapshot,
    RedisUnsuitable,
    SnapshotsLost,
    StateLost,
    WrongKeyType,
)
from workers.feed.agreement import agreement, environment
from workers.feed.commit import Commit, SnapshotMove
from workers.feed.position import START
from workers.feed.state import Agreement, Pointer
from workers.session import preflight, snapshots

OURS = agreement(PredictorConfig(), Limits())


def everything(store):
    """Return every key of the server that belongs to the feed, with its content."""
    keys = sorted(store.call("KEYS", f"osvm:{{{store.keys.feed}}}:*"))
    return [(key, store.call("DUMP", key)) for key in keys]


def with_snapshot(store, epoch, body, before=None):
    """Leave a snapshot; return its pointer."""
    pointer, data = snapshots.encode(store.keys.feed, OURS.config_hash, START, body)
    store.finish_snapshot(store.put_snapshot(pointer, data))
    store.commit(Commit(epoch, START, START, move=SnapshotMove(pointer, before)))
    return pointer


def with_snapshots(store, count):
    """Begin a feed and leave it with `count` good snapshots; return the names of their keys."""
    epoch, pointer, names = store.fence("tester", OURS).epoch, None, []
    for i in range(count):
        pointer = with_snapshot(store, epoch, b"%d" % i, pointer)
        names.append(store.keys.snapshot(pointer.n, pointer.sha256))
    return names


def test_a_new_feed_and_one_that_is_there_pass_and_nothing_is_written(store):
    found = preflight.check(store, OURS)
    assert (found.state, found.warnings, everything(store)) == (None, (), [])
    store.call("XADD", store.keys.input, "*", "x", "[1]")
    assert preflight.check(store, OURS).state is None, "input alone is a new feed"
    with_snapshots(store, 2)
    before = everything(store)
    found = preflight.check(store, OURS)
    assert (found.state, found.warnings) == (store.state(), ())
    assert everything(store) == before


@pytest.mark.parametrize("left", ["out", "met", "alarms"])
def test_outputs_without_state_mean_that_the_state_was_lost(store, left):
    store.call("XADD", getattr(store.keys, left), "*", "p", "{}")
    with pytest.raises(StateLost, match="reset"):
        preflight.check(store, OURS)


def test_a_snapshot_without_state_means_that_the_state_was_lost(store):
    store.call("SET", store.keys.snapshot(5, "ab" * 32), b"bytes")
    with pytest.raises(StateLost, match="snap"):
        preflight.check(store, OURS)


@pytest.mark.parametrize("key", ["input", "out", "met", "alarms", "dlq", "state", "lease"])
def test_a_key_of_another_type_is_named(store, key):
    store.call("SADD", getattr(store.keys, key), "foreign")
    with pytest.raises(WrongKeyType, match=f"{getattr(store.keys, key)} holds a set"):
        preflight.check(store, OURS)


@pytest.mark.parametrize("field", ["cursor", "seq", "digest", "config_hash", "snapshot", "epoch"])
def test_a_state_that_lacks_a_field_is_damaged(store, field):
    store.fence("tester", OURS)
    store.call("HDEL", store.keys.state, field)
    with pytest.raises(StateLost, match=f"damaged.*{field}"):
        preflight.check(store, OURS)


def test_a_state_of_a_newer_format_asks_for_an_upgrade(store):
    store.fence("tester", OURS)
    store.call("HSET", store.keys.state, "format", 2)
    with pytest.raises(BadConfiguration, match="upgrade"):
        preflight.check(store, OURS)


def test_one_damaged_snapshot_is_a_warning_and_two_are_the_end(store):
    names = with_snapshots(store, 2)
    store.call("DEL", names[1])
    (warning,) = preflight.check(store, OURS).warnings
    assert names[1] in warning
    assert "gone" in warning
    store.call("SET", names[0], "truncated")
    with pytest.raises(SnapshotsLost, match="damaged"):
        preflight.check(store, OURS)


def test_the_only_snapshot_may_be_damaged_since_all_input_is_still_there(store):
    store.call("DEL", *with_snapshots(store, 1))
    (warning,) = preflight.check(store, OURS).warnings
    assert "gone" in warning


def test_another_environment_is_refused_unless_it_is_accepted(store):
    assert environment() == {"numba": version("numba")}
    stored = json.loads(OURS.environment) | {"numba": "0.1.0"}
    store.fence("tester", Agreement(OURS.config, OURS.config_hash, json.dumps(stored)))
    with pytest.raises(EnvironmentChanged, match=r"numba: feed 0\.1\.0.*--accept-environment"):
        preflight.check(store, OURS)
    assert preflight.check(store, OURS, accept_environment=True).state is not None


@pytest.mark.parametrize(
    ("version", "policy", "complaint"),
    [
        ("6.0.16", "noeviction", r"6\.2 or newer"), ("5.0", "noeviction", "too old"),
        ("7.0.0", "allkeys-lru", "noeviction"), ("6.2.0", "noeviction", None),
        ("7.4.1", "volatile-lru", None), ("10.0.0", "noeviction", None),
    ],
)  # fmt: skip
def test_an_unsuitable_server_is_refused(version, policy, complaint):
    expected = pytest.raises(RedisUnsuitable, match=complaint) if complaint else nullcontext()
    with expected:
        server = {"redis_version": version, "maxmemory_policy": policy}
        preflight.check_server(server, "redis://h")


def test_a_server_without_append_only_file_is_a_warning(own_redis, feed):
    with Store(own_redis.url, feed) as store:
        store.call("CONFIG", "SET", "appendonly", "no")
        (warning,) = preflight.check(store, OURS).warnings
        assert "appendonly" in warning


def test_a_snapshot_is_refused_unless_all_of_it_fits():
    pointer, data = snapshots.encode("f", "hash", START, b"body")
    assert snapshots.decode(data, pointer, "f", "hash").body == b"body"
    cases = [
        (data[:-1], pointer, "f", "hash", "damaged"),
        (data, pointer, "g", "hash", "belongs to feed 'f'"),
        (data, pointer, "f", "other", "another configuration"),
        (data, Pointer(0, pointer.sha256, b"9-9"), "f", "hash", "elsewhere"),
    ]
    for changed, named, feed, config_hash, complaint in cases:
        with pytest.raises(InvalidStoredSnapshot, match=complaint):
            snapshots.decode(changed, named, feed, config_hash)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "not a snapshot"),
        (b"PK\x03\x04" * 10, "not a snapshot"),
        (b"osvm-snapshot\n\xff\xff\xff\xff{}", "longer"),
        (b"osvm-snapshot\n\x00\x00\x00\x02{}", "format None"),
        (b"osvm-snapshot\n\x00\x00\x00\x02[]", "unreadable"),
        (b"osvm-snapshot\n\x00\x00\x00\x0d" + b'{"format": 2}', "upgrade"),
        (b"osvm-snapshot\n\x00\x00\x00\x02{x", "unreadable"),
    ],
)
def test_bytes_that_are_no_snapshot_are_refused_even_if_their_hash_holds(data, complaint):
    with pytest.raises(InvalidStoredSnapshot, match=complaint):
        snapshots.decode(data, Pointer(0, sha256(data).hexdigest(), b"0-0"), "f", "hash")


def test_a_second_look_does_not_read_the_same_snapshots_again(store, monkeypatch):
    with_snapshots(store, 2)
    first, read, original = preflight.check(store, OURS), [], snapshots.read
    monkeypatch.setattr(snapshots, "read", lambda *given: read.append(given[1]) or original(*given))
    assert preflight.check(store, OURS, before=first).state == first.state
    assert read == []
    newest = with_snapshot(store, first.state.epoch, b"more", first.state.snapshot)
    assert preflight.check(store, OURS, before=first).state.snapshot == newest
    assert read == [newest]


def test_a_feed_is_behind_until_a_snapshot_stands_where_it_stands(store):
    assert preflight.check(store, OURS).is_behind
    store.fence("tester", OURS)
    assert preflight.check(store, OURS).is_behind
    with_snapshots(store, 1)
    assert not preflight.check(store, OURS).is_behind
    store.call("HSET", store.keys.state, "cursor", "5-0")
    assert preflight.check(store, OURS).is_behind
