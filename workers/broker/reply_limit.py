"""A bound on the bytes of one reply.

Redis returns entries by number, so the size of a reply is known only while it arrives. A reply that
exceeds the limit is dropped, with its connection; the reader then requests fewer entries.
"""

from typing import Any

import redis
from redis.connection import DefaultParser


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
