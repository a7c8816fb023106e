"""A feed that was lost with its Redis goes on from its backup, byte for byte."""

import json
import re
from dataclasses import asdict
from hashlib import sha256

import pytest
from shipped_redis import PROGRAMS
from world import COUNT, drain, payloads, push, rows, session, work

from workers.admin import verify
from workers.admin.backup import FORMAT, Backup, InvalidBackup, backup_of
from workers.admin.reset import reset
from workers.admin.restore import restore
from workers.broker import embedded
from workers.broker.leases import Holder
from workers.broker.store import Store
from workers.errors import BadConfiguration, Fenced, OutputAhead, StateLost, WrongKeyType
from workers.feed.keys import REGISTRY
from workers.feed.position import parse_id
from workers.reading.registry import FeedInUse

MIDDLE = 130


@pytest.fixture
def lost(request, tmp_path):
    """Answer half of a feed, and give its backup and what it answered after; lose all of Redis."""
    program = PROGRAMS[getattr(request, "param", "embedded")]()
    with embedded.temporary(program) as server, Store(server.url, "f", block_ms=20) as store:
        push(store, rows())
        running = session(store, batch=10)
        drain(running, MIDDLE)
        running.snapshot()
        path = tmp_path / "backup"
        path.write_bytes(b"".join(backup_of(store).pieces()))
        drain(running, COUNT)
        expected = payloads(store), store.state().position
        store.call("FLUSHALL")
        yield store, path, expected


def after(pairs, cursor):
    return [pair for pair in pairs if parse_id(pair[0]) > parse_id(cursor)]


@pytest.mark.parametrize("lost", ["embedded", "oldest"], indirect=True)
@pytest.mark.parametrize("server", ["flushed", "another"])
def test_a_restored_feed_goes_on_as_if_redis_had_never_been_lost(lost, server, system_url):
    store, path, (answers, position) = lost
    url = store.url if server == "flushed" else system_url
    with Store(url, "f", block_ms=20) as anew:
        reset(anew, with_input=True)
        found = restore(anew, Backup.read(path))
        assert (found.position.seq, found.answers, found.waiting) == (MIDDLE, 0, 0)
        assert anew.keys.feed.encode() in anew.call("SMEMBERS", REGISTRY)
        push(anew, rows()[MIDDLE:], first=MIDDLE + 1)
        running = session(anew, batch=7, may_create=False)
        drain(running, COUNT)
        running.snapshot()
        assert payloads(anew) == [after(stream, b"130-0") for stream in answers]
        assert anew.state().position == position
        found = verify.verify(anew)
        assert found.is_identical
        assert found.answers == COUNT - MIDDLE
        drain(session(anew), COUNT)


def test_what_still_waits_in_the_input_is_answered_and_older_answers_stay(lost):
    store, path, (answers, position) = lost
    push(store, rows())
    drain(session(store, batch=10), MIDDLE)
    store.call("DEL", store.keys.state)
    found = restore(store, Backup.read(path))
    assert (found.answers, found.waiting) == (MIDDLE, COUNT - MIDDLE)
    drain(session(store, may_create=False), COUNT)
    assert (payloads(store), store.state().position) == (answers, position)


def test_new_input_gets_ids_after_the_backup_although_the_clock_is_behind(lost):
    store, path, _ = lost
    backup = Backup.read(path)
    far = 2**52
    position = backup.position
    store.call("FLUSHALL")
    restore(store, backup)
    store.call("XSETID", store.keys.input, f"{far}-5")  # as if the producers' clock were ahead
    store.call("XADD", store.keys.input, "*", "x", "[0.1,0.2,0.3]", "y", "a")
    (last,) = store.last_entries(store.keys.input, 1)
    assert last[0] == b"%d-6" % far
    store.call("DEL", store.keys.state, store.keys.input)
    restore(store, backup)
    info = store.call("XINFO", "STREAM", store.keys.input)
    assert info[info.index(b"last-generated-id") + 1] == position.cursor


def test_input_that_is_trimmed_unread_after_a_restore_is_missed_from_redis_7_on(lost, counting_url):
    _, path, _ = lost
    with Store(counting_url, "f", block_ms=20) as store:
        reset(store, with_input=True)
        restore(store, Backup.read(path))
        running = session(store, may_create=False)
        push(store, rows()[MIDDLE:], first=MIDDLE + 1)
        store.call("XTRIM", store.keys.input, "MAXLEN", "5")
        with pytest.raises(StateLost, match="input lost"):
            drain(running, COUNT)


def test_a_feed_that_has_answers_after_the_backup_is_not_put_back(lost):
    store, path, _ = lost
    push(store, rows())
    drain(session(store), COUNT)
    before = store.state(), payloads(store)
    with pytest.raises(OutputAhead, match=r"240-0.*130-0.*online-svm reset f"):
        restore(store, Backup.read(path), overwrite=True)
    assert (store.state(), payloads(store)) == before
    reset(store, with_input=False)
    restore(store, Backup.read(path))
    drain(session(store, may_create=False), COUNT)
    assert payloads(store) == [after(stream, b"130-0") for stream in before[1]]


def test_an_existing_feed_is_overwritten_only_on_request(lost):
    store, path, _ = lost
    push(store, rows())
    running = session(store, batch=10)
    drain(running, MIDDLE)
    epoch = store.state().epoch
    with pytest.raises(BadConfiguration, match="exists"):
        restore(store, Backup.read(path))
    store.call("SET", store.keys.lease, Holder.here("me").encode())
    with pytest.raises(FeedInUse, match="held by 'me'"):
        restore(store, Backup.read(path), overwrite=True)
    restore(store, Backup.read(path), overwrite=True, force=True)
    assert store.state().epoch > epoch
    with pytest.raises(Fenced):
        drain(running, COUNT)
    assert set(store.snapshot_keys()) == set(store.state().snapshot.keys(store.keys))


def test_a_key_of_another_type_and_a_backup_of_another_feed_are_named(lost):
    store, path, _ = lost
    backup = Backup.read(path)
    store.call("SET", store.keys.out, "mine")
    with pytest.raises(WrongKeyType, match=re.escape(store.keys.out)):
        restore(store, backup)
    assert store.state() is None
    with (
        Store(store.url, "g") as other,
        pytest.raises(BadConfiguration, match="online-svm restore f FILE"),
    ):
        restore(other, backup)


HEAD = len(b"osvm-backup\n")


def edited(**changes):
    """Return what gives a backup another header, its digest made right again."""

    def edit(data):
        end = HEAD + 4 + int.from_bytes(data[HEAD : HEAD + 4], "big")
        text = json.dumps(json.loads(data[HEAD + 4 : end]) | changes).encode()
        body = data[:HEAD] + len(text).to_bytes(4, "big") + text + data[end:-32]
        return body + sha256(body).digest()

    return edit


def test_a_backup_of_an_earlier_version_is_restored(lost):
    """It names libraries in the agreement, which bind nothing any more."""
    store, path, _ = lost
    backup = Backup.read(path)
    earlier = asdict(backup.pinned) | {"environment": '{"some-library":"0.1.0"}'}
    path.write_bytes(edited(agreement=earlier)(path.read_bytes()))
    assert Backup.read(path) == backup
    restore(store, Backup.read(path))
    assert store.state().pinned == backup.pinned


OTHER = {"config": "{}", "config_hash": "x"}
UNSOUND = {
    "without its last byte": (lambda data: data[:-1], "cut or damaged"),
    "cut in its header": (lambda data: data[:40], "cut or damaged"),
    "with a byte more": (lambda data: data + b"x", "cut or damaged"),
    "with a bit turned": (
        lambda data: data[:-200] + bytes([data[-200] ^ 1]) + data[-199:], "SHA-256"),
    "of a huge header": (
        lambda data: data[:12] + b"\xff\xff\xff\xff" + data[16:], "longer than it may be"),
    "empty": (lambda _: b"", "no backup"),
    "of another program": (lambda _: b"PK\x03\x04" * 50, "no backup"),
    "a snapshot": (lambda data: b"osvm-snapshot\n" + data, "no backup"),
    "of a newer format": (edited(format=FORMAT + 1), "upgrade"),
    "of a forged size": (edited(bytes=2**60), "not the size"),
    "without an agreement": (edited(agreement={}), "incomplete"),
    "of another feed": (edited(feed="g"), "belongs to feed 'f'"),
    "of another snapshot": (edited(snapshot="1:" + "ab" * 32 + ":1-0"), "SHA-256"),
    "of no snapshot": (edited(snapshot=7), "incomplete"),
    "of a forged agreement": (edited(agreement=OTHER), "contradicts|another configuration"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "said"), UNSOUND.values(), ids=UNSOUND)
def test_a_file_that_is_no_sound_backup_is_refused_in_one_sentence(lost, change, said):
    store, path, _ = lost
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InvalidBackup, match=said) as refused:
        restore(store, Backup.read(path))
    assert str(refused.value).startswith(f"{path}: ")
    assert store.call("DBSIZE") == 0


def test_a_file_that_announces_terabytes_takes_no_memory(tmp_path):
    path = tmp_path / "forged"
    with path.open("wb") as forged:
        forged.write(b"osvm-backup\n" + (2**31).to_bytes(4, "big"))
        forged.truncate(1 << 40)  # a sparse file
    with pytest.raises(InvalidBackup, match="longer than it may be"):
        Backup.read(path)


@pytest.mark.slow
def test_the_commands_back_a_feed_up_and_restore_it_on_a_new_server(tmp_path, run_command):
    settings = {"classes": "true,false", "window": "60", "refit_every": "20", "refit_lag": "0"}
    path = str(tmp_path / "backup")
    rest = ("push", "mail", "Phishing", "--skip", "100", "--limit", "80")

    def run(url, *arguments):
        return run_command(*arguments, "--redis", url)[::2]

    def answers(url):
        with Store(url, "mail") as store:
            return [payload for _, payload in payloads(store)[0]]

    with embedded.temporary() as first:
        run(first.url, "push", "mail", "Phishing", "--limit", "100")
        work(first.url, "mail", settings, 100)
        assert "seq 100, n 100" in run(first.url, "backup", "mail", "--out", path)[1]
        run(first.url, *rest)
        work(first.url, "mail", settings, 180)
        expected = answers(first.url)[100:]
    with embedded.temporary() as second:
        code, err = run(second.url, "restore", "mail", path)
        assert (code, err.splitlines()[1:]) == (0, [
            "lost: 100 answers before it, which are not in this Redis",
            "lost: what was pushed and answered after it; push it again from there",
            "to go on: online-svm worker mail",
        ])  # fmt: skip
        code, err = run(second.url, "restore", "mail", path)
        assert (code, "Say --yes" in err) == (2, True)
        run(second.url, *rest)
        work(second.url, "mail", settings, 180)
        assert answers(second.url) == expected
        assert run(second.url, "verify", "mail")[0] == 0
        code, err = run(second.url, "restore", "mail", path, "--yes")
        assert (code, "no answer is given twice" in err) == (4, True)
