"""What is checked before the first write, also beside a worker, and the feeds that were seen."""

import stat
from contextlib import nullcontext
from hashlib import sha256

import pytest
from structlog.testing import capture_logs
from world import CONFIG, drain, push, rows, session

from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import (
    BadConfiguration,
    InvalidStoredSnapshot,
    OutputAhead,
    RedisUnsuitable,
    SnapshotsLost,
    StateLost,
    WrongKeyType,
)
from workers.feed.pinned_config import pinned_config
from workers.feed.position import START
from workers.feed.state import FORMAT, Commit, Pointer, SnapshotMove
from workers.session import preflight, snapshots
from workers.session.preflight import KnownFeeds

OURS = pinned_config(CONFIG, Limits())


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
    store.call("HSET", store.keys.state, "format", FORMAT + 1)
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


def test_a_take_over_leaves_the_snapshots_to_recovery(store, monkeypatch):
    with_snapshots(store, 2)
    monkeypatch.setattr(snapshots, "read", lambda *_: pytest.fail("it was read"))
    assert preflight.check(store, OURS, is_take_over=True).state == store.state()


def test_a_feed_is_behind_until_a_snapshot_stands_where_it_stands(store):
    assert preflight.check(store, OURS).is_behind
    store.fence("tester", OURS)
    assert preflight.check(store, OURS).is_behind
    with_snapshots(store, 1)
    assert not preflight.check(store, OURS).is_behind
    store.call("HSET", store.keys.state, "cursor", "5-0")
    assert preflight.check(store, OURS).is_behind


class Overtaken(Store):
    """A store beside which something happens right after the state was read for the first time."""

    def __init__(self, store, meanwhile):
        super().__init__(store.url, store.keys.feed)
        self._meanwhile = meanwhile

    def state(self):
        found = super().state()
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return found


@pytest.fixture
def running(store):
    """A worker with two snapshots, half of its input answered."""
    push(store, rows(120))
    running = session(store, batch=10, snapshot_every=20)
    drain(running, 60)
    return running


def test_answers_that_are_committed_between_two_looks_are_no_damage(store, running):
    with Overtaken(store, lambda: drain(running, 70)) as standby:
        assert preflight.check(standby, OURS).state.position.seq == 60


def test_answers_beyond_the_state_are_damage_also_beside_a_worker(store, running):
    def harm():
        drain(running, 70)
        store.call("XADD", store.keys.out, "999-0", "p", "{}")

    with (
        Overtaken(store, harm) as standby,
        pytest.raises(OutputAhead, match=r"the state ends at 70-0 \(seq 70\), .* end at 999-0"),
    ):
        preflight.check(standby, OURS)


def test_snapshots_that_are_replaced_between_two_looks_are_not_lost(store, running):
    with Overtaken(store, lambda: drain(running, 120)) as standby:
        assert preflight.check(standby, OURS).warnings == preflight.check(store, OURS).warnings


def test_snapshots_that_are_gone_are_lost_also_beside_a_worker(store, running):
    def harm():
        drain(running, 120)
        gone = [key for pointer in store.state().snapshots for key in pointer.keys(store.keys)]
        store.call("DEL", *gone)

    with Overtaken(store, harm) as standby, pytest.raises(SnapshotsLost):
        preflight.check(standby, OURS)


def test_a_feed_that_another_worker_begins_between_two_looks_is_there(store):
    push(store, rows(20))
    with Overtaken(store, lambda: drain(session(store), 20)) as standby:
        assert preflight.check(standby, OURS).state.position.seq == 20


def test_answers_without_a_state_are_a_lost_state_also_beside_a_worker(store):
    def harm():
        store.call("XADD", store.keys.out, "1-0", "p", "{}")

    with Overtaken(store, harm) as standby, pytest.raises(StateLost, match="is gone but"):
        preflight.check(standby, OURS)


URL = "redis://worker:secret@host:6379/0"


def test_a_later_process_knows_the_feed_of_this_redis_alone(monkeypatch):
    KnownFeeds.of_user(URL).add("f")
    assert "f" in KnownFeeds.of_user("redis://other:word@host:6379/0")
    for url in ("redis://host:6379/1", "redis://host:6379/0?db=1", "redis://there:6379/0"):
        assert "f" not in KnownFeeds.of_user(url)
    assert "g" not in KnownFeeds.of_user(URL)
    assert "f" not in KnownFeeds(URL)


def test_what_is_left_is_for_its_user_alone_and_holds_no_secret(tmp_path):
    directory = tmp_path / "home/online-svm"
    for _ in range(2):
        KnownFeeds(URL, directory).add("f")
    (file,) = (path for path in directory.rglob("*") if path.is_file())
    assert (file.name, file.read_text()) == ("f", "redis://host:6379/0\n")
    folders = [directory, directory / "feeds", file.parent]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700] * 3


def test_one_that_only_looks_leaves_nothing(tmp_path):
    known = KnownFeeds(URL, tmp_path, is_kept=False)
    known.add("f")
    assert "f" in known
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("why", ["a file is in the way", "there is no home"])
def test_where_nothing_can_be_left_it_is_told_once_and_this_process_still_knows(
    tmp_path, monkeypatch, why
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    if why == "there is no home":
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.setattr("pwd.getpwuid", lambda _uid: {}["none"])
    with capture_logs() as logged:
        known = KnownFeeds.of_user(URL)
        known.add("f")
        known.add("g")
    assert ("f" in known, "g" in known, "h" in known) == (True, True, False)
    (said,) = logged
    assert "set XDG_STATE_HOME" in said["event"]


def test_a_known_feed_without_a_state_is_lost_until_a_reset_says_otherwise(store):
    known, feed = KnownFeeds(store.url), store.keys.feed
    assert preflight.find(store, known=known).state is None
    known.add(feed)
    with pytest.raises(StateLost, match=f"online-svm reset {feed}.*this process saw it"):
        preflight.find(store, known=known)
    store.call("SET", store.keys.restart_mark, "1")
    assert preflight.find(store, known=known).state is None
