"""Give each error of Redis the name that the rest of the program knows it by."""

import re

import redis

from workers.broker.client import ReplyTooLarge
from workers.config.redis_servers import CLUSTER
from workers.config.redis_servers import kind_of as servers_kind
from workers.config.redis_url import redacted
from workers.errors import (
    AccessDenied,
    BadConfiguration,
    EndOfStream,
    ReadTooLarge,
    RedisUnsuitable,
    Unavailable,
    WorkerError,
    WrongKeyType,
)
from workers.feed.position import END

# Redis refuses now but will accept the same command later.
_TRANSIENT = frozenset(
    [
        "OOM",
        "READONLY",
        "LOADING",
        "BUSY",
        "MASTERDOWN",
        "MISCONF",
        "NOREPLICAS",
        "UNBLOCKED",
    ]
)
_DENIED = frozenset(["NOAUTH", "WRONGPASS", "NOPERM"])
_CODES = {
    redis.exceptions.ReadOnlyError: "READONLY",
    redis.exceptions.OutOfMemoryError: "OOM",
    redis.exceptions.NoScriptError: "NOSCRIPT",
    redis.exceptions.NoPermissionError: "NOPERM",
    redis.exceptions.MasterDownError: "MASTERDOWN",
    redis.exceptions.ClusterDownError: "CLUSTERDOWN",
    redis.exceptions.TryAgainError: "TRYAGAIN",
}
_OF_CLUSTERS = (
    redis.exceptions.MovedError,
    redis.exceptions.AskError,
    redis.exceptions.ClusterCrossSlotError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.TryAgainError,
)
# Inside a script, and in older versions of redis-py, these errors are plain text.
_IN_CLUSTER = re.compile(
    r"(?:^|\s-)(?:MOVED|ASK|CROSSSLOT|CLUSTERDOWN|TRYAGAIN)\b|non local key in a cluster"
)

# What a node of a cluster says while slots move or a primary is replaced.
_PASSING = re.compile(r"(?:^|\s-)(?:MOVED|ASK|CLUSTERDOWN|TRYAGAIN)\b")

# An error inside a script has the code of the failing command in its text: "... -OOM command ...".
_CODE = re.compile(r"(?:^|-)([A-Z]{3,})\b")
# The text of NOPERM inside a script, before Redis 7.
_SCRIPT_DENIED = re.compile(r"can't run this command|No permissions|no permissions")


class UnknownScript(WorkerError):
    """Redis was restarted or its scripts were flushed."""


class UnknownGroup(WorkerError):
    """A consumer group, or its stream, does not exist."""


def translated(error: redis.RedisError, url: str) -> WorkerError:
    """Return the named error for an error of redis-py; `Unavailable` if it may pass.

    Examples
    --------
    >>> translated(redis.ResponseError("OOM command not allowed"), "redis://h")
    Unavailable('Redis at redis://h refuses for now: OOM command not allowed')
    """
    text, where = str(error)[:300], f"Redis at {redacted(url)}"
    if isinstance(error, ReplyTooLarge):
        return ReadTooLarge(f"{where}: {text}")
    if isinstance(error, _OF_CLUSTERS) or _IN_CLUSTER.search(text):
        return _of_cluster(error, url)
    if "exhausted the last possible ID" in text:
        return EndOfStream(f"{where}: {END}")
    code = _code_of(error)
    if code in _DENIED or isinstance(error, redis.AuthenticationError):
        return AccessDenied(f"{where} denies access: {text}; check the user, password and ACL")
    if code == "NOSCRIPT":
        return UnknownScript(text)
    if code == "NOGROUP":
        return UnknownGroup(f"{where}: {text}")
    if code == "WRONGTYPE":
        return WrongKeyType(f"{where}: a key of the feed holds another type: {text}")
    if text.startswith("unknown command"):
        return RedisUnsuitable(
            f"{where}: {text}; the URL of a Sentinel is redis+sentinel://HOST:PORT/SERVICE"
        )
    if code in _TRANSIENT or isinstance(error, redis.exceptions.BusyLoadingError):
        return Unavailable(f"{where} refuses for now: {text}")
    if isinstance(error, redis.ConnectionError | redis.TimeoutError):
        if "certificate" in text.lower():
            return BadConfiguration(f"{where}: {text}; check the certificate and the CA")
        return Unavailable(f"{where} does not answer: {text}; start it, or correct the URL")
    return WorkerError(f"{where}: unexpected reply: {text}")


def needs_cluster_url(url: str) -> RedisUnsuitable:
    """Return the error for a URL of one server, which is part of a cluster.

    Examples
    --------
    >>> needs_cluster_url("redis://:secret@h:7000/0")
    RedisUnsuitable('Redis at redis://h:7000/0 is part of a Redis Cluster: write \
redis+cluster://h:7000')
    """
    scheme, _, rest = redacted(url).partition("://")
    better = f"{scheme}+cluster://{rest.partition('/')[0]}"
    if scheme not in ("redis", "rediss"):
        better = "redis+cluster://HOST:PORT"
    return RedisUnsuitable(f"Redis at {redacted(url)} is part of a Redis Cluster: write {better}")


def _of_cluster(error: redis.RedisError, url: str) -> WorkerError:
    """Return the named error for what only a cluster says."""
    if servers_kind(url) != CLUSTER:
        return needs_cluster_url(url)
    text, where = str(error)[:300], f"Redis at {redacted(url)}"
    if isinstance(error, redis.exceptions.ClusterCrossSlotError) or not _may_pass(error):
        return WorkerError(f"{where}: unexpected reply: {text}")
    return Unavailable(f"{where} refuses for now: {text}")


def _may_pass(error: redis.RedisError) -> bool:
    return isinstance(error, _OF_CLUSTERS) or _PASSING.search(str(error)) is not None


def kind_of(error: redis.RedisError) -> str:
    """Return the kind of a failure that may pass: a code of Redis, `timeout` or `connection`.

    Examples
    --------
    >>> kind_of(redis.ResponseError("OOM command not allowed")), kind_of(redis.TimeoutError())
    ('oom', 'timeout')
    """
    if isinstance(error, redis.exceptions.BusyLoadingError):
        return "loading"
    if isinstance(error, redis.exceptions.AskError):
        return "moved"
    code = _code_of(error)
    if code is not None:
        return code.lower()
    return "timeout" if isinstance(error, redis.TimeoutError) else "connection"


def _code_of(error: redis.RedisError) -> str | None:
    for kind, code in _CODES.items():
        if isinstance(error, kind):
            return code
    text = str(error)
    if _SCRIPT_DENIED.search(text):
        return "NOPERM"
    known = _TRANSIENT | _DENIED | {"NOSCRIPT", "WRONGTYPE", "NOGROUP"}
    return next((code for code in _CODE.findall(text) if code in known), None)
