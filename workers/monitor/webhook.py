"""Posts of the alarms of feeds to a URL, at least once, in a separate thread.

The process holds one entry of each feed at most; the others wait in Redis (`delivery_queue`). Feeds
take turns, an alarm each, so that a feed with many delays no other; a feed whose alarm was not
taken waits, and the others go on. The worker's thread only wakes the feed. In addition each feed
is polled, at least once a minute.
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
"""Seconds before the second attempt, about, and between attempts at most."""

POLL_SECONDS = 1.0
"""Time between two polls of idle feeds."""

POLLS_PER_ROUND = 60
"""Polls in which all idle feeds are polled, at most; fewer for fewer feeds."""

_MAX_PAUSE = 10.0  # seconds without any command while Redis does not answer

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
        self._turns: list[tuple[float, int, FeedAlarms]] = []  # a heap, by time
        self._numbers = count()  # order of turns of the same time
        self._turn_of: dict[FeedAlarms, int] = {}  # its number; other turns of the feed are void
        self._idle: set[FeedAlarms] = set()  # feeds whose next turn is a poll
        self._woken: set[FeedAlarms] = set()  # feeds woken during their turn, or while they wait
        self._pauses = self._redis_delays()

    def add(self, feed: str) -> FeedAlarms:
        """Return the delivery of a feed's alarms, which the worker wakes."""
        made = FeedAlarms(feed, self._receiver, self._redis, self._wake, self._delays)
        with self._changed:
            self._feeds.add(made)
            self._rest(made)
        return made

    def remove(self, one: FeedAlarms) -> None:
        """Forget a feed."""
        one.on_stopped()
        with self._changed:
            for known in (self._feeds, self._unread, self._idle, self._woken):
                known.discard(one)
            self._turn_of.pop(one, None)

    def run(self) -> None:
        """Deliver alarms until `end`; retry if Redis refuses or does not answer.

        It also returns if the receiver is gone for good; the undelivered alarms wait in Redis for
        the next process.
        """
        while (one := self._next()) is not None:
            try:
                wait = one.turn()
                self._pauses = self._redis_delays()
                if one in self._unread:
                    self._unread.discard(one)
                    log.info("alarms are read again", feed=one.feed)
            except ReceiverGone as error:
                log.error(
                    "alarms are posted no more: the receiver says that it is gone",
                    host=self._receiver.host, reason=str(error), feed=one.feed,
                )  # fmt: skip
                break
            except WorkerError as error:
                wait = one.next_wait()
                self._unread.add(one)
                log.warning("alarms cannot be read; trying again", feed=one.feed, reason=str(error))
                if isinstance(error, Unavailable):
                    self._ended.wait(next(self._pauses))
            except Exception as error:  # the other feeds go on
                wait = one.next_wait()
                # Its text may hold the message, and the URL.
                log.exception("a fault of the program", feed=one.feed, reason=type(error).__name__)
            self._place(one, wait)
        self._redis.close()

    def end(self) -> None:
        """End `run` without waiting for a request under way: the next process repeats it."""
        self._ended.set()
        with self._changed:
            self._changed.notify()

    def _wake(self, one: FeedAlarms) -> None:
        with self._changed:
            if one in self._idle:
                self._schedule(one, 0.0)
            else:
                self._woken.add(one)

    def _next(self) -> FeedAlarms | None:
        """Wait for the next turn; return its feed, None at the end."""
        with self._changed:
            while not self._ended.is_set():
                now = time.monotonic()
                while self._turns and self._turns[0][0] <= now:
                    _, number, found = heapq.heappop(self._turns)
                    if self._turn_of.get(found) == number:
                        del self._turn_of[found]
                        self._idle.discard(found)
                        self._woken.discard(found)
                        return found
                self._changed.wait(self._turns[0][0] - now if self._turns else None)
        return None

    def _place(self, one: FeedAlarms, wait: float | None) -> None:
        """Schedule the next turn of a feed, after one that returned `wait`."""
        with self._changed:
            if one not in self._feeds:
                return
            if wait is not None or one in self._woken:
                self._schedule(one, wait or 0.0)
            else:
                self._rest(one)

    def _rest(self, one: FeedAlarms) -> None:
        """Poll a feed after a while, unless it is woken before."""
        self._schedule(one, self._poll * min(len(self._feeds), POLLS_PER_ROUND))
        self._idle.add(one)

    def _schedule(self, one: FeedAlarms, wait: float) -> None:
        self._idle.discard(one)
        number = self._turn_of[one] = next(self._numbers)
        heapq.heappush(self._turns, (time.monotonic() + wait, number, one))
        self._changed.notify()


class Webhooks:
    """The webhooks of a process, one for each receiver of its feeds."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._made: dict[object, Webhook] = {}

    def add(self, feed: str, settings: WorkerSettings) -> FeedAlarms | None:
        """Return the delivery of a feed's alarms; None if its settings post none, or cannot."""
        try:
            receiver = receiver_of(settings)
        except BadConfiguration as error:  # the file of the key was deleted after the start
            log.error("alarms of this feed are not posted", feed=feed, reason=str(error))
            return None
        if receiver is None:
            return None
        if receiver.target not in self._made:
            webhook = self._made[receiver.target] = Webhook(self._url, receiver)
            threading.Thread(target=webhook.run, name="webhook", daemon=True).start()
        return self._made[receiver.target].add(feed)

    def remove(self, one: FeedAlarms) -> None:
        """Forget a feed."""
        for webhook in self._made.values():
            webhook.remove(one)

    def close(self) -> None:
        """End all of them."""
        for webhook in self._made.values():
            webhook.end()
