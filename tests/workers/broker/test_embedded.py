"""The embedded server: one a directory, private, durable, and never left behind by `temporary`."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import redis
from processes import Process

from workers.broker import embedded
from workers.broker.lease import process_start
from workers.broker.store import Store
from workers.errors import EmbeddedFailed


@pytest.fixture
def directory(tmp_path):
    place = tmp_path / "state of 'a user' % \"x\""
    yield place
    embedded.stop(place)


def server_pid(server):
    return int((server.directory / "redis.pid").read_text())


def wait_until(is_true, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_server_is_started_once_and_then_attached_to(directory):
    assert embedded.running(directory) is None
    first = embedded.ensure(directory)
    second = embedded.ensure(directory)
    assert (first.was_started, second.was_started) == (True, False)
    assert first.url == second.url == embedded.running(directory).url
    with Store(first.url, "f") as one, Store(second.url, "f") as two:
        one.call("SET", "key", "value")
        assert two.call("GET", "key") == b"value"


def test_it_is_private_durable_and_listens_on_its_socket_only(directory):
    server = embedded.ensure(directory)
    assert directory.stat().st_mode & 0o777 == 0o700
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        assert client.info("server")["tcp_port"] == 0
        settings = client.config_get("*")
    assert settings["appendonly"] == "yes"
    assert settings["appendfsync"] == "everysec"
    assert settings["maxmemory-policy"] == "noeviction"
    assert settings["dir"] == str(directory)
    assert Path(settings["unixsocket"]).stat().st_mode & 0o077 == 0


def test_what_was_written_is_there_after_a_stop_and_after_a_kill(directory):
    server = embedded.ensure(directory)
    with Store(server.url, "f") as store:
        store.call("SET", "key", "first")
    assert embedded.stop(directory)
    assert not embedded.stop(directory)
    server = embedded.ensure(directory)
    with Store(server.url, "f") as store:
        assert store.call("GET", "key") == b"first"
        store.call("CONFIG", "SET", "appendfsync", "always")
        store.call("SET", "key", "second")
    os.kill(server_pid(server), signal.SIGKILL)
    wait_until(lambda: embedded.running(directory) is None)
    with Store(embedded.ensure(directory).url, "f") as store:
        assert store.call("GET", "key") == b"second"


def test_two_that_start_at_once_share_one_server(directory):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(embedded.ensure(directory))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(server.was_started for server in found) == [False, False, False, True]


def test_settings_that_an_earlier_server_left_are_not_read(directory, tmp_path):
    directory.mkdir(mode=0o700)
    stale = f"port 6399\nappendonly no\ndir {tmp_path}\nmaxmemory-policy allkeys-lru\n"
    (directory / "redis.conf").write_text(stale)
    server = embedded.ensure(directory)
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        settings = client.config_get("*")
    assert (settings["port"], settings["appendonly"]) == ("0", "yes")
    assert (settings["dir"], settings["maxmemory-policy"]) == (str(directory), "noeviction")


def test_it_outlives_the_process_that_started_it(directory):
    code = "import sys, pathlib; from workers.broker import embedded; "
    code += "print(embedded.ensure(pathlib.Path(sys.argv[1])).was_started)"
    ran = subprocess.run(
        [sys.executable, "-c", code, str(directory)], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "True\n"
    assert not embedded.ensure(directory).was_started


def test_two_directories_are_two_databases(directory, tmp_path):
    other = tmp_path / "other"
    try:
        urls = [embedded.ensure(place).url for place in (directory, other)]
        with Store(urls[0], "f") as one, Store(urls[1], "f") as two:
            one.call("SET", "key", "value")
            assert two.call("GET", "key") is None
    finally:
        embedded.stop(other)


def test_a_directory_too_deep_for_a_socket_is_served_from_a_short_private_path(tmp_path):
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    try:
        server = embedded.ensure(deep)
        path = embedded.socket_path(deep)
        assert len(str(path)) <= 103
        assert path.parent.stat().st_mode & 0o777 == 0o700
        with Store(server.url, "f") as store:
            assert store.call("PING")
        assert embedded.running(deep) is not None
    finally:
        embedded.stop(deep)


def test_a_directory_open_to_others_is_refused(tmp_path):
    tmp_path.chmod(0o755)
    with pytest.raises(EmbeddedFailed, match="chmod 700"):
        embedded.ensure(tmp_path)


def test_a_server_that_does_not_start_says_why(directory, monkeypatch):
    monkeypatch.setattr(embedded, "_START_SECONDS", 1.0)
    directory.mkdir(mode=0o700)
    (directory / "appendonly.aof").write_text("this is no append-only file")
    with pytest.raises(EmbeddedFailed, match=r"does not start: .*append only file"):
        embedded.ensure(directory)


def test_the_state_directory_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert embedded.state_directory() == tmp_path / "online-svm"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert embedded.state_directory() == tmp_path / ".local/state/online-svm"


def test_a_temporary_server_leaves_nothing():
    with embedded.temporary() as server:
        pid = server_pid(server)
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
