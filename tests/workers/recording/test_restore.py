"""A feed that was lost with its Redis goes on from its backup, byte for byte."""

import re

import pytest
from shipped_redis import PROGRAMS
from world import COUNT, drain, payloads, push, rows, session, work

from workers.admin import verify
from workers.admin.reset import reset
from workers.broker import embedded
from workers.broker.leases import Holder
from workers.broker.store import Store
from workers.errors import BadConfiguration, Fenced, OutputAhead, StateLost, WrongKeyType
from workers.feed.keys import REGISTRY
from workers.feed.position import parse_id
from workers.reading.registry import FeedInUse
from workers.recording.backup import backup
from workers.recording.reader import Recording
from workers.recording.restore import restore

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
        backup(store, path)
        drain(running, COUNT)
        expected = payloads(store), store.state().position
        store.call("FLUSHALL")
        yield store, path, expected


def put_back(store, path, *options, **more):
    with Recording.open(path) as recording:
        return restore(store, recording, *options, **more)


def after(pairs, cursor):
    return [pair for pair in pairs if parse_id(pair[0]) > parse_id(cursor)]


@pytest.mark.parametrize("lost", ["embedded", "oldest"], indirect=True)
@pytest.mark.parametrize("server", ["flushed", "another"])
def test_a_restored_feed_goes_on_as_if_redis_had_never_been_lost(lost, server, system_url):
    store, path, (answers, position) = lost
    url = store.url if server == "flushed" else system_url
    with Store(url, "f", block_ms=20) as anew:
        reset(anew, with_input=True)
        found = put_back(anew, path)
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
    found = put_back(store, path)
    assert (found.answers, found.waiting) == (MIDDLE, COUNT - MIDDLE)
    drain(session(store, may_create=False), COUNT)
    assert (payloads(store), store.state().position) == (answers, position)


def test_new_input_gets_ids_after_the_backup_although_the_clock_is_behind(lost):
    store, path, _ = lost
    far = 2**52
    store.call("FLUSHALL")
    put_back(store, path)
    store.call("XSETID", store.keys.input, f"{far}-5")  # as if the producers' clock were ahead
    store.call("XADD", store.keys.input, "*", "x", "[0.1,0.2,0.3]", "y", "a")
    (last,) = store.last_entries(store.keys.input, 1)
    assert last[0] == b"%d-6" % far
    store.call("DEL", store.keys.state, store.keys.input)
    put_back(store, path)
    info = store.call("XINFO", "STREAM", store.keys.input)
    assert info[info.index(b"last-generated-id") + 1] == b"130-0"


def test_input_that_is_trimmed_unread_after_a_restore_is_missed_from_redis_7_on(lost, counting_url):
    _, path, _ = lost
    with Store(counting_url, "f", block_ms=20) as store:
        reset(store, with_input=True)
        put_back(store, path)
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
        put_back(store, path, overwrite=True)
    assert (store.state(), payloads(store)) == before
    reset(store, with_input=False)
    put_back(store, path)
    drain(session(store, may_create=False), COUNT)
    assert payloads(store) == [after(stream, b"130-0") for stream in before[1]]


def test_an_existing_feed_is_overwritten_only_on_request(lost):
    store, path, _ = lost
    push(store, rows())
    running = session(store, batch=10)
    drain(running, MIDDLE)
    epoch = store.state().epoch
    with pytest.raises(BadConfiguration, match="exists"):
        put_back(store, path)
    store.call("SET", store.keys.lease, Holder.here("me").encode())
    with pytest.raises(FeedInUse, match="held by 'me'"):
        put_back(store, path, overwrite=True)
    put_back(store, path, overwrite=True, force=True)
    assert store.state().epoch > epoch
    with pytest.raises(Fenced):
        drain(running, COUNT)
    assert set(store.snapshot_keys()) == set(store.state().snapshot.keys(store.keys))


def test_a_key_of_another_type_and_a_backup_of_another_feed_are_named(lost):
    store, path, _ = lost
    store.call("SET", store.keys.out, "mine")
    with pytest.raises(WrongKeyType, match=re.escape(store.keys.out)):
        put_back(store, path)
    assert store.state() is None
    with (
        Store(store.url, "g") as other,
        pytest.raises(BadConfiguration, match="online-svm restore f FILE"),
    ):
        put_back(other, path)


def test_recorded_input_after_the_snapshot_is_put_back_and_answered_to_the_same_bytes(lost):
    """The file was written after the worker's last snapshot, and Redis was lost after that."""
    store, path, (answers, position) = lost
    push(store, rows())
    drain(session(store, batch=10), MIDDLE)
    running = session(store, batch=10, may_create=False)
    running.snapshot()
    drain(running, COUNT)
    backup(store, path)
    store.call("FLUSHALL")
    found = put_back(store, path)
    assert (found.position.seq, found.waiting) == (MIDDLE, COUNT - MIDDLE)
    drain(session(store, batch=7, may_create=False), COUNT)
    assert payloads(store) == [after(stream, b"130-0") for stream in answers]
    assert store.state().position == position


@pytest.mark.slow
def test_the_commands_back_a_feed_up_and_restore_it_on_a_new_server(tmp_path, run_command):
    settings = {"classes": "true,false", "window": "60", "refit_every": "20"}
    path = str(tmp_path / "mail.sqlite")
    rest = ("push", "mail", "Phishing", "--skip", "100", "--limit", "80")

    def run(url, *arguments):
        return run_command(*arguments, "--redis", url)[::2]

    def answers(url):
        with Store(url, "mail") as store:
            return [payload for _, payload in payloads(store)[0]]

    with embedded.temporary() as first:
        run(first.url, "push", "mail", "Phishing", "--limit", "100")
        work(first.url, "mail", settings, 100)
        assert "seq 100, n 100" in run(first.url, "backup", "mail", path)[1]
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
