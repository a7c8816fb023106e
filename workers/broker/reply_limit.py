"""A bound on the bytes of one reply: how much a read takes is not known until it comes.

Redis is asked for entries by number. A reply that is larger than its reader wants is given up, with
its connection, while it arrives; the reader then asks for fewer entries.
"""

from typing import Any

import redis
from redis.connection import DefaultParser


class ReplyTooLarge(redis.ConnectionError):
    """A reply was given up because it has more bytes than its reader takes."""


# Any: the parser that redis-py chooses at import, which here is that of hiredis.
_Parser: Any = DefaultParser


class LimitedParser(_Parser):
    """The parser of redis-py, which counts what it is fed while a limit is set.

    Attributes
    ----------
    limit : int or None
        Bytes that may still arrive; None for any number.
    """

    limit: int | None = None
    _reader: Any

    def on_connect(self, connection: Any, **options: Any) -> None:
        """Begin to read from a connection that was made."""
        super().on_connect(connection, **options)
        self._reader = _Metered(self._reader, self)


class _Metered:
    """The reader of replies, which tells its parser how much it was fed."""

    def __init__(self, reader: Any, parser: LimitedParser) -> None:
        self._parser = parser
        self._feed = reader.feed
        self.gets, self.has_data = reader.gets, reader.has_data

    def feed(self, buffer: bytearray, first: int, count: int) -> None:
        """Take bytes that arrived.

        Raises
        ------
        ReplyTooLarge
            If they are more than may still arrive.
        """
        parser = self._parser
        if parser.limit is not None:
            parser.limit -= count
            if parser.limit < 0:
                raise ReplyTooLarge("the reply has more bytes than its reader takes at once")
        self._feed(buffer, first, count)
