"""One thread that follows all feeds of the page, whoever looks at it."""

import threading
import time
from collections.abc import Callable, Sequence

from workers.broker.nodes import node_of
from workers.broker.store import Store
from workers.config.redis_servers import CLUSTER, kind_of
from workers.dashboard.feed_follower import FeedFollower
from workers.dashboard.feed_view import FeedView
from workers.errors import Unavailable, WorkerError
from workers.feed.keys import FeedKeys, is_feed_name
from workers.feed.selection import Selection
from workers.log import Logger
from workers.printable import printable
from workers.reading.registry import names

INTERVAL = 1.0
"""Seconds between two readings."""

MOST_FEEDS = 500
"""Feeds that are followed at most. Each has a connection to Redis."""

_SHOWN = 300  # characters of an error

log = Logger("online_svm.dashboard")


class Follower:
    """Reads the feeds of a Redis once a second; what it knows is for every session to show.

    The views are replaced and appended to by the thread, and copied as a whole by the sessions,
    which needs no lock.

    Parameters
    ----------
    url : str
    feeds : sequence of str
        The feeds to follow: names, and patterns over those that Redis lists, new ones included.
        Empty for all that it lists.
    owns : callable, optional
        Returns whether one of these is to be followed; default all are.

    Attributes
    ----------
    lost : str
        Why Redis cannot be read now; empty if it can.
    lost_since : float
        Since when, in seconds since 1970.
    has_read : bool
        Whether all feeds were read once.
    left_out : int
        Feeds beyond `MOST_FEEDS`, which are not followed.
    """

    def __init__(
        self, url: str, feeds: Sequence[str] = (), owns: Callable[[str], bool] | None = None
    ) -> None:
        self.lost, self.lost_since = "", 0.0
        self.has_read = False
        self.left_out = 0
        self._url, self._selection = url, Selection(feeds or ("*",), owns)
        self._is_cluster = kind_of(url) == CLUSTER
        self._list = Store(url, "any")
        self._feeds = {name: FeedFollower(url, name) for name in self._selection.of(())}
        self._lock = threading.Lock()
        self._end, self._wake = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """End, and give up the connections."""
        self._end.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._disconnect()

    def views(self) -> list[FeedView]:
        """Return what is known of each feed, by name."""
        with self._lock:
            return [self._feeds[name].view for name in sorted(self._feeds)]

    def watch(self, feed: str) -> FeedView | None:
        """Read a feed in full from now on; None if the page does not follow it."""
        with self._lock:
            if feed not in self._feeds:
                if not (is_feed_name(feed.encode()) and self._selection.selects(feed)):
                    return None
                self._feeds[feed] = FeedFollower(self._url, feed)
            one = self._feeds[feed]
            one.viewers += 1
        self._wake.set()
        return one.view

    def unwatch(self, feed: str) -> None:
        """Undo a `watch`."""
        with self._lock:
            if feed in self._feeds:
                self._feeds[feed].viewers -= 1

    def read(self) -> None:
        """Read all feeds once. An error is noted where it is to be shown."""
        try:
            self._add_listed()
            if not self._update_all():
                return
        except Unavailable as error:
            if not self.lost:
                self.lost_since = time.time()
                log.warning("redis does not answer; trying again", reason=str(error))
            self.lost = printable(str(error))[:_SHOWN]
            self._disconnect()
        else:
            if self.lost:
                log.info("redis answers again", after=round(time.time() - self.lost_since, 1))
            self.lost, self.has_read = "", True

    def _update_all(self) -> bool:
        """Read each feed once; return False if the end came first.

        A node of a cluster that does not answer is waited for once, not by each of its feeds.

        Raises
        ------
        Unavailable
            If Redis does not answer; of a cluster, if no node does.
        """
        silent: dict[str, str] = {}
        for one in self._followed():
            if self._end.is_set():
                return False
            node = node_of(self._url, FeedKeys(one.view.feed).state)
            try:
                if node not in silent:
                    _update(one)
            except Unavailable as error:
                if not self._is_cluster:
                    raise
                silent[node] = printable(str(error))[:_SHOWN]
                one.close()
            if node in silent:
                one.view.problem = silent[node]
        return True

    def _disconnect(self) -> None:
        """Give up all connections: each would have to fail once before it is made anew."""
        self._list.close()
        for one in self._followed():
            one.close()

    def _run(self) -> None:
        while not self._end.is_set():
            self._wake.clear()
            began = time.monotonic()
            self.read()
            self._wake.wait(max(0.1, INTERVAL - (time.monotonic() - began)))

    def _followed(self) -> list[FeedFollower]:
        """Return the feeds, those that somebody looks at first."""
        with self._lock:
            return sorted(self._feeds.values(), key=lambda one: -one.viewers)

    def _add_listed(self) -> None:
        """Follow what Redis lists; forget what it lists no longer and nobody looks at."""
        if not self._selection.patterns:
            return
        try:
            listed = self._selection.of(names(self._list))
        except Unavailable:
            if self._is_cluster and self._feeds:
                self._list.close()
                return  # another node has the list; the feeds may be on those that answer
            raise
        except WorkerError as error:
            log.warning("the list of feeds cannot be read", reason=str(error))
            return
        self.left_out = max(0, len(listed) - MOST_FEEDS)
        wanted = set(listed[:MOST_FEEDS])
        with self._lock:
            for name in wanted - self._feeds.keys():
                self._feeds[name] = FeedFollower(self._url, name)
            gone = [n for n, one in self._feeds.items() if n not in wanted and not one.viewers]
            for name in gone:
                self._feeds.pop(name).close()


def _update(one: FeedFollower) -> None:
    """Read a feed; what is wrong with it alone is shown in its view.

    Raises
    ------
    Unavailable
        If Redis does not answer.
    """
    try:
        one.update()
    except Unavailable:
        raise
    except (WorkerError, LookupError, TypeError, ValueError) as error:
        # Of the last three kinds is what another program wrote into a stream of the feed.
        one.view.problem = printable(str(error))[:_SHOWN]
        one.view.is_loaded = True
