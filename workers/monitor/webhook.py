"""Posts the alarms of feeds to a URL, at least once, from a separate thread.

The process holds at most one entry of each feed; the others wait in Redis (`delivery_queue`). Feeds
take turns of one alarm, so that a feed with many alarms, or with a failed post, delays no other.
The worker's thread only wakes a feed. Each feed is also polled, at least once a minute.
"""

import heapq
import threading
import time
from functools import partial
from itertools import count

from workers.broker.client import TIMEOUT, delays
from workers.broker.connection import Connection
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration, Unavailable, WorkerError
from workers.log import Logger
from workers.monitor.feed_alarms import FeedAlarms
from workers.monitor.webhook_post import Receiver, ReceiverGone, receiver_of
from workers.stop import Stop

FIRST_DELAY, MAX_DELAY = 0.5, 300.0
"""Seconds before the second attempt (about), and the longest delay between attempts."""

POLL_SECONDS = 1.0  # time between two polls of idle feeds

POLLS_PER_ROUND = 60
"""An idle feed is polled every so many `POLL_SECONDS` as there are feeds, up to this number."""

_MAX_PAUSE = 10.0  # longest time between two commands while Redis does not answer, in seconds

log = Logger("online_svm.webhook")


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
