"""Checks of the server: its version, its eviction policy, and whether a restart may lose answers.

Redis 7.0 to 8.4 reads its append-only file as the user `default`, and checks the permissions of
that user for commands between MULTI and EXEC, which include all writes of scripts. If `default`
lacks permissions, a restart skips the commits of every feed and reads everything else.
"""

from workers.broker.client import needs_cluster_url
from workers.broker.feed_reader import FeedReader
from workers.broker.permissions import of_commit
from workers.config.redis_url import CLUSTER, kind_of
from workers.errors import RedisUnsuitable, Stopped, Unavailable, WorkerError

OLDEST_REDIS = (6, 2)  # 6.2 introduced exclusive ranges and XTRIM MINID, which the commit needs

_FIRST_AFFECTED = (7, 0)
_FIXED_REDIS = (8, 6)
_FIXED_VALKEY = (9, 1, 2)
"""Valkey 8.0.11 and 8.1.10 are fixed as well; there, the warning is superfluous but harmless."""

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


def name_of(server: dict[str, str]) -> str:
    """Return name and version of a server by its INFO; Valkey also states a version of Redis.

    >>> name_of({"redis_version": "7.2.4", "valkey_version": "9.1.2"})
    'Valkey 9.1.2'
    """
    valkey = server.get("valkey_version")
    return f"Valkey {valkey}" if valkey else f"Redis {server.get('redis_version', '0.0')}"


def check_server(server: dict[str, str], url: str) -> None:
    """Raise RedisUnsuitable for a server that is too old, or would evict streams.

    Also if the server is part of a cluster, but the URL is for a single server.
    """
    version = server.get("redis_version", "0.0")
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_REDIS:
        wanted = ".".join(map(str, OLDEST_REDIS))
        raise RedisUnsuitable(f"{name_of(server)} is too old: Redis {wanted} or newer is needed")
    if server.get("cluster_enabled") == "1" and kind_of(url) != CLUSTER:
        raise needs_cluster_url(url)
    policy = server.get("maxmemory_policy", "noeviction")
    # A volatile-* policy evicts only keys that expire anyway.
    if policy.startswith("allkeys"):
        raise RedisUnsuitable(
            f"Redis may evict streams and snapshots (maxmemory-policy {policy}): "
            "set maxmemory-policy noeviction"
        )


def durability(reader: FeedReader, server: dict[str, str]) -> tuple[str, ...]:
    """Return a warning if the feed's server may lose committed data at a restart."""
    if server.get("aof_enabled", "0") != "1":
        return (NO_FILE,)
    if not checks_rights_of_file(server):
        return ()
    for command in of_commit(reader.keys):
        try:
            is_allowed = reader.may_run("default", command)
        except (Unavailable, Stopped):
            raise
        except WorkerError:  # ACL DRYRUN is missing, or not permitted
            return (UNSEEN,)
        if not is_allowed:
            return (SKIPS.format(f"{command[0]} on {command[1]}"),)
    return ()


def checks_rights_of_file(server: dict[str, str]) -> bool:
    """Return whether the server checks permissions when it reads its append-only file.

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
        return _numbers(server["valkey_version"]) < _FIXED_VALKEY
    return _FIRST_AFFECTED <= _numbers(server["redis_version"]) < _FIXED_REDIS


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
