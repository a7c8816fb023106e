"""The alarms of a feed that are still to be delivered: the stream `alarms`, and a group of it.

The position in the stream is a consumer group, which Redis keeps. An entry is acknowledged after
all of its alarms were taken. So a process that dies, or a receiver that is away for days, loses
none that `alarms` still holds. Entries that are trimmed before they were read are counted: on
Redis 7 the stream counts all entries that it ever got, and the group those that were read.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from workers.broker.batch_size import Entry
from workers.broker.connection import Connection
from workers.broker.feed_reader import pairs_of
from workers.errors import WorkerError
from workers.feed.keys import FeedKeys
from workers.feed.position import parse_id
from workers.log import Logger
from workers.reading.stream_info import StreamInfo

GROUP = "osvm-webhook"
"""Consumer group of `alarms`."""

CONSUMER = "webhook"
"""One name for every process, so that the next one finds what the last one did not finish."""

log = Logger("online_svm.webhook")


class AlarmQueue:
    """The entries of `alarms` that were not delivered, one at a time.

    Parameters
    ----------
    connection : Connection
    keys : FeedKeys

    Attributes
    ----------
    after : bytes
        Where a new group begins: the last entry that was answered before. A group that exists goes
        on from its own position.
    lost : int
        Entries that were trimmed before they were delivered. Before Redis 7 those are left out that
        were not read yet.
    """

    def __init__(self, connection: Connection, keys: FeedKeys) -> None:
        self._redis, self._keys = connection, keys
        self.after, self.lost = b"0-0", 0
        self._has_group = self._was_finished = False

    def reset(self) -> None:
        """Look again for what was read and not acknowledged, by this process or another."""
        self._has_group = self._was_finished = False

    def next(self) -> Entry | None:
        """Return the next entry; None if there is none, or no feed.

        Raises
        ------
        WorkerError
            If Redis does not answer, or refuses. The next call then begins with `reset`.
        """
        has_group, was_finished = self._has_group, self._was_finished
        self.reset()  # in case of an error
        if not (has_group or self._open()):
            return None
        # First what an earlier process, or attempt, did not finish.
        found = [] if was_finished else self._unfinished()
        if not found:
            found, was_finished = self._unread(), True
        self._has_group, self._was_finished = True, was_finished
        return found[0] if found else None

    def done(self, entry: Entry) -> None:
        """Acknowledge an entry."""
        self._redis.call("XACK", self._keys.alarms, GROUP, entry[0])

    def _open(self) -> bool:
        """Make the group if there is none; return False if there is no feed yet."""
        keys = self._keys
        if not self._redis.call("EXISTS", keys.state):
            return False
        try:
            self._redis.call("XGROUP", "CREATE", keys.alarms, GROUP, self.after, "MKSTREAM")
        except WorkerError as error:
            if "BUSYGROUP" not in str(error):
                raise
            return True
        stream = StreamInfo.parse(self._redis.call("XINFO", "STREAM", keys.alarms))
        is_at_the_end = parse_id(stream.last_id) <= parse_id(self.after)
        if stream.added is not None and is_at_the_end:
            self._count_read(self.after, stream.added)
        return True

    def _unfinished(self) -> list[Entry]:
        return self._entries(self._redis.call(*self._reading("0")))

    def _unread(self) -> list[Entry]:
        """Read the next entry; count those before it that were trimmed."""
        alarms, redis = self._keys.alarms, self._redis
        # Sent together, so that nothing is trimmed between the look and the read.
        asked = [
            redis.send("XINFO", "STREAM", alarms),
            redis.send("XINFO", "GROUPS", alarms),
            redis.send(*self._reading(">")),
        ]
        told, groups, reply = (redis.receive(sent) for sent in asked)
        stream, found = StreamInfo.parse(told), self._entries(reply)
        group = next(one for one in map(pairs_of, groups) if one[b"name"] == GROUP.encode())
        trimmed = trimmed_unread(stream, group)
        if trimmed:
            self._pass_over(trimmed, stream, found)
        return found

    def _pass_over(self, trimmed: int, stream: StreamInfo, found: Sequence[Entry]) -> None:
        """Count entries as lost, once: the group then has them behind it."""
        self.lost += trimmed
        log.warning(
            "alarms were trimmed before they were delivered", feed=self._keys.feed, entries=trimmed
        )
        at = found[0][0] if found else stream.last_id
        self._count_read(at, stream.gone + len(found))

    def _count_read(self, at: bytes, count: int) -> None:
        """Tell Redis that the group has read so many entries, up to an ID."""
        alarms = self._keys.alarms
        self._redis.call("XGROUP", "SETID", alarms, GROUP, at, "ENTRIESREAD", count)

    def _reading(self, after: str) -> tuple[str | int, ...]:
        alarms = self._keys.alarms
        return ("XREADGROUP", "GROUP", GROUP, CONSUMER, "COUNT", 1, "STREAMS", alarms, after)

    @staticmethod
    def _entries(reply: Any) -> list[Entry]:
        return list(reply[0][1]) if reply else []


def trimmed_unread(stream: StreamInfo, group: Mapping[bytes, Any]) -> int:
    """Return how many entries were trimmed before the group had read them.

    Parameters
    ----------
    stream : StreamInfo
    group : mapping
        A row of XINFO GROUPS. Redis before 7 counts nothing, and a group that an older version
        made may not know what it has read: 0 then.

    Examples
    --------
    >>> stream = StreamInfo(2, 9, (b"8-0", []), (b"9-0", []), b"9-0")
    >>> trimmed_unread(stream, {b"last-delivered-id": b"3-0", b"entries-read": 3})
    4
    """
    read = group.get(b"entries-read")
    if read is None:
        return 0
    last = parse_id(group[b"last-delivered-id"])
    if stream.first is not None and parse_id(stream.first[0]) <= last:
        return 0
    # All that was read is gone; the rest of what is gone was not read.
    return max(0, stream.gone - int(read))
