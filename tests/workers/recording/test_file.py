"""The file itself: private, checked before it is read, and whole after a kill or a full disk."""

import os
import random
import resource
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing, suppress

import pytest
from processes import Process
from recorded_feed import (
    KEPT,
    PERSON,
    TRACES,
    answering,
    assert_whole,
    go_on,
    push_with_person,
    rows_of,
    stream,
    traces_in,
)

from online_svm.storage import recording as files
from online_svm.storage.recording import APPLICATION_ID, FORMAT, opened
from workers.broker.failpoints import EXIT_CODE, OF_RECORDING
from workers.broker.store import Store
from workers.errors import BadConfiguration, WorkerError
from workers.recording.backup import backup, begin_log, recording, truncate_log
from workers.recording.erasure import erase, erase_file
from workers.recording.file import InvalidRecording, is_recording
from workers.recording.fork import fork
from workers.recording.reader import Recording
from workers.recording.recorder import BackupOptions
from workers.recording.restore import restore
from workers.recording.verification import verify_file

COMMAND = (sys.executable, "-m", "workers.cli")


def few_seeds(count):
    """The first by default, the others with `make slow`."""
    return [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, count))]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "feed.sqlite"


@pytest.fixture
def answered(embedded_url, feed):
    """A feed with 100 answers, one of them a person's, and its store."""
    with answering(embedded_url, feed, **KEPT) as (store, answer, session):
        push_with_person(store)
        answer()
        session.snapshot()
        yield store


def beside(path):
    """Return the names of all files in the directory of a recording, but its own."""
    return [found.name for found in path.parent.iterdir() if found != path]


def contents(path):
    """Return the bytes of all files in the directory of a recording."""
    return b"\n".join(found.read_bytes() for found in path.parent.iterdir())


def test_a_file_at_rest_is_private_and_alone_and_names_its_program(answered, path):
    os.umask(0o022)
    backup(answered, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert beside(path) == []
    head = path.read_bytes()[:100]
    assert int.from_bytes(head[68:72], "big") == APPLICATION_ID
    assert int.from_bytes(head[60:64], "big") == FORMAT


def changed(statement):
    def change(path):
        with closing(sqlite3.connect(path)) as file:
            file.executescript(statement)

    return change


def overwritten(at, data):
    def change(path):
        with path.open("r+b") as file:
            file.seek(at)
            file.write(data)

    return change


DAMAGES = {
    "empty": (lambda path: path.write_bytes(b""), "is neither a saved estimator"),
    "of another kind": (lambda path: path.write_bytes(b"PK" * 99), "is neither a saved estimator"),
    "of another program": (overwritten(68, b"GPKG"), "is an SQLite file of another program"),
    "of a newer format": (overwritten(60, b"\0\0\0\x63"), "has format 99, this version knows 1: "),
    "cut": (lambda path: os.truncate(path, path.stat().st_size - 4096), "is damaged"),
    "cut by a byte": (lambda path: os.truncate(path, path.stat().st_size - 1), "is damaged"),
    "with pages of zeros": (overwritten(4096, bytes(40_960)), "is damaged"),
    "with a trigger": (
        changed("CREATE TRIGGER t AFTER INSERT ON facts BEGIN DELETE FROM facts; END;"),
        "has other tables than this program makes",
    ),
    "with a view": (changed("CREATE VIEW v AS SELECT 1;"), "has other tables"),
    "with a view in place of a table": (
        changed("DROP TABLE events; CREATE VIEW events AS SELECT 1;"), "has other tables",
    ),
    "of an estimator": (
        changed("UPDATE facts SET value = 'estimator' WHERE name = 'kind';"), "and no feed",
    ),
    "a directory": (lambda path: (path.unlink(), path.mkdir()), "is no regular file"),
    "gone": (lambda path: path.unlink(), "cannot be opened: No such file"),
}  # fmt: skip


@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_a_file_that_is_damaged_or_of_somebody_else_is_named_in_one_line(answered, path, damage):
    backup(answered, path)
    change, said = DAMAGES[damage]
    change(path)
    with pytest.raises(InvalidRecording, match=said) as refused, Recording.open(path):
        pass
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("seed", few_seeds(6))
def test_a_damaged_page_is_named_or_shows_as_a_difference_and_never_as_a_traceback(
    answered, path, seed
):
    backup(answered, path)
    rng = random.Random(seed)
    whole = path.read_bytes()
    for _ in range(40):
        data = bytearray(whole)
        at = rng.randrange(100, len(data) - 64)
        data[at : at + 64] = rng.randbytes(64)
        path.write_bytes(data)
        for use in (_verified, _restored, _forked):
            with suppress(WorkerError):
                use(answered, path)


def _verified(_store, path):
    with Recording.open(path) as file:
        verify_file(file)


def _restored(store, path):
    with Store(store.url, f"{store.keys.feed}-no") as other, Recording.open(path) as file:
        restore(other, file)  # of another name: refused, at the latest there


def _forked(store, path):
    with Store(store.url, f"{store.keys.feed}-fork") as target, Recording.open(path) as file:
        target.delete(target.keys.input)
        fork(file, target)


@pytest.mark.parametrize("use", ["verify", "erase", "backup"])
def test_settings_that_are_no_json_are_named_with_the_file(answered, path, use):
    backup(answered, path)
    changed("UPDATE facts SET value = char(1) || value WHERE name = 'config';")(path)
    do = {
        "verify": lambda: _verified(answered, path),
        "erase": lambda: erase_file(path, PERSON),
        "backup": lambda: backup(answered, path),
    }
    with pytest.raises(BadConfiguration) as refused:
        do[use]()
    assert str(refused.value).startswith(f"{path}: ")


def test_a_sparse_file_that_announces_terabytes_takes_no_memory_and_no_time(answered, path):
    backup(answered, path)
    with path.open("r+b") as file:
        file.seek(28)
        file.write((2**32 - 2).to_bytes(4, "big"))
        file.truncate(1 << 40)
    began = time.monotonic()
    with pytest.raises(InvalidRecording), Recording.open(path):
        pass
    assert time.monotonic() - began < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20


def test_a_value_that_is_too_large_is_refused(answered, path, monkeypatch):
    backup(answered, path)
    monkeypatch.setattr(files, "MAX_VALUE_BYTES", 10_000)
    changed("UPDATE input SET x = printf('%.*c', 20000, '1') WHERE seq = 3;")(path)
    with pytest.raises(InvalidRecording), Recording.open(path) as file:
        list(file.pages(file.keys.input, b"0-0"))


def test_a_full_disk_is_told_and_the_older_content_is_whole(answered, path):
    backup(answered, path)
    before = path.stat().st_size
    go_on(answered, 100, 300, **KEPT)
    command = (*COMMAND, "backup", answered.keys.feed, str(path), "--redis", answered.url)

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (before + 8192, before + 8192))

    ended = subprocess.run(
        command, capture_output=True, text=True, preexec_fn=small_files, timeout=120
    )
    assert ended.returncode == 2, ended.stderr
    assert f"{path}: cannot be read or written: " in ended.stderr
    assert "make room, and run the same command again" in ended.stderr
    with Recording.open(path) as file:
        assert file.state().position.seq == 100
        assert verify_file(file).is_identical
    backup(answered, path)
    assert_whole(answered, path)
    assert beside(path) == []


KILLED = """
import os, sys
sys.path[:0] = ["tests/support"]
from pathlib import Path
import recorded_feed
from workers.broker import failpoints
from workers.broker.store import Store
from workers.recording.backup import backup
from workers.recording.erasure import erase
from workers.recording.recorder import BackupOptions

url, feed, path, name = sys.argv[1:]
for nth in (1, 2):
    child = os.fork()
    if not child:
        failpoints.chosen = failpoints.Failpoint(f"{name}:{nth}")
        with Store(url, feed) as store:
            backup(store, Path(path), BackupOptions(group="downstream"))
            erase(store, recorded_feed.PERSON, Path(path))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("point", OF_RECORDING)
def test_a_kill_at_any_point_loses_nothing_and_a_second_run_ends_it(answered, path, point):
    ended = subprocess.run(
        (sys.executable, "-c", KILLED, answered.url, answered.keys.feed, str(path), point),
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    codes = ended.stdout.split()
    assert codes[0] == str(EXIT_CODE), ended.stderr
    if rows_of(path, "facts"):
        with Recording.open(path) as file:
            assert verify_file(file).is_identical
    answered.call("DEL", answered.keys.lease)
    finished(answered, path)


def finished(store, path):
    """Run both commands again; the file must be whole, and without a trace of the person."""
    with suppress(BadConfiguration):  # the erasure was cut
        backup(store, path, BackupOptions(group="downstream"))
    with suppress(BadConfiguration):  # it was finished, and nothing of the id is left
        erase(store, PERSON, path)
    backup(store, path, BackupOptions(group="downstream"))
    assert_whole(store, path)
    assert traces_in(contents(path)) == []
    assert beside(path) == []
    with Recording.open(path) as file:
        assert verify_file(file).is_identical


@pytest.mark.parametrize("seed", few_seeds(3))
def test_a_restore_killed_at_any_moment_is_ended_by_the_same_command(answered, path, seed):
    rng, feed = random.Random(seed), answered.keys.feed
    backup(answered, path)
    saved, wanted = path.read_bytes(), stream(answered, "out")
    for key in answered.call("KEYS", f"*{{{feed}}}*"):
        answered.delete(key.decode())
    command = (*COMMAND, "restore", feed, str(path), "--yes", "--redis", answered.url)
    killed_at_random(rng, command)
    assert path.read_bytes() == saved
    with Recording.open(path) as file:
        restore(answered, file, overwrite=True)
    go_on(answered, 100, 120, **KEPT)
    backup(answered, path)
    with Recording.open(path) as file:
        assert verify_file(file).is_identical
        assert list(file.each(file.keys.out, b"0-0"))[:100] == wanted


def killed_at_random(rng, command):
    """Kill a command within the time that it takes after its start."""
    process = Process(command, stdout=-3, stderr=-3)
    with suppress(subprocess.TimeoutExpired):
        subprocess.Popen.wait(process, 0.5 + rng.random() * 3.0)
    process.kill()
    process.wait()


def test_what_was_erased_is_in_no_file(answered, path):
    backup(answered, path)
    assert traces_in(contents(path)) == [*TRACES]
    found = erase(answered, PERSON, path)
    assert (found.entries, found.rows, found.unlinked) == (1, 2, 0)
    assert traces_in(contents(path)) == []
    assert beside(path) == []
    go_on(answered, 100, 140, **KEPT)
    backup(answered, path)
    with Recording.open(path) as file:
        found = verify_file(file)
    # 99 answers are proved by the digest, 40 since the erasure are recomputed
    assert (found.is_identical, found.answers, found.chained, found.unlinked) == (True, 40, 99, 0)


def test_a_file_alone_is_erased_from_by_the_same_rule(answered, path):
    backup(answered, path)
    answered.call("FLUSHALL")
    found = erase_file(path, PERSON)
    assert (found.entries, found.rows, found.learned) == (1, 2, 89)
    assert traces_in(contents(path)) == []
    with Recording.open(path) as file:
        assert verify_file(file).is_identical
        restore(answered, file)
    go_on(answered, 100, 140, **KEPT)
    backup(answered, path)
    with Recording.open(path) as file:
        assert verify_file(file).is_identical
    with pytest.raises(BadConfiguration, match=r"keeps nothing of this id$"):
        erase_file(path, PERSON)


def test_a_feed_and_a_file_from_which_others_were_erased_are_not_joined(answered, path):
    backup(answered, path)
    erase(answered, PERSON)
    with pytest.raises(
        BadConfiguration, match=r"online-svm erase .* --file .* erases them in both"
    ):
        backup(answered, path)
    erase(answered, PERSON, path)
    backup(answered, path)
    assert_whole(answered, path)


@pytest.mark.parametrize("seq", [10, 70, 120])
def test_a_changed_answer_is_found_wherever_it_is(answered, path, seq):
    backup(answered, path)
    erase(answered, PERSON, path)
    go_on(answered, 100, 140, **KEPT)
    backup(answered, path)
    changed(f"UPDATE answers SET n = n + 1 WHERE seq = {seq};")(path)
    with Recording.open(path) as file:
        assert not verify_file(file).is_identical


def test_erase_has_the_file_alone(answered, path):
    with recording(answered, path, BackupOptions()) as writer:
        writer.record()
        assert begin_log(writer.file)
        with pytest.raises(InvalidRecording, match="another process has it open: stop that first"):
            erase(answered, PERSON, path)
        truncate_log(writer.file)
    erase(answered, PERSON, path)
    assert traces_in(contents(path)) == []


def test_a_file_system_without_shared_memory_is_recognised(answered, path):
    """SQLite's VFS with lock files has none, as some network file systems."""
    backup(answered, path)
    uri = f"file:{path}?vfs=unix-dotfile"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as file:
        assert not begin_log(file)
        assert file.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_reader_that_stays_does_not_hold_up_a_follower(answered, path):
    with recording(answered, path, BackupOptions()) as writer:
        writer.record()
        begin_log(writer.file)
        with closing(sqlite3.connect(path)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM answers").fetchone() == (100,)
            go_on(answered, 100, 120, **KEPT)
            began = time.monotonic()
            writer.record()
            truncate_log(writer.file)
            assert time.monotonic() - began < 20, "it does not wait until the reader ends"
            assert reader.execute("SELECT count(*) FROM answers").fetchone() == (100,)
    assert_whole(answered, path)


def test_a_writer_of_a_locked_file_is_told_what_to_do(answered, path, monkeypatch):
    backup(answered, path)
    monkeypatch.setattr("workers.recording.backup.BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(files, "BUSY_SECONDS", 0.1)
        with pytest.raises(InvalidRecording, match="another process has it open: stop that first"):
            backup(answered, path)
    backup(answered, path)


def test_a_name_of_a_file_is_not_taken_for_a_feed(tmp_path):
    path = tmp_path / "a.sqlite"
    with pytest.raises(InvalidRecording, match=r"a\.sqlite: no such file$"):
        is_recording(str(path))
    for content in (b"", b"a,b\n"):
        path.write_bytes(content)
        with pytest.raises(InvalidRecording, match=r"a\.sqlite: is neither a saved estimator nor "):
            is_recording(str(path))
    assert not is_recording("loans")
    assert not is_recording("loans.sqlite")


def test_an_empty_file_of_a_killed_beginning_is_begun(answered, path):
    path.touch(0o600)
    backup(answered, path)
    assert_whole(answered, path)


def test_the_place_of_an_entry_is_found_without_a_scan(answered, path):
    """Else the time of a reader grows with the square of the file."""
    backup(answered, path)
    with Recording.open(path) as file:
        said = []
        file.file.set_trace_callback(said.append)
        list(file.pages(file.keys.out, b"0-0", count=10))
        file.file.set_trace_callback(None)
        plans = [
            plan for text in said if " answers" in text
            for *_, plan in file.file.execute(f"EXPLAIN QUERY PLAN {text}")
        ]  # fmt: skip
    assert any("SEARCH answers" in plan for plan in plans)
    assert not [plan for plan in plans if plan.startswith("SCAN answers")], plans


def test_opened_files_are_never_trusted(answered, path):
    backup(answered, path)
    with opened(path) as file:
        assert file.execute("PRAGMA trusted_schema").fetchone() == (0,)
        assert file.execute("PRAGMA cell_size_check").fetchone() == (1,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            file.execute("DELETE FROM facts")
