"""Check, before the first write, that this user may run every command of a worker.

Redis checks permissions when a transaction queues a command. So every command is queued with its
keys, and the transaction is discarded.
"""

import time
from collections.abc import Sequence
from typing import Any, Self

import redis

from workers.broker.client import TIMEOUT, client, delays, translated
from workers.broker.nodes import NodeHealth, nodes_of
from workers.config.redis_url import CLUSTER, SENTINEL, kind_of, redacted
from workers.errors import AccessDenied, Stopped, Unavailable
from workers.feed.keys import GROUP, REGISTRY, FeedKeys
from workers.stop import Stop

Command = tuple[str, ...]

_WITH_SUBCOMMANDS = ("XGROUP", "XINFO", "CLUSTER")

ADVICE = "grant that; deploy/redis/users.acl lists what each role needs"


def of_worker(keys: FeedKeys, consumer_group: str | None = None) -> list[Command]:
    """Return one command of each kind and key that a worker uses.

    A worker with a `consumer_group` holds back while that group of `out` lags.
    """
    st, lease, snap = keys.state, keys.lease, keys.snapshot(0, "0" * 8)
    outputs = keys.outputs
    reads: list[Command] = [
        *[(name, key) for key in outputs for name in ("TYPE", "XLEN")],
        *[("XINFO", "STREAM", key) for key in (*outputs, keys.input)],
        *[("XRANGE", key, "-", "+") for key in (*outputs[:-1], keys.input)],
        ("INFO", "server"), ("SCAN", "0"), ("TYPE", keys.input), ("EXISTS", snap), ("GET", snap),
        ("HGETALL", st), ("HGET", st, "epoch"), ("HMGET", st, "epoch"), ("EXISTS", st),
        ("TYPE", st), ("TYPE", lease), ("GET", lease),
        ("XREAD", "STREAMS", keys.input, "0-0"), ("EVAL", "return 1", "1", st),
        ("EVALSHA", "0" * 40, "1", st), ("EXISTS", keys.restart_mark),
        ("GET", keys.wanted), ("XRANGE", keys.fits("long"), "-", "+"),
    ]  # fmt: skip
    writes: list[Command] = [
        *[("XADD", key, "*", "p", "") for key in (*outputs, keys.raised)],
        *[("XTRIM", key, "MAXLEN", "1") for key in (*outputs, keys.input)],
        ("HSET", st, "epoch", "0"), ("HINCRBY", st, "epoch", "1"), ("PERSIST", st),
        ("PERSIST", snap), ("SET", snap, "", "EX", "1"), ("UNLINK", snap), ("SADD", REGISTRY, "f"),
        ("SET", lease, "", "PX", "1"), ("DEL", lease), ("XGROUP", "SETID", keys.input, GROUP, "0"),
        ("XGROUP", "CREATE", keys.input, GROUP, "0"), ("DEL", keys.restart_mark),
        ("HSET", keys.answered_ids, "i", ""), ("HDEL", keys.answered_ids, "i"),
        ("UNLINK", keys.answered_ids), ("XADD", keys.fits("long"), "*", "task", ""),
        ("EXPIRE", keys.fits("long"), "1"),
    ]  # fmt: skip
    if consumer_group is None:
        return reads + writes
    waits = [("XINFO", "GROUPS", keys.out), ("XPENDING", keys.out, consumer_group)]
    return [*reads, *writes, *waits]


def of_commit(keys: FeedKeys) -> list[Command]:
    """Return one command of each kind that a commit writes to the append-only file."""
    snap = keys.snapshot(0, "0" * 8)
    return [
        ("HSET", keys.state, "epoch", "0"), ("HINCRBY", keys.state, "epoch", "1"),
        ("XADD", keys.out, "*", "p", ""), ("XTRIM", keys.input, "MAXLEN", "1"),
        ("XGROUP", "SETID", keys.input, GROUP, "0"), ("PERSIST", snap), ("UNLINK", snap),
        ("PEXPIREAT", snap, "1"), ("HSET", keys.answered_ids, "i", ""),
        ("HDEL", keys.answered_ids, "i"),
    ]  # fmt: skip


def of_publisher(keys: FeedKeys) -> list[Command]:
    """Return the additional commands of a worker that publishes states."""
    part = keys.published_parts(0, "0" * 8, 1)[0]
    return [
        ("TIME",), ("HGETALL", keys.published), ("HSET", keys.published, "n", "0"),
        ("SET", part, "", "EX", "1"), ("EXISTS", part), ("PERSIST", part), ("EXPIRE", part, "1"),
    ]  # fmt: skip


def of_patterns() -> list[Command]:
    """Return the additional commands for patterns of feed names; SCAN finds unlisted feeds."""
    return [("SSCAN", REGISTRY, "0"), ("EVALSHA", "0" * 40, "1", REGISTRY)]


def of_webhook(keys: FeedKeys) -> list[Command]:
    """Return the additional commands for the delivery of alarms; see `monitor.webhook`."""
    alarms = keys.alarms
    return [
        ("XGROUP", "CREATE", alarms, "g", "0"), ("XACK", alarms, "g", "0-1"),
        ("XREADGROUP", "GROUP", "g", "c", "STREAMS", alarms, ">"),
        ("XGROUP", "SETID", alarms, "g", "0"), ("XINFO", "GROUPS", alarms),
        ("XINFO", "STREAM", alarms), ("XRANGE", keys.events, "-", "+"),
        ("XGROUP", "CREATE", keys.met, "g", "0"), ("XGROUP", "SETID", keys.met, "g", "0"),
        ("XINFO", "GROUPS", keys.met), ("XREVRANGE", keys.met, "+", "-"), ("EXISTS", keys.met),
        ("XREVRANGE", alarms, "+", "-"), ("XRANGE", keys.met, "-", "+"),
        ("XRANGE", alarms, "-", "+"),
    ]  # fmt: skip


def of_replication(url: str, wait_replicas: int) -> list[Command]:
    """Return the additional commands to find the right server, and to wait for replicas."""
    waits: list[Command] = [("WAIT", "0", "1")] if wait_replicas else []
    finding: dict[str, list[Command]] = {
        CLUSTER: [("CLUSTER", "SLOTS"), ("ASKING",)],
        SENTINEL: [("ROLE",)],
    }
    return waits + finding.get(kind_of(url), [])


class Checks:
    """Checks the permissions of many feeds; parameters as for `Connection`."""

    def __init__(
        self,
        url: str,
        stop: Stop | None = None,
        retry_timeout: float = 0.0,
        timeout: float = TIMEOUT,
        fail_fast_for: float = 0.0,
    ) -> None:
        self._url, self._stop, self._retry_timeout = url, stop or Stop(), retry_timeout
        self._timeout, self._fail_fast_for = timeout, fail_fast_for
        self._clients: dict[str, redis.Redis] = {}  # by the URL of the server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def check(self, commands: Sequence[Command]) -> None:
        """Raise AccessDenied, with every missing permission, unless the user may run all commands.

        The check runs on the server of the first command's key. Raises Stopped if a stop is
        requested while Redis does not answer; WorkerError after `retry_timeout`. Refusals for other
        reasons are ignored here.
        """
        deadline = time.monotonic() + self._retry_timeout
        for delay in delays():
            try:
                denied = _denied(self._connected(commands), commands)
                break
            except redis.RedisError as error:
                self._close()
                named = translated(error, self._url)
                if not isinstance(named, Unavailable) or time.monotonic() >= deadline:
                    raise named from None
            if self._stop.wait(delay):
                raise Stopped("stopped while Redis did not answer")
        if denied:
            what = ", ".join(f"{name} on {key}" if key else name for name, key in denied)
            where = redacted(self._url)
            raise AccessDenied(f"Redis at {where} does not let this user run {what}: {ADVICE}")

    def _connected(self, commands: Sequence[Command]) -> Any:
        nodes = nodes_of(self._url)
        url = nodes.url_of(commands[0])
        if nodes.health(url, self._fail_fast_for) is NodeHealth.SILENT:
            raise redis.ConnectionError("it did not answer a moment ago")
        if url not in self._clients:
            self._clients[url] = client(url, self._timeout)
        connected: Any = self._clients[url]  # Any: redis-py has no type for `connection`
        return connected.connection

    def _close(self) -> None:
        for connected in self._clients.values():
            connected.close()
        self._clients.clear()


def check(
    url: str, commands: Sequence[Command], stop: Stop | None = None, retry_timeout: float = 0.0
) -> None:
    """Check the permissions of one feed; see `Checks`."""
    with Checks(url, stop, retry_timeout) as checks:
        checks.check(commands)


def _denied(connection: Any, commands: Sequence[Command]) -> list[tuple[str, str]]:
    """Return the name and key of each command that is denied, without running any."""
    connection.send_command("MULTI")
    if not _is_allowed(connection):
        return [("MULTI", "")]  # the other commands would run instead of being queued
    others = (*commands, ("DISCARD",))
    connection.send_packed_command(connection.pack_commands(others))
    found = {
        (_name(command), next((part for part in command if ":" in part), "")): None
        for command in others
        if not _is_allowed(connection)
    }
    return list(found)


def _is_allowed(connection: Any) -> bool:
    """Read the next reply; return whether it is anything but a missing permission."""
    try:
        connection.read_response()
    except redis.exceptions.NoPermissionError:
        return False
    except redis.ResponseError:
        pass  # out of memory, read-only: the worker's own commands report this
    return True


def _name(command: Command) -> str:
    return " ".join(command[:2]) if command[0] in _WITH_SUBCOMMANDS else command[0]
