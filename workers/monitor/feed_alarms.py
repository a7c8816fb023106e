"""The delivery of one feed's incidents: what is to be posted next, and how that went so far.

The first alarm of an incident is posted, one that worsens it, and its end. Its other alarms are
read and acknowledged, and stand in the stream.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from workers.broker.backoff import delays
from workers.broker.batch_size import Entry
from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.errors import StateLost
from workers.feed.keys import FeedKeys
from workers.log import Logger
from workers.monitor.alarm_queue import AlarmQueue
from workers.monitor.incident_ends import End, IncidentEnds
from workers.monitor.webhook_post import Delivery, PostFailed, Receiver, ReceiverGone, delivery
from workers.reading.alarms import RaisedAlarm, known_alarms, raised_alarms
from workers.reading.answers import message
from workers.reading.events import Silences
from workers.reading.incidents import Incident, open_at_alarm, story
from workers.reading.verdict import of_end, of_incident

log = Logger("online_svm.webhook")


class FeedAlarms:
    """Delivers the alarms of one feed while this process has it; see `webhook.Webhook`.

    The worker's thread calls `begins`, `raised` and `ends`, which return at once; the thread of the
    webhook calls `turn`.

    Parameters
    ----------
    feed : str
    receiver : Receiver
    connection : Connection
    wake : callable
        Is given this when it has something to do.
    first, cap : float
        Seconds before the second attempt, about, and between attempts at most.

    Attributes
    ----------
    delivered, silenced : int
        Alarms that were taken, and that came while the feed was silenced.
    failures : Counter of str
        Failed attempts by reason.
    is_at_work : bool
        Whether this process has the feed.
    """

    def __init__(
        self,
        feed: str,
        receiver: Receiver,
        connection: Connection,
        wake: Callable[["FeedAlarms"], None],
        first: float,
        cap: float,
    ) -> None:
        keys = FeedKeys(feed)
        self.feed, self._receiver, self._wake = feed, receiver, wake
        self._queue, self._silences = AlarmQueue(connection, keys), Silences(connection, keys)
        shared = (connection, connection)
        self._reader = FeedReader(connection.url, feed, connections=shared)
        self._ends = IncidentEnds(self._reader)
        self._first, self._cap = first, cap
        self._waits = delays(first=first, cap=cap)
        self._entry: Entry | None = None
        self._left: deque[Delivery] = deque()  # of that entry
        self.is_at_work = self._begins_anew = self._is_refused = False
        self.delivered = self.silenced = 0
        self.failures: Counter[str] = Counter()

    @property
    def lost(self) -> int:
        """Entries that were trimmed before they were delivered."""
        return self._queue.lost

    def begins(self, cursor: bytes) -> None:
        """Note that this process has the feed; alarms after the cursor are new."""
        if not self.is_at_work:
            self._queue.after = self._ends.after = cursor
            self._begins_anew = True
        self.is_at_work = True
        self._wake(self)

    def raised(self) -> None:
        """Note that alarms were committed."""
        self._wake(self)

    def reported(self) -> None:
        """Note that reports were committed: one may end an incident."""
        if self._ends.is_open:
            self._wake(self)

    def ends(self) -> None:
        """Note that this process has the feed no more."""
        self.is_at_work = False

    def turn(self) -> float | None:
        """Post the next alarm; return after how many seconds to go on, None once there is none.

        Raises
        ------
        WorkerError
            If Redis does not answer, or refuses.
        ReceiverGone
            If the receiver takes no alarm any more.
        """
        if self._begins_anew or not self.is_at_work:
            self._begins_anew, self._entry = False, None
            self._queue.reset()
            self._ends.reset()
        if not self.is_at_work:
            return None
        has_entry = self._has_entry()
        end = self._ends.next(self._entry[0] if self._entry is not None else None)
        if end is not None:
            return self._deliver_end(end)
        if not has_entry:
            return None
        if self._left:
            wait = self._deliver(self._left[0])
            if wait is not None:
                return wait
            self._left.popleft()
        if not self._left:
            assert self._entry is not None
            self._queue.done(self._entry)
            self._entry = None
        return 0.0

    def next_wait(self) -> float:
        """Return the seconds until another attempt."""
        return next(self._waits)

    def _has_entry(self) -> bool:
        """Return whether there is an entry to deliver; read the next one if need be."""
        if self._entry is None:
            self._entry = self._queue.next()
            if self._entry is not None:
                self._left = deque(self._deliveries(self._entry))
        return self._entry is not None

    def _deliveries(self, entry: Entry) -> list[Delivery]:
        entry_id = entry[0].decode()
        if not entry[1]:
            self._queue.lost += 1
            log.warning(
                "an alarm was trimmed before it was delivered", feed=self.feed, entry=entry_id
            )
            return []
        alarms = _alarms_of(entry)
        raised = known_alarms([(entry[0], {"seq": 0, "alarms": alarms})])
        before = open_at_alarm(self._reader, entry[0]) if raised else None
        told = [one for one in story(raised, (), before) if one.what != "went_on"]
        cause = alarms[_place_of_change(raised, before)] if told else None
        return [delivery(self.feed, one, of_incident(one.incident), cause) for one in told]

    def _deliver_end(self, end: End) -> float:
        """Tell the end of an incident; return the seconds until the next turn."""
        verdict = of_end(end.chapter.incident, end.report)
        wait = self._deliver(delivery(self.feed, end.chapter, verdict))
        if wait is not None:
            self._ends.reset()
            return wait
        self._ends.told(end.chapter.entry)
        return 0.0

    def _deliver(self, sent: Delivery) -> float | None:
        """Post an alarm; return the seconds until it is to be tried again, None if it was taken."""
        if self._silences.hold():
            self.silenced += 1
            log.info("an alarm is not posted: the feed is silenced", alarm=sent.key)
            return None
        try:
            self._receiver.post(sent)
        except ReceiverGone as error:
            self.failures[str(error)] += 1
            raise
        except PostFailed as error:
            self.failures[str(error)] += 1
            wait = self.next_wait()
            log.warning(
                "an alarm was not taken; trying again",
                alarm=sent.key, host=self._receiver.host, reason=str(error), after=wait,
            )  # fmt: skip
            self._is_refused = True
            return wait
        if self._is_refused:
            log.info("alarms are taken again", alarm=sent.key, host=self._receiver.host)
            self._is_refused = False
        self.delivered += 1
        self._waits = delays(first=self._first, cap=self._cap)
        return None


def _place_of_change(raised: Sequence[RaisedAlarm], before: Incident | None) -> int:
    """Return the place of the first alarm of an entry that begins or worsens an incident."""
    told = ([one.what for one in story([alarm], (), before)] for alarm in raised)
    return next((place for place, what in enumerate(told) if what not in ([], ["went_on"])), 0)


def _alarms_of(entry: Entry) -> Sequence[Any]:
    """Return the alarms of an entry as they are stored; none where another program wrote it."""
    stored = message(entry)
    try:
        raised_alarms(entry[0], stored)
    except StateLost:
        log.warning("an entry of alarms is of another program; it is passed over", entry=entry[0])
        return []
    alarms: Sequence[Any] = stored["alarms"]
    return alarms
