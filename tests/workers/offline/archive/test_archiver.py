"""An archive holds every entry of a feed once, whatever becomes of the process that writes it."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from session_steps import advance
from system_tools import package

pq = package("pyarrow.parquet", "pip install 'online-svm[archive]'")

from archived_feed import (  # noqa: E402
    BEGIN,
    DAY,
    HOSTILE,
    SMALL,
    answering,
    archive,
    entry,
    go_on,
    push,
    rows_of,
    stream,
)
from processes import Process  # noqa: E402
from world import Worker, flags_of, wait_until  # noqa: E402

from workers.admin.reset import reset  # noqa: E402
from workers.broker import feed_reader  # noqa: E402
from workers.broker.failpoints import EXIT_CODE, OF_ARCHIVE  # noqa: E402
from workers.broker.store import Store  # noqa: E402
from workers.dashboard.past_run import read_archive  # noqa: E402
from workers.errors import BadConfiguration, InputLost  # noqa: E402
from workers.feed.position import parse_id  # noqa: E402
from workers.feed.retention import DOWNSTREAM  # noqa: E402
from workers.offline.archive import parquet, rows, writer  # noqa: E402
from workers.offline.archive.archiver import Archiver  # noqa: E402
from workers.offline.archive.layout import feed_directory, locked  # noqa: E402
from workers.offline.archive.reader import Archive, last_answer  # noqa: E402
from workers.offline.archive.verification import verify_archive  # noqa: E402
from workers.stop import Stop  # noqa: E402

COMMAND = (sys.executable, "-m", "workers.cli", "export")
STREAMS = {"input": "input", "answers": "out", "reports": "met", "alarms": "alarms"}


@pytest.fixture
def answered(embedded_url, feed):
    """A feed with 100 answers of five days, its store."""
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 100)
        answer()
        assert len(stream(store, "out")) == 100
        yield store


def assert_whole(store, root):
    """Compare an archive with the streams of its feed, byte for byte."""
    found = Archive(feed_directory(root, store.keys.feed))
    assert [e for page in found.inputs() for e in page] == stream(store, "input")
    for kind in ("answers", "reports", "alarms"):
        held = [e for page in found.payloads(kind) for e in page]
        assert held == stream(store, STREAMS[kind])


def acknowledged(store, group=DOWNSTREAM):
    for flat in store.call("XINFO", "GROUPS", store.keys.out):
        of_group = dict(zip(flat[::2], flat[1::2], strict=True))
        if of_group[b"name"] == group.encode():
            return of_group[b"last-delivered-id"]
    return None


def following(url, feed, root, every, **options):
    """Start the command that archives a feed as it is answered."""
    command = (*COMMAND, feed, "--to", str(root), "--redis", url, "--follow", "--every", every)
    return Process(command, **options)


def test_archived_rows_are_those_of_the_streams_by_utc_day(answered, tmp_path):
    feed = answered.keys.feed
    archive(answered, tmp_path)
    place = tmp_path / f"feed={feed}" / "kind=answers"
    days = sorted(path.name for path in place.iterdir())
    assert (days[0], len(days)) == ("day=2025-11-22", 5)
    for path in place.glob("*/*.parquet"):
        with path.open("rb") as source:
            for row in pq.read_table(source).to_pylist():
                assert row["time"].strftime("day=%Y-%m-%d") == path.parent.name
    for row in rows_of(tmp_path, feed, "answers"):
        message = json.loads(row["payload"])
        for name in ("seq", "n", "status", "id", "label", "probability", "lower", "upper"):
            assert row[name] == message.get(name), name
    found = {row["entry"]: row["label"] for row in rows_of(tmp_path, feed, "labels")}
    learned = [i for i in range(100) if i % 10 != 5]  # of a rejected entry nothing is learned
    assert found == {entry(i)[0]: entry(i)[1]["y"] for i in learned}


def test_a_late_label_names_its_example(embedded_url, feed, tmp_path):
    with answering(embedded_url, feed, horizon=5) as (store, answer, _):
        push(store, 0, 30)
        store.call("XADD", store.keys.input, f"{BEGIN + 40 * DAY}-0", "x", "[1,2]", "id", "late")
        store.call("XADD", store.keys.input, f"{BEGIN + 41 * DAY}-0", "for", "late", "y", "b")
        answer()
        archive(store, tmp_path)
    last = rows_of(tmp_path, feed, "labels")[-1]
    assert (last["id"], last["label"], last["is_late"]) == ("late", "b", True)
    found = {a.message.get("id"): a.truth.label for a in read_archive(Archive(tmp_path)).answers}
    assert found["late"] == "b"  # as in a report


def test_rows_of_a_day_are_added_to_its_part_until_it_is_full(
    embedded_url, feed, tmp_path, monkeypatch
):
    monkeypatch.setattr(writer, "PART_ROWS", 20)
    with answering(embedded_url, feed) as (store, answer, _):
        for end in range(10, 60, 7):
            push(store, len(stream(store, "input")), end, step=1000)
            answer()
            archive(store, tmp_path)
        assert_whole(store, tmp_path)
    parts = list((tmp_path / f"feed={feed}" / "kind=answers").glob("*/*"))
    counts = sorted(pq.read_metadata(path).num_rows for path in parts)
    assert counts == [14, 14, 14, 17]


def test_a_group_that_was_dropped_while_it_follows_is_made_again(answered, tmp_path):
    directory = feed_directory(tmp_path, answered.keys.feed)
    with locked(directory):
        archiver = Archiver(answered, directory)
        archiver.run(Stop())
        answered.call("XGROUP", "DESTROY", answered.keys.out, "archive")
        archiver.run(Stop())
    assert acknowledged(answered) == stream(answered, "out")[-1][0]


def test_another_archive_may_not_take_the_group(answered, tmp_path):
    archive(answered, tmp_path / "one")
    with pytest.raises(BadConfiguration, match=r"needs one of its own, --group.* for good: --take"):
        archive(answered, tmp_path / "two")
    assert archive(answered, tmp_path / "own", group="second").answers == 100
    assert archive(answered, tmp_path / "two", takes_group=True).answers == 100
    assert_whole(answered, tmp_path / "two")
    assert archive(answered, tmp_path / "two").answers == 0
    with pytest.raises(BadConfiguration, match="has another consumer"):
        archive(answered, tmp_path / "one")


def test_two_processes_cannot_write_one_archive(answered, tmp_path):
    with (
        locked(feed_directory(tmp_path, answered.keys.feed)),
        pytest.raises(BadConfiguration, match="another process writes this archive"),
    ):
        archive(answered, tmp_path)


def test_answers_that_were_trimmed_before_are_missed(answered, tmp_path):
    archive(answered, tmp_path)
    go_on(answered, 100, 120)
    answered.call("XTRIM", answered.keys.out, "MINID", stream(answered, "out")[-5][0])
    with pytest.raises(InputLost, match="gave up answers 100 to 114 before they were archived"):
        archive(answered, tmp_path)
    assert len(rows_of(tmp_path, answered.keys.feed, "answers")) == 100
    assert archive(answered, tmp_path, accept_gap=True).answers == 5


def test_input_that_was_trimmed_before_is_missed(answered, tmp_path):
    archive(answered, tmp_path)
    go_on(answered, 100, 120)
    answered.call("XDEL", answered.keys.input, stream(answered, "input")[-3][0])
    with pytest.raises(InputLost, match="gave up the input of 1 answers"):
        archive(answered, tmp_path)


def test_an_archive_begins_with_the_oldest_answer_that_is_kept(answered, tmp_path):
    answered.call("XTRIM", answered.keys.out, "MAXLEN", "=", 40)
    answered.call("XTRIM", answered.keys.input, "MAXLEN", "=", 30)
    done = archive(answered, tmp_path)
    assert (done.answers, done.inputs, done.missing) == (40, 30, 10)


def test_a_restarted_feed_needs_another_archive_unless_answers_agree(answered, tmp_path):
    archive(answered, tmp_path)
    reset(answered, with_input=False)
    go_on(answered, 100, 120)
    assert archive(answered, tmp_path).answers == 20
    assert_whole(answered, tmp_path)
    reset(answered, with_input=False)
    with answering(answered.url, answered.keys.feed, C=2.0) as (store, answer, _):
        answer()
        with pytest.raises(BadConfiguration, match="another configuration: archive to another"):
            archive(store, tmp_path)


@pytest.mark.parametrize("is_following", [False, True])
def test_a_feed_that_was_begun_anew_with_its_configuration_is_another_archive_too(
    embedded_url, feed, tmp_path, is_following
):
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 40)
        answer()
        directory = feed_directory(tmp_path, feed)
        with locked(directory):
            archiver = Archiver(store, directory)
            archiver.run(Stop())
            reset(store, with_input=True, force=True)
            with answering(embedded_url, feed) as (_, answer_again, _session):
                push(store, 50, 80)
                answer_again()
            with pytest.raises(BadConfiguration, match="was begun anew after"):
                (archiver if is_following else Archiver(store, directory)).run(Stop())
    assert len(rows_of(tmp_path, feed, "answers")) == 40


def test_large_input_is_held_in_parts(answered, tmp_path, monkeypatch):
    """A page has a thousand answers, and each of their entries may have a MiB."""
    most = []
    hold = parquet.HeldRows.add

    def watched(self, rows):
        most.append(len(rows["input"]))
        hold(self, rows)

    monkeypatch.setattr(parquet.HeldRows, "add", watched)
    monkeypatch.setattr(rows, "MAX_INPUT_BYTES", 1)
    monkeypatch.setattr(feed_reader, "PAGE_BYTES", 500)
    done = archive(answered, tmp_path)
    assert (done.answers, done.inputs, done.missing) == (100, 100, 0)
    assert 1 <= max(most[1:]) < 20
    assert_whole(answered, tmp_path)


def test_text_of_a_producer_is_data(embedded_url, feed, tmp_path):
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 20)
        at = f"{2**63}-5"
        raw = (b"x", b"[1,2]", b"y", b"\xff\x00", b"id", HOSTILE.encode(), b"\xfe", b"\xfd")
        store.call("XADD", store.keys.input, at, *raw)
        store.call("XADD", store.keys.input, f"{2**63}-6", "x", "[1,2]", "id", HOSTILE)
        answer()
        archive(store, tmp_path)
        assert_whole(store, tmp_path)
    last = rows_of(tmp_path, feed, "input")[-2:]
    assert [row["id"] for row in last] == [HOSTILE, HOSTILE]
    assert [row["time"] for row in last] == [None, None]
    assert last[0]["label"] is None  # not UTF-8; `fields` has it
    assert (tmp_path / f"feed={feed}" / "kind=answers" / "day=9999-12-31").is_dir()
    assert {path.name for path in tmp_path.rglob("*") if path.is_dir()} >= {f"feed={feed}"}
    assert all(HOSTILE not in str(path) for path in tmp_path.rglob("*"))


def test_a_full_disk_is_told_and_nothing_is_lost(answered, tmp_path):
    command = (*COMMAND, answered.keys.feed, "--to", str(tmp_path), "--redis", answered.url)

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2500, 2500))

    ended = subprocess.run(
        command, capture_output=True, text=True, preexec_fn=small_files, timeout=120
    )
    assert ended.returncode == 2, ended.stderr
    assert "cannot be written: File too large. Nothing was acknowledged that is not on disk" in (
        ended.stderr
    )
    assert acknowledged(answered) == b"0-0"
    assert not list(tmp_path.rglob("*.tmp"))
    archive(answered, tmp_path)
    assert_whole(answered, tmp_path)


KILLED = """
import os, sys
sys.path[:0] = ["tests/support"]
from pathlib import Path
import pyarrow.parquet
from archived_feed import archive
from workers.broker import failpoints
from workers.broker.store import Store

url, feed, root, name = sys.argv[1:]
for nth in (1, 2, 9, 20):
    child = os.fork()
    if not child:
        failpoints.chosen = failpoints.Failpoint(f"{name}:{nth}")
        with Store(url, feed) as store:
            archive(store, Path(root))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("point", OF_ARCHIVE)
def test_a_kill_at_any_point_loses_and_repeats_nothing(answered, tmp_path, point):
    """The process dies at each passage of the point in turn, until one run reaches the end."""
    feed = answered.keys.feed
    ended = subprocess.run(
        (sys.executable, "-c", KILLED, answered.url, feed, str(tmp_path), point),
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    codes = ended.stdout.split()
    assert codes[0] == str(EXIT_CODE), ended.stderr
    assert set(codes) <= {"0", str(EXIT_CODE)}, ended.stderr
    last = acknowledged(answered)
    on_disk = rows_of(tmp_path, feed, "answers")
    assert not on_disk or last is None or last.decode() <= on_disk[-1]["entry"]
    archive(answered, tmp_path)
    assert_whole(answered, tmp_path)
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_feed_that_waits_for_its_archive_loses_nothing_to_it(embedded_url, feed, tmp_path):
    """The retention is a tenth of the feed: only what is on disk is trimmed, input too."""
    changes = {"downstream": "block", "retain_out": 30}
    with answering(embedded_url, feed, **changes, batch=8, replay_budget=16) as (store, _, session):
        store.retained.retention = replace(store.retained.retention, met=2)
        push(store, 0, 300)
        everything = {"input": stream(store, "input"), "out": []}
        for _ in range(1000):
            advance(session)
            session.finish_commit()
            if session.position.seq == 300:
                break
            if len(stream(store, "out")) >= 30:
                archive(store, tmp_path)
        archive(store, tmp_path)
        assert store.length(store.keys.out) < 300
        assert store.length(store.keys.input) < 300
        assert store.length(store.keys.met) < 10
    found = Archive(feed_directory(tmp_path, feed))
    assert [e for page in found.inputs() for e in page] == everything["input"]
    held = [json.loads(e[1][1])["seq"] for page in found.payloads("answers") for e in page]
    assert held == list(range(300))
    reports = [json.loads(e[1][1])["n"] for page in found.payloads("reports") for e in page]
    assert reports == list(range(10, 271, 10))


@pytest.mark.chaos
def test_a_worker_trims_nothing_that_a_killed_paused_or_slow_archive_has_not_written(
    embedded_url, feed, tmp_path
):
    """Both are the real commands; Redis keeps a hundred answers of 1,200."""
    rng, total = random.Random(7), 1200
    place = feed_directory(tmp_path, feed)
    settings = SMALL | {"downstream": "block", "retain_out": 100, "replay_budget": 100}
    command = ("worker", feed, "--redis", embedded_url, *flags_of(settings))
    with Store(embedded_url, feed) as store, Worker(*command) as worker:
        push(store, 0, total, step=60_000)
        sent = stream(store, "input")
        worker.wait_for(store, 1)
        while not (last := last_answer(place) if place.is_dir() else None) or last[2] < total - 1:
            with following(embedded_url, feed, tmp_path, "0.1", stderr=-3) as process:
                before = acknowledged(store)
                wait_until(lambda before=before: acknowledged(store) != before)
                time.sleep(rng.random())
                process.send_signal(signal.SIGSTOP)
                on_disk = last_answer(place)[0] if last_answer(place) else b"0-0"
                time.sleep(rng.random())
                for name in ("input", "out"):  # what comes next on disk is still there
                    after = store.call("XRANGE", getattr(store.keys, name), b"(" + on_disk, "+")
                    later = [at for at, _ in sent if parse_id(at) > parse_id(on_disk)]
                    assert [at for at, *_ in after] == later[: len(after)], name
                    assert bool(after) == bool(later) or name == "out"
        assert store.length(store.keys.out) < 300
        assert store.length(store.keys.input) < 1000
    found = Archive(place)
    assert [e for page in found.inputs() for e in page] == sent
    seqs = [json.loads(e[1][1])["seq"] for page in found.payloads("answers") for e in page]
    assert seqs == list(range(total))


def test_the_command_follows_a_feed_until_it_is_stopped(embedded_url, feed, tmp_path):
    with (
        following(embedded_url, feed, tmp_path, "0", stderr=subprocess.PIPE, text=True) as process,
        answering(embedded_url, feed) as (store, answer, _),
    ):
        for end in (40, 100):
            push(store, len(stream(store, "input")), end)
            answer()
            last = stream(store, "out")[-1][0]
            wait_until(lambda last=last: acknowledged(store) == last)
        process.terminate()
        assert process.wait() == 0
        said = process.stderr.read()
        assert f"archiving to {tmp_path}/feed={feed}, from the oldest answer that is kept" in said
        assert "100 answers added" in said
        assert_whole(store, tmp_path)


def test_compact_answers_have_the_same_columns(embedded_url, feed, tmp_path):
    with answering(embedded_url, feed, payload="compact") as (store, answer, _):
        push(store, 0, 60)
        answer()
        archive(store, tmp_path)
        assert_whole(store, tmp_path)
        assert verify_archive(store, Archive(tmp_path)).is_identical
    last = rows_of(tmp_path, feed, "answers")[-1]
    assert (last["status"], last["seq"], last["id"]) == ("ok", 59, "id-59")
    assert 0 <= last["lower"] <= last["probability"] <= last["upper"] <= 1
    assert last["label"] in ("a", "b")


def test_a_combination_is_archived_without_input(embedded_url, feed, tmp_path):
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 40)
        answer()
        config = json.dumps({"join": {"feeds": [feed]}})
        fields = {"config": config, "config_hash": sha256(config.encode()).hexdigest()}
        store.call("HSET", store.keys.state, *(part for pair in fields.items() for part in pair))
        done = archive(store, tmp_path)
    assert (done.answers, done.inputs, done.missing) == (40, 0, 0)


def test_without_pyarrow_one_line_names_the_extra(embedded_url, feed, tmp_path):
    (tmp_path / "pyarrow.py").write_text("raise ImportError('no')")
    ended = subprocess.run(
        (*COMMAND, feed, "--to", str(tmp_path / "cold"), "--redis", embedded_url),
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"},
    )  # fmt: skip
    assert ended.returncode == 2
    assert "pip install 'online-svm[archive]'" in ended.stderr
    assert ended.stderr.count("\n") == 1
