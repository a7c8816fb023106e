"""Posts the alarms of feeds to a URL, at least once, from a separate thread.

The process holds at most one entry of each feed; the others wait in Redis (`delivery_queue`). Feeds
take turns of one alarm, so that a feed with many alarms, or with a failed post, delays no other.
The worker's thread only wakes a feed. Each feed is also polled, at least once a minute.

The first alarm of an incident, each alarm that worsens it, and its end are posted. Its other alarms
are only acknowledged. If they are asked for, the beginning and the end of each notice are posted.
"""

import heapq
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

from workers.broker.client import TIMEOUT, delays
from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.broker.streams import Entry
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration, StateLost, Unavailable, WorkerError
from workers.feed.keys import FeedKeys
from workers.log import Logger
from workers.monitor.delivery_queue import AlarmQueue, End, IncidentEnds, NoticeChanges
from workers.monitor.webhook_post import (
    Delivery,
    PostFailed,
    Receiver,
    ReceiverGone,
    delivery,
    notice_delivery,
    receiver_of,
)
from workers.reading.answers import message, stored_values
from workers.reading.dates import learned_at
from workers.reading.events import Silences
from workers.reading.incidents import (
    AnyNotice,
    Incident,
    RaisedAlarm,
    dates_of,
    known_alarms,
    open_at_alarm,
    raised_alarms,
    timeline,
)
from workers.reading.status import FeedStatus
from workers.reading.verdict import of_end, of_incident, of_notice, trust
from workers.stop import Stop

log = Logger("online_svm.webhook")


class FeedAlarms:
    """Delivers the alarms of one feed while this process works on it; see `Webhook`.

    The worker's thread calls `on_started`, `raised`, `reported` and `on_stopped`, which return at
    once; the webhook's thread calls `turn`. `wake` schedules a turn of this object. `delays`
    returns an endless series of seconds: the delays of retries.
    """

    def __init__(
        self,
        feed: str,
        receiver: Receiver,
        connection: Connection,
        wake: Callable[["FeedAlarms"], None],
        delays: Callable[[], Iterator[float]],
        has_notices: bool = False,
    ) -> None:
        keys = FeedKeys(feed)
        self.feed, self._receiver, self._wake = feed, receiver, wake
        self._queue, self._silences = AlarmQueue(connection, keys), Silences(connection, keys)
        shared = (connection, connection)
        self._reader = FeedReader(connection.url, feed, connections=shared)
        self._ends = IncidentEnds(self._reader)
        self._notices = NoticeChanges(self._reader) if has_notices else None
        self._delays, self._waits = delays, delays()
        self._entry: Entry | None = None
        self._left: deque[Delivery] = deque()  # posts of `_entry` that are still to be made
        self._is_active = False  # whether this process works on the feed
        self._restarts = self._is_refused = False
        self.delivered = self.silenced = 0  # alarms accepted; alarms not posted while silenced
        self.failures: Counter[str] = Counter()  # failed attempts by reason

    @property
    def lost(self) -> int:
        """Entries that were trimmed before they were delivered."""
        return self._queue.lost

    def on_started(self, cursor: bytes) -> None:
        """Start to deliver; a new consumer group begins after the cursor."""
        if not self._is_active:
            self._queue.after = self._ends.position.start = cursor
            if self._notices is not None:
                self._notices.position.start = cursor
            self._restarts = True
        self._is_active = True
        self._wake(self)

    def raised(self) -> None:
        """Schedule a turn: alarms were committed."""
        self._wake(self)

    def reported(self) -> None:
        """Schedule a turn if a committed report may end an incident, or change the notices."""
        if self._ends.is_open or self._notices is not None:
            self._wake(self)

    def on_stopped(self) -> None:
        """Stop delivering: this process no longer works on the feed."""
        self._is_active = False

    def turn(self) -> float | None:
        """Post the next alarm; return the seconds until the next turn, None if none is left.

        WorkerError: Redis does not answer, or refuses. ReceiverGone: the receiver is gone for good.
        """
        if self._restarts or not self._is_active:
            self._restarts, self._entry = False, None
            self._queue.reset()
            self._ends.reset()
            if self._notices is not None:
                self._notices.reset()
        if not self._is_active:
            return None
        if self._entry is None:
            self._entry = self._queue.next()
            if self._entry is not None:
                self._left = deque(self._deliveries(self._entry))
        end = self._ends.next(self._entry[0] if self._entry is not None else None)
        if end is not None:
            return self._deliver_end(end)
        if self._entry is None:
            return self._deliver_notice()
        if self._left:
            wait = self._deliver(self._left[0])
            if wait is not None:
                return wait
            self._left.popleft()
        if not self._left:
            self._queue.done(self._entry)
            self._entry = None
        return 0.0

    def next_wait(self) -> float:
        """Return the seconds until the next attempt."""
        return next(self._waits)

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
        events = [event for event in timeline(raised, (), before) if event.step != "went_on"]
        cause = alarms[_index_of_change(raised, before)] if events else None
        dates = dates_of(raised) if before is None else learned_at(self._reader, [before.since])
        return [
            delivery(self.feed, event, of_incident(event.incident, dates), cause)
            for event in events
        ]

    def _deliver_end(self, end: End) -> float:
        """Post the end of an incident; return the seconds until the next turn."""
        verdict = of_end(end.event.incident, end.report, stored_values(self._reader))
        wait = self._deliver(delivery(self.feed, end.event, verdict))
        if wait is not None:
            self._ends.reset()
            return wait
        self._ends.position.move(end.event.entry)
        return 0.0

    def _deliver_notice(self) -> float | None:
        """Post the next change of a notice; return the seconds until the next turn."""
        if self._notices is None or (change := self._notices.next()) is None:
            return None
        notice = change.notice
        verdict = of_notice(notice, dates=learned_at(self._reader, [notice.since]))
        if change.step == "ended":
            verdict = trust(
                FeedStatus(
                    feed=self.feed, report=change.report, settings=stored_values(self._reader)
                )
            )
        wait = self._deliver(notice_delivery(self.feed, change, verdict), notice)
        if wait is None:
            self._notices.done()
        return wait or 0.0

    def _deliver(self, sent: Delivery, notice: AnyNotice | None = None) -> float | None:
        """Post an alarm; return the seconds until the next attempt, None if none is needed."""
        if self._silences.hold(notice):
            self.silenced += 1
            log.info("an alarm is not posted: it is silenced", alarm=sent.key)
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
        self._waits = self._delays()
        return None


def _index_of_change(raised: Sequence[RaisedAlarm], before: Incident | None) -> int:
    """Return the index of the first alarm that begins or worsens an incident."""
    steps = ([event.step for event in timeline([alarm], (), before)] for alarm in raised)
    return next((i for i, each in enumerate(steps) if each not in ([], ["went_on"])), 0)


def _alarms_of(entry: Entry) -> Sequence[Any]:
    """Return the alarms of an entry as they are stored; none if another program wrote it."""
    stored = message(entry)
    try:
        raised_alarms(entry[0], stored)
    except StateLost:
        log.warning("an entry of alarms is of another program; it is passed over", entry=entry[0])
        return []
    alarms: Sequence[Any] = stored["alarms"]
    return alarms


FIRST_DELAY, MAX_DELAY = 0.5, 300.0
"""Seconds before the second attempt (about), and the longest delay between attempts."""

POLL_SECONDS = 1.0  # time between two polls of idle feeds

POLLS_PER_ROUND = 60
"""An idle feed is polled every so many `POLL_SECONDS` as there are feeds, up to this number."""

_MAX_PAUSE = 10.0  # longest time between two commands while Redis does not answer, in seconds


class Webhook:
    """Delivers the alarms of feeds to one receiver."""

    def __init__(
        self,
        url: str,
        receiver: Receiver,
        first: float = FIRST_DELAY,
        cap: float = MAX_DELAY,
        poll: float = POLL_SECONDS,
    ) -> None:
        self._redis = Connection(url, Stop(), timeout=TIMEOUT)
        self._receiver = receiver
        self._poll = poll
        self._delays = partial(delays, first=first, cap=cap)
        self._redis_delays = partial(delays, first=first, cap=min(cap, _MAX_PAUSE))
        self._ended, self._changed = threading.Event(), threading.Condition()
        self._feeds: set[FeedAlarms] = set()
        self._unread: set[FeedAlarms] = set()  # feeds that could not be read; logged
        self._turns: list[tuple[float, int, FeedAlarms]] = []  # a heap of time, number and feed
        self._numbers = count()  # they order turns of the same time
        self._turn_of: dict[FeedAlarms, int] = {}  # number of the valid turn; others are void
        self._idle: set[FeedAlarms] = set()  # feeds whose next turn is a poll
        self._woken: set[FeedAlarms] = set()  # feeds woken during their turn or a retry delay
        self._pauses = self._redis_delays()

    def add(self, feed: str, has_notices: bool = False) -> FeedAlarms:
        """Return the delivery of a feed's alarms, and of its notices if they are asked for."""
        added = FeedAlarms(feed, self._receiver, self._redis, self._wake, self._delays, has_notices)
        with self._changed:
            self._feeds.add(added)
            self._schedule_poll(added)
        return added

    def remove(self, feed: FeedAlarms) -> None:
        """Stop the delivery of a feed's alarms, and forget it."""
        feed.on_stopped()
        with self._changed:
            for feeds in (self._feeds, self._unread, self._idle, self._woken):
                feeds.discard(feed)
            self._turn_of.pop(feed, None)

    def run(self) -> None:
        """Deliver alarms until `end`, or until the receiver is gone for good.

        If Redis refuses or does not answer, retry. Undelivered alarms stay in Redis for the next
        process.
        """
        while (feed := self._next()) is not None:
            try:
                wait = feed.turn()
                self._pauses = self._redis_delays()
                if feed in self._unread:
                    self._unread.discard(feed)
                    log.info("alarms are read again", feed=feed.feed)
            except ReceiverGone as error:
                log.error(
                    "alarms are posted no more: the receiver says that it is gone",
                    host=self._receiver.host, reason=str(error), feed=feed.feed,
                )  # fmt: skip
                break
            except WorkerError as error:
                wait = feed.next_wait()
                self._unread.add(feed)
                reason = str(error)
                log.warning("alarms cannot be read; trying again", feed=feed.feed, reason=reason)
                if isinstance(error, Unavailable):
                    self._ended.wait(next(self._pauses))
            except Exception as error:  # the other feeds continue
                wait = feed.next_wait()
                # Only the type: the text may contain the message and the URL.
                log.exception("a fault of the program", feed=feed.feed, reason=type(error).__name__)
            self._reschedule(feed, wait)
        self._redis.close()

    def end(self) -> None:
        """End `run` without waiting for a request under way: the next process repeats it."""
        self._ended.set()
        with self._changed:
            self._changed.notify()

    def _wake(self, feed: FeedAlarms) -> None:
        with self._changed:
            if feed in self._idle:
                self._schedule(feed, 0.0)
            else:
                self._woken.add(feed)

    def _next(self) -> FeedAlarms | None:
        """Wait for the next turn; return its feed, None at the end."""
        with self._changed:
            while not self._ended.is_set():
                now = time.monotonic()
                while self._turns and self._turns[0][0] <= now:
                    _, number, feed = heapq.heappop(self._turns)
                    if self._turn_of.get(feed) == number:
                        del self._turn_of[feed]
                        self._idle.discard(feed)
                        self._woken.discard(feed)
                        return feed
                self._changed.wait(self._turns[0][0] - now if self._turns else None)
        return None

    def _reschedule(self, feed: FeedAlarms, wait: float | None) -> None:
        """Schedule the next turn of a feed, after a turn that returned `wait`."""
        with self._changed:
            if feed not in self._feeds:
                return
            if wait is not None or feed in self._woken:
                self._schedule(feed, wait or 0.0)
            else:
                self._schedule_poll(feed)

    def _schedule_poll(self, feed: FeedAlarms) -> None:
        self._schedule(feed, self._poll * min(len(self._feeds), POLLS_PER_ROUND))
        self._idle.add(feed)

    def _schedule(self, feed: FeedAlarms, wait: float) -> None:
        self._idle.discard(feed)
        number = self._turn_of[feed] = next(self._numbers)
        heapq.heappush(self._turns, (time.monotonic() + wait, number, feed))
        self._changed.notify()


class Webhooks:
    """The webhooks of a process, one for each receiver of its feeds."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._webhooks: dict[object, Webhook] = {}  # by URL and secret of the receiver

    def add(self, feed: str, settings: WorkerSettings) -> FeedAlarms | None:
        """Return the delivery of a feed's alarms; None without a URL, or without its key file."""
        try:
            receiver = receiver_of(settings)
        except BadConfiguration as error:  # the file of the key was deleted after the start
            log.error("alarms of this feed are not posted", feed=feed, reason=str(error))
            return None
        if receiver is None:
            return None
        if receiver.target not in self._webhooks:
            webhook = self._webhooks[receiver.target] = Webhook(self._url, receiver)
            threading.Thread(target=webhook.run, name="webhook", daemon=True).start()
        return self._webhooks[receiver.target].add(feed, settings.alarm_notices)

    def remove(self, feed: FeedAlarms) -> None:
        """Stop the delivery of a feed's alarms."""
        for webhook in self._webhooks.values():
            webhook.remove(feed)

    def close(self) -> None:
        """End all webhooks."""
        for webhook in self._webhooks.values():
            webhook.end()
