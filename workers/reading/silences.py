"""Silences of a feed's alarms, as people said them in the stream of events."""

import time

from workers.broker.batch_size import Entry
from workers.broker.connection import Connection
from workers.feed.keys import FeedKeys
from workers.reading.answers import message
from workers.reading.events import event_of

_COUNT = 1000


class Silences:
    """Reads the events of a feed as they come.

    Parameters
    ----------
    connection : Connection
    keys : FeedKeys
    """

    def __init__(self, connection: Connection, keys: FeedKeys) -> None:
        self._connection, self._keys = connection, keys
        self._last, self._until = b"0-0", 0.0

    def hold(self) -> bool:
        """Return whether a silence holds now; the last one that was said counts."""
        after = b"(" + self._last
        while found := self._connection.call(
            "XRANGE", self._keys.events, after, "+", "COUNT", _COUNT
        ):
            for entry in found:
                self._note(entry)
                self._last = entry[0]
            after = b"(" + self._last
        return time.time() < self._until

    def _note(self, entry: Entry) -> None:
        event = event_of(entry[0], message(entry))
        if event is not None and event.code == "silenced" and event.until >= 0.0:
            self._until = event.until / 1000
