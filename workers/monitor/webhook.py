"""Post the alarms of feeds to a URL, at least once, in a thread of its own.

The memory of this process holds one entry of each feed at most; the others wait in Redis, see
`alarm_queue`. Feeds take turns, an alarm each, so that one with many holds up no other; a feed
whose alarm was not taken waits, and the others go on. The worker's own thread only says that a feed
has alarms. Each feed is looked at once a minute besides, for what nobody told.
"""

import heapq
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count

from workers.broker.backoff import delays
from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration, Unavailable, WorkerError
from workers.log import Logger
from workers.monitor.feed_alarms import FeedAlarms
from workers.monitor.webhook_post import Receiver, ReceiverGone, receiver_of
from workers.stop import Stop

FIRST, CAP = 0.5, 300.0
"""Seconds before the second attempt, about, and between attempts at most."""

LOOK = 1.0
"""Seconds between two looks at feeds of which nothing was heard."""

ROUND = 60
"""Looks in which all feeds are looked at, at most; fewer where there are fewer feeds."""

_PAUSE = 10.0
"""Seconds without any command while Redis does not answer, at most."""

log = Logger("online_svm.webhook")


class Webhook:
    """Delivers the alarms of feeds to one receiver.

    Parameters
    ----------
    url : str
        Of Redis.
    receiver : Receiver
    first, cap : float
        Seconds before the second attempt, about, and between attempts at most.
    look : float
        Seconds between two looks at feeds of which nothing was heard.
    """

    def __init__(
        self,
        url: str,
        receiver: Receiver,
        first: float = FIRST,
        cap: float = CAP,
        look: float = LOOK,
    ) -> None:
        self._redis = Connection(url, Stop(), timeout=TIMEOUT)
        self._receiver = receiver
        self._first, self._cap, self._look = first, cap, look
        self._ended, self._changed = threading.Event(), threading.Condition()
        self._feeds: set[FeedAlarms] = set()
        self._unread: set[FeedAlarms] = set()  # of which it was said that they cannot be read
        self._turns: list[tuple[float, int, FeedAlarms]] = []  # a heap, by time
        self._numbers = count()  # what comes first among turns of the same time
        self._turn_of: dict[FeedAlarms, int] = {}  # its number; other turns of the feed are void
        self._idle: set[FeedAlarms] = set()  # whose next turn is a look
        self._woken: set[FeedAlarms] = set()  # during their turn, or while they wait
        self._pauses = delays(first=first, cap=min(cap, _PAUSE))

    def add(self, feed: str) -> FeedAlarms:
        """Return what a feed tells its work to, so that its alarms are delivered."""
        made = FeedAlarms(feed, self._receiver, self._redis, self._wake, self._first, self._cap)
        with self._changed:
            self._feeds.add(made)
            self._rest(made)
        return made

    def remove(self, one: FeedAlarms) -> None:
        """Forget a feed."""
        one.ends()
        with self._changed:
            for known in (self._feeds, self._unread, self._idle, self._woken):
                known.discard(one)
            self._turn_of.pop(one, None)

    def run(self) -> None:
        """Deliver alarms until the end; what Redis refuses or does not answer is tried again.

        It also ends where the receiver is gone for good; what was not delivered waits in Redis for
        the next process.
        """
        while (one := self._next()) is not None:
            try:
                wait = one.turn()
                self._pauses = delays(first=self._first, cap=min(self._cap, _PAUSE))
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
            except Exception as error:  # the alarms of the other feeds are posted all the same
                wait = one.next_wait()
                # Its text may hold what was sent, and where.
                log.exception("a fault of the program", feed=one.feed, reason=type(error).__name__)
            self._place(one, wait)
        self._redis.close()

    def end(self) -> None:
        """End `run`. A request under way is not waited for: the next process repeats it."""
        self._ended.set()
        with self._changed:
            self._changed.notify()

    def _wake(self, one: FeedAlarms) -> None:
        """Note that a feed has something to do."""
        with self._changed:
            if one in self._idle:
                self._schedule(one, 0.0)
            else:
                self._woken.add(one)

    def _next(self) -> FeedAlarms | None:
        """Wait for the next turn; return whose it is, None at the end."""
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
        """Note when the next turn of a feed is, after one that asked to wait so long."""
        with self._changed:
            if one not in self._feeds:
                return
            if wait is not None or one in self._woken:
                self._schedule(one, wait or 0.0)
            else:
                self._rest(one)

    def _rest(self, one: FeedAlarms) -> None:
        """Look at a feed again after a while, unless it is woken before."""
        self._schedule(one, self._look * min(len(self._feeds), ROUND))
        self._idle.add(one)

    def _schedule(self, one: FeedAlarms, wait: float) -> None:
        self._idle.discard(one)
        number = self._turn_of[one] = next(self._numbers)
        heapq.heappush(self._turns, (time.monotonic() + wait, number, one))
        self._changed.notify()


class Webhooks:
    """The webhooks of a process: one for each receiver that its feeds have.

    Parameters
    ----------
    url : str
        Of Redis.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._made: dict[object, Webhook] = {}
        self._opened = ExitStack()

    def add(self, feed: str, settings: WorkerSettings) -> FeedAlarms | None:
        """Return what a feed tells its work to; None where its settings post nothing, or cannot."""
        try:
            receiver = receiver_of(settings)
        except BadConfiguration as error:  # the file of the key went after the start
            log.error("alarms of this feed are not posted", feed=feed, reason=str(error))
            return None
        if receiver is None:
            return None
        if receiver.target not in self._made:
            made = self._opened.enter_context(posting(self._url, receiver))
            self._made[receiver.target] = made
        return self._made[receiver.target].add(feed)

    def remove(self, one: FeedAlarms) -> None:
        """Forget a feed."""
        for webhook in self._made.values():
            webhook.remove(one)

    def close(self) -> None:
        """End all of them."""
        self._opened.close()


@contextmanager
def posting(url: str, receiver: Receiver) -> Iterator[Webhook]:
    """Run a webhook in a thread within the block."""
    webhook = Webhook(url, receiver)
    threading.Thread(target=webhook.run, name="webhook", daemon=True).start()
    try:
        yield webhook
    finally:
        webhook.end()
