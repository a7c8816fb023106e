"""Clients of redis-py, the translation of its errors, and the delays between retries.

A read requests a number of entries, so the size of its reply is known only as it arrives. A reply
over its limit is dropped together with its connection; the reader then requests fewer entries.
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

from workers.broker.servers import check_url, unusable
from workers.config.redis_url import CLUSTER, kind_of, redacted
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
    """A reply exceeded its limit and was dropped."""


# Any: redis-py chooses the parser at import; with hiredis installed it is hiredis's.
_Parser: Any = DefaultParser


class LimitedParser(_Parser):
    """redis-py's parser; it raises ReplyTooLarge once a reply exceeds `limit` bytes, if set."""

    limit: int | None = None
    _reader: Any

    def on_connect(self, connection: Any, **options: Any) -> None:
        """Start to read from a new connection."""
        super().on_connect(connection, **options)
        self._reader = _CountingReader(self._reader, self)


class _CountingReader:
    """Wraps the reader of replies and subtracts the bytes it gets from the parser's limit."""

    def __init__(self, reader: Any, parser: LimitedParser) -> None:
        self._parser = parser
        self._feed = reader.feed
        self.gets, self.has_data = reader.gets, reader.has_data

    def feed(self, buffer: bytearray, first: int, count: int) -> None:
        """Pass received bytes on to the reader."""
        parser = self._parser
        if parser.limit is not None:
            parser.limit -= count
            if parser.limit < 0:
                raise ReplyTooLarge("the reply has more bytes than its reader takes at once")
        self._feed(buffer, first, count)


TIMEOUT = 5.0
"""Seconds without a reply after which a connection counts as dead: far above network latency."""


def client(url: str, timeout: float = TIMEOUT, connect_timeout: float = TIMEOUT) -> redis.Redis:
    """Return a client with one connection, unparsed RESP2 replies and no retries of its own.

    redis-py 8 by itself would repeat a write whose reply was lost, and parse RESP3 replies
    differently. Only `Connection` may repeat a command. Both timeouts are in seconds. Raises
    BadConfiguration if the URL is unusable or names several servers.
    """
    verified = check_url(url)
    if kind_of(url):
        raise unusable(url)
    try:
        connected = redis.Redis.from_url(
            url, protocol=2, decode_responses=False, single_connection_client=True,
            retry=Retry(NoBackoff(), 0), retry_on_timeout=False, socket_timeout=timeout,
            socket_connect_timeout=min(timeout, connect_timeout), health_check_interval=0,
            parser_class=LimitedParser, **verified,
        )  # fmt: skip
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


# Redis may accept the same command later.
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
_CLUSTER_ERRORS = (
    redis.exceptions.MovedError, redis.exceptions.AskError, redis.exceptions.ClusterCrossSlotError,
    redis.exceptions.ClusterDownError, redis.exceptions.TryAgainError,
)  # fmt: skip
# Errors raised inside a script, and by older versions of redis-py, are recognized by their text.
_CLUSTER_TEXT = re.compile(
    r"(?:^|\s-)(?:MOVED|ASK|CROSSSLOT|CLUSTERDOWN|TRYAGAIN)\b|non local key in a cluster"
)

# While slots move or a primary is replaced.
_TRANSIENT_CLUSTER_TEXT = re.compile(r"(?:^|\s-)(?:MOVED|ASK|CLUSTERDOWN|TRYAGAIN)\b")
# The text of an error inside a script contains the failing command's code: "... -OOM command ...".
_CODE = re.compile(r"(?:^|-)([A-Z]{3,})\b")
# The text of NOPERM inside a script, before Redis 7.
_SCRIPT_DENIED = re.compile(r"can't run this command|No permissions|no permissions")


class UnknownScript(WorkerError):
    """Redis was restarted or its scripts were flushed."""


class UnknownGroup(WorkerError):
    """A consumer group, or its stream, does not exist."""


def translated(error: redis.RedisError, url: str) -> WorkerError:
    """Return the WorkerError for an error of redis-py; `Unavailable` if it is transient.

    Examples
    --------
    >>> translated(redis.ResponseError("OOM command not allowed"), "redis://h")
    Unavailable('Redis at redis://h refuses for now: OOM command not allowed')
    """
    text, where = str(error)[:300], f"Redis at {redacted(url)}"
    if isinstance(error, ReplyTooLarge):
        return ReadTooLarge(f"{where}: {text}")
    if isinstance(error, _CLUSTER_ERRORS) or _CLUSTER_TEXT.search(text):
        return _cluster_error(error, url)
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
    """Return the error for the URL of a single server that turns out to be part of a cluster."""
    scheme, _, rest = redacted(url).partition("://")
    better = f"{scheme}+cluster://{rest.partition('/')[0]}"
    if scheme not in ("redis", "rediss"):
        better = "redis+cluster://HOST:PORT"
    return RedisUnsuitable(f"Redis at {redacted(url)} is part of a Redis Cluster: write {better}")


def _cluster_error(error: redis.RedisError, url: str) -> WorkerError:
    """Return the WorkerError for an error that only a cluster node returns."""
    if kind_of(url) != CLUSTER:
        return needs_cluster_url(url)
    text, where = str(error)[:300], f"Redis at {redacted(url)}"
    is_transient = isinstance(error, _CLUSTER_ERRORS) or _TRANSIENT_CLUSTER_TEXT.search(str(error))
    if isinstance(error, redis.exceptions.ClusterCrossSlotError) or not is_transient:
        return WorkerError(f"{where}: unexpected reply: {text}")
    return Unavailable(f"{where} refuses for now: {text}")


def failure_kind(error: redis.RedisError) -> str:
    """Return the kind of a transient failure: Redis's error code, `timeout` or `connection`."""
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
    """Yield, forever, the seconds to sleep before each retry: capped exponential, with full jitter.

    The cap bounds how long a worker takes to notice that Redis is back. The jitter, a uniform draw
    below the exponential bound, keeps many workers from reconnecting at the same moment.
    """
    draw = random.SystemRandom()
    for attempt in count():
        yield draw.uniform(0.0, min(cap, first * 2.0 ** min(attempt, 16)))
