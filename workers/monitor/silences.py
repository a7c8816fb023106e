"""Whether the feed's alarms are silenced now: what people said in the stream of events."""

import json
import time

from workers.admin.answers import payload
from workers.broker.connection import Connection
from workers.feed.keys import FeedKeys

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
            for entry, fields in found:
                event = json.loads(payload((entry, fields)))
                if event.get("code") == "silenced":
                    self._until = event["until"] / 1000
                self._last = entry
            after = b"(" + self._last
        return time.time() < self._until
