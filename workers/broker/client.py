"""Clients of redis-py, the named error of each of its errors, and the delays between attempts.

Redis returns entries by number, so the size of a reply is known only while it arrives. A reply that
exceeds its limit is dropped, with its connection; the reader then requests fewer entries.
"""

import random
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import DefaultParser
from redis.retry import Retry

from workers.config.redis_url import CLUSTER, check_url, kind_of, redacted, unusable
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


class ReplyTooLarge(redis.ConnectionError):
    """A reply was dropped because it has more bytes than its limit."""


# Any: redis-py chooses the parser at import; here it is the one of hiredis.
_Parser: Any = DefaultParser


class LimitedParser(_Parser):
    """The parser of redis-py; a reply of more than `limit` bytes, if that is set, is refused."""

    limit: int | None = None
    _reader: Any

    def on_connect(self, connection: Any, **options: Any) -> None:
        """Begin to read from a new connection."""
        super().on_connect(connection, **options)
        self._reader = _Metered(self._reader, self)


class _Metered:
    """The reader of replies; it counts the bytes for its parser."""

    def __init__(self, reader: Any, parser: LimitedParser) -> None:
        self._parser = parser
        self._feed = reader.feed
        self.gets, self.has_data = reader.gets, reader.has_data

    def feed(self, buffer: bytearray, first: int, count: int) -> None:
        """Pass on bytes that arrived."""
        parser = self._parser
        if parser.limit is not None:
            parser.limit -= count
            if parser.limit < 0:
                raise ReplyTooLarge("the reply has more bytes than its reader takes at once")
        self._feed(buffer, first, count)


TIMEOUT = 5.0
"""Seconds without a reply after which the connection counts as dead: far above network latency."""


def client(url: str, timeout: float = TIMEOUT, connect: float = TIMEOUT) -> redis.Redis:
    """Return a client with one connection, unparsed RESP2 replies and no retries of its own.

    redis-py 8 repeats a write after a lost reply, and parses replies differently under RESP3. Only
    `Connection` may repeat a command. `timeout` and `connect` are seconds for a reply, and for
    connecting. Raises BadConfiguration if the URL names several servers, or cannot be used.
    """
    verified = check_url(url)
    if kind_of(url):
        raise unusable(url)
    try:
        connected = redis.Redis.from_url(
            url,
            protocol=2,
            decode_responses=False,
            single_connection_client=True,
            retry=Retry(NoBackoff(), 0),
            retry_on_timeout=False,
            socket_timeout=timeout,
            socket_connect_timeout=min(timeout, connect),
            health_check_interval=0,
            parser_class=LimitedParser,
            **verified,
        )
    except ValueError:
        raise unusable(url) from None
    for command in _UNPARSED:
        connected.set_response_callback(command, _unparsed)
    return connected


_UNPARSED = (
    *("XREAD", "XREADGROUP", "XRANGE", "XREVRANGE", "HGETALL", "INFO", "TYPE", "SCAN", "SET"),
    *("CLUSTER", "ROLE", "XPENDING", "XCLAIM"),
)


def _unparsed(reply: Any, **_options: Any) -> Any:
    return reply


# Redis refuses now but will accept the same command later.
_TRANSIENT = frozenset(
    ["OOM", "READONLY", "LOADING", "BUSY", "MASTERDOWN", "MISCONF", "NOREPLICAS", "UNBLOCKED"]
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

# Replies of a node while slots move or a primary is replaced.
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
    """Return the named error for an error of redis-py; `Unavailable` if it is transient.

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
    """Return the error for a URL of one server, which is part of a cluster."""
    scheme, _, rest = redacted(url).partition("://")
    better = f"{scheme}+cluster://{rest.partition('/')[0]}"
    if scheme not in ("redis", "rediss"):
        better = "redis+cluster://HOST:PORT"
    return RedisUnsuitable(f"Redis at {redacted(url)} is part of a Redis Cluster: write {better}")


def _of_cluster(error: redis.RedisError, url: str) -> WorkerError:
    """Return the named error for a reply that only a cluster gives."""
    if kind_of(url) != CLUSTER:
        return needs_cluster_url(url)
    text, where = str(error)[:300], f"Redis at {redacted(url)}"
    may_pass = isinstance(error, _OF_CLUSTERS) or _PASSING.search(str(error))
    if isinstance(error, redis.exceptions.ClusterCrossSlotError) or not may_pass:
        return WorkerError(f"{where}: unexpected reply: {text}")
    return Unavailable(f"{where} refuses for now: {text}")


def failure_kind(error: redis.RedisError) -> str:
    """Return the kind of a transient failure: a code of Redis, `timeout` or `connection`."""
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


FIRST_DELAY_SECONDS = 0.05
MAX_DELAY_SECONDS = 2.0


def delays(first: float = FIRST_DELAY_SECONDS, cap: float = MAX_DELAY_SECONDS) -> Iterator[float]:
    """Yield the seconds to sleep before each further attempt, without end: exponential, capped.

    The cap bounds how long a worker takes to find Redis again. The jitter, a uniform draw below the
    exponential bound, keeps many workers from reconnecting at the same moment.
    """
    draw = random.SystemRandom()
    for attempt in count():
        yield draw.uniform(0.0, min(cap, first * 2.0 ** min(attempt, 16)))
