"""Durability: answers that Redis may lose after it accepted them, as far as a worker can see.

Redis 7.0 to 8.4 reads its append-only file as the user `default`, and applies the rights of that
user to what stands there between MULTI and EXEC. The writes of a script stand there so. Where
`default` lacks the rights, a restart reads everything else and skips the commits of every feed.
"""

from workers.broker.feed_reader import FeedReader
from workers.errors import Stopped, Unavailable, WorkerError
from workers.feed.keys import GROUP, FeedKeys

_FIRST_AFFECTED = (7, 0)
_MENDED_REDIS = (8, 6)
_MENDED_VALKEY = (9, 1, 2)
"""Valkey 8.0.11 and 8.1.10 are mended as well. To keep the rights of `default` harms none."""

NO_FILE = "Redis keeps no append-only file: what it loses in a crash is lost (appendonly yes)"

_SEE = "see deploy/redis/README.md, 'A restart'"

SKIPS = (
    "at its next restart this Redis will skip what feeds committed since the last rewrite of its "
    "append-only file: its user `default` may not run {}. Before that, give it its rights and "
    "leave it off: ACL SETUSER default off resetpass allkeys allchannels +@all, and the same in "
    f"the users' file; {_SEE}"
)

UNSEEN = (
    "a restart of this Redis may skip what feeds committed: whether its user `default` has the "
    f"rights that reading the append-only file takes cannot be seen without +acl|dryrun; {_SEE}"
)


def durability(reader: FeedReader, server: dict[str, str]) -> tuple[str, ...]:
    """Return a warning where the server may lose what it has accepted.

    Only the server that has the feed is asked, and only about the users that it has loaded.

    Parameters
    ----------
    reader : FeedReader
    server : dict
        The fields of INFO.
    """
    if server.get("aof_enabled", "0") != "1":
        return (NO_FILE,)
    if not checks_rights_of_file(server):
        return ()
    for command in _in_file(reader.keys):
        try:
            reply = reader.call_server("ACL", "DRYRUN", "default", *command)
        except (Unavailable, Stopped):
            raise
        except WorkerError:  # the right is missing, or the command
            return (UNSEEN,)
        if reply != b"OK":
            return (SKIPS.format(f"{command[0]} on {command[1]}"),)
    return ()


def checks_rights_of_file(server: dict[str, str]) -> bool:
    """Return whether the server applies rights to what it reads from its append-only file.

    Examples
    --------
    >>> checks_rights_of_file({"redis_version": "7.0.15"})
    True
    >>> checks_rights_of_file({"redis_version": "6.2.14"})
    False
    >>> checks_rights_of_file({"redis_version": "7.2.4", "valkey_version": "9.1.2"})
    False
    """
    if "valkey_version" in server:
        return _numbers(server["valkey_version"]) < _MENDED_VALKEY
    return _FIRST_AFFECTED <= _numbers(server["redis_version"]) < _MENDED_REDIS


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version; a part that is none ends it."""
    parts = version.split(".")
    return tuple(int(part) for part in parts if part.isdecimal())


def _in_file(keys: FeedKeys) -> list[tuple[str, ...]]:
    """Return one command of each kind that a commit leaves in the file."""
    snap = keys.snapshot(0, "0" * 8)
    return [
        ("HSET", keys.state, "epoch", "0"), ("HINCRBY", keys.state, "epoch", "1"),
        ("XADD", keys.out, "*", "p", ""), ("XTRIM", keys.input, "MAXLEN", "1"),
        ("XGROUP", "SETID", keys.input, GROUP, "0"), ("PERSIST", snap), ("UNLINK", snap),
        ("PEXPIREAT", snap, "1"),
    ]  # fmt: skip
