"""A client of redis-py for one server, with one connection and no retries of its own.

Redis returns entries by number, so the size of a reply is known only while it arrives. A reply that
exceeds its limit is dropped, with its connection; the reader then requests fewer entries.
"""

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import DefaultParser
from redis.retry import Retry

from workers.config.redis_servers import kind_of
from workers.config.redis_url import check_url, unusable


class ReplyTooLarge(redis.ConnectionError):
    """A reply was dropped because it has more bytes than its limit."""


# Any: redis-py chooses the parser at import; here it is the one of hiredis.
_Parser: Any = DefaultParser


class LimitedParser(_Parser):
    """The parser of redis-py, with a count of the bytes it gets while a limit is set.

    Attributes
    ----------
    limit : int or None
        Bytes that may still arrive; None for any number.
    """

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
        """Pass on bytes that arrived.

        Raises
        ------
        ReplyTooLarge
            If they exceed what may still arrive.
        """
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

    redis-py 8 would send a write again after a lost reply, and it parses replies differently under
    RESP3. Only the loop of `Connection` may repeat a command.

    Parameters
    ----------
    url : str
        Of one server; `nodes.nodes_of` says which server of a cluster or of sentinels it is.
    timeout : float
        Seconds for one reply.
    connect : float
        Seconds for the connection to be made, if that is less.

    Raises
    ------
    BadConfiguration
        If the URL cannot be used; see `check_url`.
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
