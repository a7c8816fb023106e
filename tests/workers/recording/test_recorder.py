"""A recording holds every entry of a feed once, whatever becomes of the process that writes it."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain

import pytest
from processes import Process
from recorded_feed import (
    BEGIN,
    DAY,
    HOSTILE,
    answering,
    assert_whole,
    entry,
    go_on,
    push,
    rows_of,
    stream,
)
from session_steps import advance
from world import wait_until

from workers.admin.reset import reset
from workers.dashboard.past_run import read_past
from workers.errors import BadConfiguration, InputLost, SnapshotsLost
from workers.feed.position import parse_id
from workers.feed.retention import DOWNSTREAM
from workers.recording.backup import backup, recording
from workers.recording.file import InvalidRecording
from workers.recording.reader import Recording
from workers.recording.recorder import BackupOptions, FeedWasReset
from workers.recording.verification import verify_file

COMMAND = (sys.executable, "-m", "workers.cli", "backup")
GROUPED = BackupOptions(group=DOWNSTREAM)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "feed.sqlite"


@pytest.fixture
def answered(embedded_url, feed):
    """A feed with 100 answers of five days, its store."""
    with answering(embedded_url, feed) as (store, answer, session):
        push(store, 0, 100)
        answer()
        session.snapshot()
        assert len(stream(store, "out")) == 100
        yield store


def acknowledged(store):
    for flat in store.call("XINFO", "GROUPS", store.keys.out):
        of_group = dict(zip(flat[::2], flat[1::2], strict=True))
        if of_group[b"name"] == DOWNSTREAM.encode():
            return of_group[b"last-delivered-id"]
    return None


def last_seq(path):
    if not path.is_file():
        return None
    with closing(sqlite3.connect(path)) as file:
        try:
            return file.execute("SELECT max(seq) FROM answers").fetchone()[0]
        except sqlite3.OperationalError:  # its tables are not made yet
            return None


def following(url, feed, path, every, **options):
    """Start the command that records a feed as it is answered."""
    command = (*COMMAND, feed, str(path), "--redis", url, "--follow", "--every", every)
    return Process(command, **options)


def test_a_late_label_names_its_example(embedded_url, feed, path):
    with answering(embedded_url, feed, horizon=5) as (store, answer, _):
        push(store, 0, 30)
        store.call("XADD", store.keys.input, f"{BEGIN + 40 * DAY}-0", "x", "[1,2]", "id", "late")
        store.call("XADD", store.keys.input, f"{BEGIN + 41 * DAY}-0", "for", "late", "y", "b")
        answer()
        backup(store, path)
    last = rows_of(path, "input")[-1]
    assert (last["for"], last["y"], last["id"]) == ("late", "b", None)
    with Recording.open(path) as file:
        answers = read_past(file).answers
    assert {a.message.get("id") for a in answers} >= {"late"}


def test_a_group_that_was_dropped_meanwhile_is_made_again(answered, path):
    with recording(answered, path, GROUPED) as writer:
        writer.record()
        writer.acknowledge()
        answered.call("XGROUP", "DESTROY", answered.keys.out, DOWNSTREAM)
        writer.acknowledge()
    assert acknowledged(answered) == stream(answered, "out")[-1][0]


def test_a_plain_backup_makes_no_group_and_moves_one_that_is_there(answered, path):
    backup(answered, path)
    assert acknowledged(answered) is None
    answered.call("XGROUP", "CREATE", answered.keys.out, DOWNSTREAM, "0-0")
    backup(answered, path)
    assert acknowledged(answered) == stream(answered, "out")[-1][0]


def test_another_file_may_not_take_the_group(answered, tmp_path):
    one, two, own = (tmp_path / name for name in ("one", "two", "own"))
    backup(answered, one, GROUPED)
    with pytest.raises(BadConfiguration, match=r"needs one of its own, --group.* for good: --take"):
        backup(answered, two, GROUPED)
    assert backup(answered, own, BackupOptions(group="second")).done.answers == 100
    assert backup(answered, two, replace(GROUPED, takes_group=True)).done.answers == 100
    assert_whole(answered, two)
    assert backup(answered, two, GROUPED).done.answers == 0
    with pytest.raises(BadConfiguration, match="has another consumer"):
        backup(answered, one, GROUPED)


def test_a_plain_backup_leaves_a_group_to_its_consumer(answered, tmp_path):
    one, two, new = (tmp_path / name for name in ("one", "two", "new"))
    backup(answered, one, GROUPED)
    go_on(answered, 100, 120)
    before = acknowledged(answered)
    assert backup(answered, two).done.answers == 120
    assert acknowledged(answered) == before
    assert_whole(answered, two)
    with pytest.raises(BadConfiguration, match="has another consumer"):
        backup(answered, new, GROUPED)
    assert not new.exists()
    assert backup(answered, one, GROUPED).done.answers == 20
    assert acknowledged(answered) == stream(answered, "out")[-1][0]


def test_a_file_with_no_record_yet_says_so(answered, path):
    with recording(answered, path, BackupOptions()):
        pass
    with pytest.raises(InvalidRecording, match="holds nothing yet"), Recording.open(path):
        pass
    assert backup(answered, path).done.answers == 100


def test_of_two_writers_one_is_refused_and_the_file_is_whole(answered, path):
    with recording(answered, path, BackupOptions()) as writer:
        writer.record()
        go_on(answered, 100, 120)
        assert backup(answered, path).done.answers == 20
        go_on(answered, 120, 130)
        with pytest.raises(BadConfiguration, match="another process writes this file"):
            writer.record()
    backup(answered, path)
    assert_whole(answered, path)


def test_answers_that_were_trimmed_before_are_missed(answered, path):
    backup(answered, path)
    go_on(answered, 100, 120)
    answered.call("XTRIM", answered.keys.out, "MINID", stream(answered, "out")[-5][0])
    with pytest.raises(InputLost, match="gave up answers 100 to 114 before they were recorded"):
        backup(answered, path)
    assert last_seq(path) == 99
    assert backup(answered, path, BackupOptions(accept_gap=True)).done.answers == 5
    with Recording.open(path) as file:
        assert file.facts()["answers_from"] == file.facts()["input_from"] == "115"


def test_input_that_was_trimmed_before_is_missed(answered, path):
    backup(answered, path)
    go_on(answered, 100, 120)
    answered.call("XDEL", answered.keys.input, stream(answered, "input")[-3][0])
    with pytest.raises(InputLost, match="gave up the input of 1 answers"):
        backup(answered, path)


def test_a_file_begins_with_the_oldest_answer_that_is_kept(answered, path):
    answered.call("XTRIM", answered.keys.out, "MAXLEN", "=", 40)
    answered.call("XTRIM", answered.keys.input, "MAXLEN", "=", 30)
    done = backup(answered, path).done
    assert (done.answers, done.inputs, done.missing) == (40, 30, 10)
    with Recording.open(path) as file:
        facts = file.facts()
    assert (facts["answers_from"], facts["input_from"]) == ("60", "70")


def test_input_that_is_kept_of_earlier_answers_is_recorded_too(answered, path):
    answered.call("XTRIM", answered.keys.out, "MAXLEN", "=", 40)
    kept = stream(answered, "input")
    backup(answered, path)
    with Recording.open(path) as file:
        facts = file.facts()
        held = [(at, list(f)) for at, f in file.each(file.keys.input, b"0-0")]
    assert held == kept
    assert (facts["answers_from"], facts["input_from"]) == ("60", str(100 - len(kept)))


def test_verify_begins_at_the_first_snapshot(answered, path):
    answered.call("XTRIM", answered.keys.out, "MAXLEN", "=", 40)
    backup(answered, path)
    go_on(answered, 100, 140)
    backup(answered, path)
    with Recording.open(path) as file:
        found = verify_file(file)
    assert (found.start.seq, found.is_identical, found.answers) == (100, True, 40)
    assert (found.chained, found.unlinked) == (40, 40)  # nothing is known before them


def test_what_is_older_than_asked_is_dropped_and_the_rest_can_be_verified(embedded_url, feed, path):
    keep = BackupOptions(keep_ms=2 * DAY)
    for end in range(20, 200, 20):  # an entry an hour, a snapshot after each twenty
        with answering(embedded_url, feed, replay_budget=16) as (store, answer, session):
            push(store, end - 20, end)
            answer()
            session.snapshot()
            backup(store, path, keep)
    first = rows_of(path, "answers")[0]
    age = (BEGIN + 179 * DAY // 24 - first["ms"]) / DAY
    assert 2 <= age < 2 + 2
    with Recording.open(path) as file:
        found, facts = verify_file(file), file.facts()
    assert (found.is_identical, found.start.seq) == (True, first["seq"])
    assert facts["answers_from"] == facts["input_from"] == str(first["seq"])
    assert len(rows_of(path, "snapshots")) < 12


def test_by_month_each_answer_is_in_the_file_of_its_month(embedded_url, feed, path):
    months = BackupOptions(by_month=True)
    with answering(embedded_url, feed) as (store, answer, session):
        for end in (40, 80, 100):
            for i in range(end - 40 if end < 100 else 80, end):
                at, fields = entry(i, step=DAY // 2)
                pairs = (part for pair in fields.items() for part in pair)
                store.call("XADD", store.keys.input, at, *pairs)
            answer()
            session.snapshot()
            backup(store, path, months)
        state = store.state()
    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == [
        "feed-2025-11.sqlite", "feed-2025-12.sqlite", "feed-2026-01.sqlite",
    ]  # fmt: skip
    seqs = [[row["seq"] for row in rows_of(file, "answers")] for file in files]
    assert [*chain(*seqs)] == [*range(100)]
    for file in files:
        with Recording.open(file) as one:
            found = verify_file(one)
            assert (found.is_identical, found.unlinked) == (True, 0), file
    assert found.end == state.position


def test_a_restarted_feed_needs_another_file_unless_answers_agree(answered, path):
    backup(answered, path)
    reset(answered, with_input=False)
    go_on(answered, 100, 120)
    assert backup(answered, path).done.answers == 20
    assert_whole(answered, path)
    reset(answered, with_input=False)
    with answering(answered.url, answered.keys.feed, C=2.0) as (store, answer, _):
        answer()
        with pytest.raises(BadConfiguration, match="another configuration: back up to another"):
            backup(store, path)


@pytest.mark.parametrize("is_following", [False, True])
def test_a_feed_that_was_begun_anew_with_its_configuration_needs_another_file_too(
    embedded_url, feed, path, is_following
):
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 40)
        answer()
        with recording(store, path, BackupOptions()) as writer:
            writer.record()
            reset(store, with_input=True, force=True)
            with answering(embedded_url, feed) as (_, answer_again, _session):
                push(store, 50, 80)
                answer_again()
            again = writer.record if is_following else partial(backup, store, path)
            with pytest.raises(FeedWasReset, match="was begun anew after"):
                again()
    assert last_seq(path) == 39


def test_the_file_of_another_feed_is_refused(answered, path):
    backup(answered, path)
    other = f"{answered.keys.feed}-other"
    with answering(answered.url, other) as (store, answer, _):
        push(store, 0, 10)
        answer()
        with pytest.raises(BadConfiguration, match=f"is not of feed '{other}'"):
            backup(store, path)


def test_text_of_a_producer_is_data(embedded_url, feed, path):
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 20)
        raw = (b"x", b"[1,2]", b"y", b"\xff\x00", b"id", HOSTILE.encode(), b"\xfe", b"\xfd")
        store.call("XADD", store.keys.input, f"{2**63 - 1}-{2**64 - 1}", *raw)
        store.call("XADD", store.keys.input, f"{2**63}-6", "x", "[1,2]", "id", HOSTILE)
        store.call("XADD", store.keys.input, f"{2**64 - 1}-7", "y", "a\0b", "x", "[1,2]", "x", "")
        answer()
        backup(store, path)
        assert_whole(store, path)
        for row in (stream(store, "input")[-1], stream(store, "input")[-2]):
            with Recording.open(path) as file:
                assert [*file.each(file.keys.input, row[0])] == [
                    (at, list(f))
                    for at, f in stream(store, "input")
                    if parse_id(at) > parse_id(row[0])
                ]
    last = rows_of(path, "input")[-3:]
    assert [row["id"] for row in last] == [None, HOSTILE, None]


def test_a_feed_that_waits_for_its_recording_loses_nothing_to_it(embedded_url, feed, path):
    """The retention is a tenth of the feed: only what is on disk is trimmed, input too."""
    changes = {"downstream": "block", "retain_out": 30}
    with answering(embedded_url, feed, **changes, batch=8, replay_budget=16) as (store, _, session):
        store.retained.retention = replace(store.retained.retention, met=2)
        push(store, 0, 300)
        everything = stream(store, "input")
        for _ in range(1000):
            advance(session)
            session.finish_commit()
            if session.position.seq == 300:
                break
            if len(stream(store, "out")) >= 30:
                backup(store, path, GROUPED)
        backup(store, path, GROUPED)
        assert store.length(store.keys.out) < 300
        assert store.length(store.keys.input) < 300
        assert store.length(store.keys.met) < 10
    with Recording.open(path) as file:
        assert [(at, list(f)) for at, f in file.each(file.keys.input, b"0-0")] == everything
        reports = [json.loads(e[1][1])["n"] for e in file.each(file.keys.met, b"0-0")]
    assert [row["seq"] for row in rows_of(path, "answers")] == [*range(300)]
    assert reports == list(range(10, 271, 10))


def test_the_command_follows_a_feed_and_others_read_the_file_meanwhile(embedded_url, feed, path):
    with (
        following(embedded_url, feed, path, "0", stderr=subprocess.PIPE, text=True) as process,
        answering(embedded_url, feed) as (store, answer, _),
    ):
        for end in (40, 100):
            push(store, len(stream(store, "input")), end)
            answer()
            last = stream(store, "out")[-1][0]
            wait_until(lambda last=last: acknowledged(store) == last)
            with Recording.open(path) as file:
                assert verify_file(file).is_identical
                with closing(sqlite3.connect(path)) as reader:  # a reader that stays
                    reader.execute("BEGIN")
                    assert reader.execute("SELECT count(*) FROM answers").fetchone() == (end,)
        process.terminate()
        assert process.wait() == 0
        said = process.stderr.read()
        assert f"recording feed '{feed}' in {path}" in said
        assert "100 answers added" in said
        assert_whole(store, path)
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_without_a_snapshot_and_its_beginning_a_file_cannot_be_verified(answered, path):
    answered.call("XTRIM", answered.keys.out, "MAXLEN", "=", 40)
    answered.call("HSET", answered.keys.state, "snapshot", "", "previous", "")
    backup(answered, path)
    with Recording.open(path) as file, pytest.raises(SnapshotsLost, match="has no snapshot yet"):
        verify_file(file)
