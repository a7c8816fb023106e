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

from archived_feed import BEGIN, DAY, HOSTILE, answering, archive, push, rows_of, stream  # noqa: E402
from processes import Process  # noqa: E402

from workers.admin.reset import reset  # noqa: E402
from workers.broker import feed_reader  # noqa: E402
from workers.broker.store import Store  # noqa: E402
from workers.errors import BadConfiguration, InputLost  # noqa: E402
from workers.failpoints import EXIT_CODE, OF_ARCHIVE  # noqa: E402
from workers.feed.output_retention import DOWNSTREAM  # noqa: E402
from workers.feed.position import parse_id  # noqa: E402
from workers.history.archive import gathering, parquet, writer  # noqa: E402
from workers.history.archive.archiver import Archiver  # noqa: E402
from workers.history.archive.identity import locked  # noqa: E402
from workers.history.archive.layout import feed_directory  # noqa: E402
from workers.history.archive.reader import Archive, last_answer  # noqa: E402
from workers.history.archive.verification import verify_archive  # noqa: E402
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


def test_the_day_is_that_of_the_entry_in_utc(answered, tmp_path):
    archive(answered, tmp_path)
    place = tmp_path / f"feed={answered.keys.feed}" / "kind=answers"
    days = sorted(path.name for path in place.iterdir())
    assert days[0] == "day=2025-11-22"
    assert len(days) == 5
    for path in place.glob("*/*.parquet"):
        with path.open("rb") as source:
            for row in pq.read_table(source).to_pylist():
                assert row["time"].strftime("day=%Y-%m-%d") == path.parent.name


def test_columns_repeat_what_the_payload_says(answered, tmp_path):
    archive(answered, tmp_path)
    for row in rows_of(tmp_path, answered.keys.feed, "answers"):
        message = json.loads(row["payload"])
        for name in ("seq", "n", "status", "id", "label", "probability", "lower", "upper"):
            assert row[name] == message.get(name), name


def test_labels_are_those_that_were_learned(answered, tmp_path):
    archive(answered, tmp_path)
    found = {row["entry"]: row["label"] for row in rows_of(tmp_path, answered.keys.feed, "labels")}
    expected = {
        f"{BEGIN + i * DAY // 24}-{i % 3}": "ab"[i % 3 == 0] for i in range(100) if i % 10 != 5
    }
    assert found == expected  # one in ten was rejected, and nothing learned of it


def test_a_late_label_names_its_example(embedded_url, feed, tmp_path):
    with answering(embedded_url, feed, horizon=5) as (store, answer, _):
        push(store, 0, 30)
        store.call("XADD", store.keys.input, f"{BEGIN + 40 * DAY}-0", "x", "[1,2]", "id", "late")
        store.call("XADD", store.keys.input, f"{BEGIN + 41 * DAY}-0", "for", "late", "y", "b")
        answer()
        archive(store, tmp_path)
    last = rows_of(tmp_path, feed, "labels")[-1]
    assert (last["id"], last["label"], last["is_late"]) == ("late", "b", True)


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
    with pytest.raises(BadConfiguration, match="needs one of its own, --group"):
        archive(answered, tmp_path / "two")
    assert archive(answered, tmp_path / "two", group="second").answers == 100


def test_two_processes_cannot_write_one_archive(answered, tmp_path):
    with (
        locked(feed_directory(tmp_path, answered.keys.feed)),
        pytest.raises(BadConfiguration, match="another process writes this archive"),
    ):
        archive(answered, tmp_path)


def test_answers_that_were_trimmed_before_are_missed(answered, tmp_path):
    archive(answered, tmp_path)
    store = answered
    with answering(store.url, store.keys.feed) as (_, answer, _session):
        push(store, 100, 120)
        answer()
    newest = stream(store, "out")[-5][0]
    store.call("XTRIM", store.keys.out, "MINID", newest)
    with pytest.raises(InputLost, match="gave up answers 100 to 114 before they were archived"):
        archive(store, tmp_path)
    assert len(rows_of(tmp_path, store.keys.feed, "answers")) == 100
    assert archive(store, tmp_path, accept_gap=True).answers == 5


def test_input_that_was_trimmed_before_is_missed(answered, tmp_path):
    archive(answered, tmp_path)
    store = answered
    with answering(store.url, store.keys.feed) as (_, answer, _session):
        push(store, 100, 120)
        answer()
    store.call("XDEL", store.keys.input, stream(store, "input")[-3][0])
    with pytest.raises(InputLost, match="gave up the input of 1 answers"):
        archive(store, tmp_path)


def test_an_archive_begins_with_the_oldest_answer_that_is_kept(answered, tmp_path):
    answered.call("XTRIM", answered.keys.out, "MAXLEN", "=", 40)
    answered.call("XTRIM", answered.keys.input, "MAXLEN", "=", 30)
    done = archive(answered, tmp_path)
    assert (done.answers, done.inputs, done.missing) == (40, 30, 10)


def test_a_feed_that_was_begun_anew_is_another_archive(answered, tmp_path):
    archive(answered, tmp_path)
    store = answered
    reset(store, with_input=False)
    with answering(store.url, store.keys.feed, C=2.0) as (_, answer, _session):
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


def test_a_feed_that_answers_the_same_input_again_has_the_same_archive(answered, tmp_path):
    archive(answered, tmp_path)
    reset(answered, with_input=False, force=True)
    with answering(answered.url, answered.keys.feed) as (store, answer, _):
        push(store, 100, 120)
        answer()
        assert archive(store, tmp_path).answers == 20
        assert_whole(store, tmp_path)


def test_large_input_is_held_in_parts(answered, tmp_path, monkeypatch):
    """A page has a thousand answers, and each of their entries may have a MiB."""
    most = []
    hold = parquet.HeldRows.add

    def watched(self, rows):
        most.append(len(rows["input"]))
        hold(self, rows)

    monkeypatch.setattr(parquet.HeldRows, "add", watched)
    monkeypatch.setattr(gathering, "MOST_INPUT", 1)
    monkeypatch.setattr(feed_reader, "PAGE_BYTES", 500)
    done = archive(answered, tmp_path)
    assert (done.answers, done.inputs, done.missing) == (100, 100, 0)
    assert 1 <= max(most[1:]) < 20
    assert_whole(answered, tmp_path)


def test_an_archive_takes_the_group_of_one_that_was_given_up(answered, tmp_path):
    archive(answered, tmp_path / "one")
    with pytest.raises(BadConfiguration, match="If that consumer was given up for good: --take"):
        archive(answered, tmp_path / "two")
    assert archive(answered, tmp_path / "two", takes_group=True).answers == 100
    assert_whole(answered, tmp_path / "two")
    assert archive(answered, tmp_path / "two").answers == 0
    with pytest.raises(BadConfiguration, match="has another consumer"):
        archive(answered, tmp_path / "one")


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
        command, capture_output=True, text=True, preexec_fn=small_files, timeout=60
    )
    assert ended.returncode == 2, ended.stderr
    assert "cannot be written: File too large. Nothing was acknowledged that is not on disk" in (
        ended.stderr
    )
    assert acknowledged(answered) == b"0-0"
    assert not list(tmp_path.rglob("*.tmp"))
    archive(answered, tmp_path)
    assert_whole(answered, tmp_path)


@pytest.mark.parametrize("point", OF_ARCHIVE)
def test_a_kill_at_any_point_loses_and_repeats_nothing(answered, tmp_path, point):
    """The process dies at each passage of the point in turn, until one run reaches the end."""
    feed = answered.keys.feed
    code = (
        "import sys; sys.path[:0] = ['tests/support']; from pathlib import Path\n"
        "from workers.broker.store import Store; from archived_feed import archive\n"
        "from workers import failpoints; from workers.failpoints import Failpoint\n"
        "url, feed, root, name = sys.argv[1:]\n"
        "import os, pyarrow.parquet\n"
        "for nth in (1, 2, 9, 20):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        failpoints.chosen = Failpoint(f'{name}:{nth}')\n"
        "        with Store(url, feed) as store:\n"
        "            archive(store, Path(root))\n"
        "        os._exit(0)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    ended = subprocess.run(
        (sys.executable, "-c", code, answered.url, feed, str(tmp_path), point),
        capture_output=True, text=True, timeout=60,
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


@pytest.mark.chaos
def test_kills_at_random_moments_lose_and_repeat_nothing(embedded_url, feed, tmp_path):
    rng, kills = random.Random(5), 0
    command = (*COMMAND, feed, "--to", str(tmp_path), "--redis", embedded_url, "--follow")
    with answering(embedded_url, feed, keep_input=True) as (store, answer, _):
        sent = 10
        push(store, 0, sent, step=60_000)
        answer()
        while kills < 12:
            with Process((*command, "--every", "0"), stderr=subprocess.DEVNULL) as process:
                before, deadline = acknowledged(store), time.monotonic() + 60
                while acknowledged(store) == before:  # it has begun to write
                    push(store, sent, sent + 10, step=60_000)
                    sent += 10
                    answer()
                    assert process.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                time.sleep(rng.random() / 5)
                process.kill()
                process.wait()
                kills += 1
        archive(store, tmp_path)
        assert_whole(store, tmp_path)


def test_a_feed_that_waits_for_its_archive_loses_nothing_to_it(embedded_url, feed, tmp_path):
    """The retention is a tenth of the feed: only what is on disk is trimmed, input too."""
    changes = {"downstream": "block", "retain_out": 30}
    with answering(embedded_url, feed, **changes, batch=8, replay_budget=16) as (store, _, session):
        session._gate._seconds = 0.01
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
    command = (*COMMAND, feed, "--to", str(tmp_path), "--redis", embedded_url, "--follow")
    worker = (
        *(sys.executable, "-m", "workers.cli", "worker", feed, "--redis", embedded_url),
        *("--downstream", "block", "--retain-out", "100"),
        *("--replay-budget", "100", "--batch", "16", "--window", "60", "--refit-every", "20"),
        *("--committee", "single", "--metrics-every", "10"),
    )
    with Store(embedded_url, feed) as store, Process(worker, stderr=subprocess.DEVNULL):
        push(store, 0, total, step=60_000)
        sent = stream(store, "input")
        deadline = time.monotonic() + 240
        while not (last := last_answer(place) if place.is_dir() else None) or last[2] < total - 1:
            while not store.length(store.keys.out):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            with Process((*command, "--every", "0.1"), stderr=subprocess.DEVNULL) as process:
                before = acknowledged(store)
                while acknowledged(store) == before:  # it has begun to write
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                time.sleep(rng.random())
                process.send_signal(signal.SIGSTOP)
                on_disk = last_answer(place)[0] if last_answer(place) else b"0-0"
                time.sleep(rng.random())
                for name in ("input", "out"):  # what comes next on disk is still there
                    after = store.call("XRANGE", getattr(store.keys, name), b"(" + on_disk, "+")
                    following = [at for at, _ in sent if parse_id(at) > parse_id(on_disk)]
                    assert [at for at, *_ in after] == following[: len(after)], name
                    assert bool(after) == bool(following) or name == "out"
                process.kill()
                process.wait()
        assert store.length(store.keys.out) < 300
        assert store.length(store.keys.input) < 1000
    found = Archive(place)
    assert [e for page in found.inputs() for e in page] == sent
    seqs = [json.loads(e[1][1])["seq"] for page in found.payloads("answers") for e in page]
    assert seqs == list(range(total))


def test_the_command_follows_a_feed_until_it_is_stopped(embedded_url, feed, tmp_path):
    command = (*COMMAND, feed, "--to", str(tmp_path), "--redis", embedded_url, "--follow")
    arguments = (*command, "--every", "0")
    with (
        Process(arguments, stderr=subprocess.PIPE, text=True) as process,
        answering(embedded_url, feed) as (store, answer, _),
    ):
        for end in (40, 80, 100):
            push(store, len(stream(store, "input")), end)
            answer()
            deadline = time.monotonic() + 30
            while acknowledged(store) != stream(store, "out")[-1][0]:
                assert time.monotonic() < deadline
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.05)
        process.terminate()
        assert process.wait() == 0
        said = process.stderr.read()
        assert (
            f"archiving to {tmp_path}/feed={feed}, from the oldest answer that is kept on" in said
        )
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
        capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"},
    )  # fmt: skip
    assert ended.returncode == 2
    assert "pip install 'online-svm[archive]'" in ended.stderr
    assert ended.stderr.count("\n") == 1
