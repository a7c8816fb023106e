"""The thread that follows all feeds of the page."""

import threading
import time
from collections.abc import Callable, Sequence

from workers.broker.nodes import node_of
from workers.broker.store import Store
from workers.config.redis_url import CLUSTER, kind_of
from workers.dashboard.feed_follower import FeedFollower
from workers.dashboard.shown_feed import ShownFeed
from workers.errors import Unavailable, WorkerError
from workers.feed.keys import FeedKeys, is_feed_name
from workers.feed.selection import Selection
from workers.log import Logger
from workers.reading.registry import names
from workers.text import printable

_INTERVAL_SECONDS = 1.0  # between two updates
MAX_FEEDS = 500  # feeds that are followed, at most; each has a connection to Redis
_MAX_ERROR_TEXT = 300  # characters

log = Logger("online_svm.dashboard")


class Follower:
    """Reads feeds once a second, for all sessions of the page.

    `feeds` are names, and patterns that select from the list of feeds in Redis, also when it grows;
    without any, all listed feeds are selected. `owns` selects among these further. The thread
    replaces the lists of a feed or appends to them, and sessions copy them as a whole, so that the
    lists need no lock.
    """

    def __init__(
        self, url: str, feeds: Sequence[str] = (), owns: Callable[[str], bool] | None = None
    ) -> None:
        self.lost = ""  # reason if Redis cannot be read now
        self.lost_since = 0.0  # in seconds since 1970
        self.has_read = False  # whether all feeds were read once
        self.left_out = 0  # number of feeds beyond `MAX_FEEDS`, which are not followed
        self._url, self._selection = url, Selection(feeds or ("*",), owns)
        self._is_cluster = kind_of(url) == CLUSTER
        self._list = Store(url, "any")
        self._feeds = {name: FeedFollower(url, name) for name in self._selection.of(())}
        self._lock = threading.Lock()
        self._end, self._wake = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and close the connections."""
        self._end.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._disconnect()

    def shown(self) -> list[ShownFeed]:
        """Return the feeds, sorted by name."""
        with self._lock:
            return [self._feeds[name].shown for name in sorted(self._feeds)]

    def watch(self, feed: str) -> ShownFeed | None:
        """Add a viewer of a feed, and return the feed; None if it is not selected."""
        with self._lock:
            if feed not in self._feeds:
                if not (is_feed_name(feed.encode()) and self._selection.selects(feed)):
                    return None
                self._feeds[feed] = FeedFollower(self._url, feed)
            follower = self._feeds[feed]
            follower.viewers += 1
        self._wake.set()
        return follower.shown

    def unwatch(self, feed: str) -> None:
        """Remove a viewer of a feed."""
        with self._lock:
            if feed in self._feeds:
                self._feeds[feed].viewers -= 1

    def read(self) -> None:
        """Read all feeds once; keep errors for the page to show."""
        try:
            self._add_listed()
            if not self._update_all():
                return
        except Unavailable as error:
            if not self.lost:
                self.lost_since = time.time()
                log.warning("redis does not answer; trying again", reason=str(error))
            self.lost = printable(str(error))[:_MAX_ERROR_TEXT]
            self._disconnect()
        else:
            if self.lost:
                log.info("redis answers again", after=round(time.time() - self.lost_since, 1))
            self.lost, self.has_read = "", True

    def _update_all(self) -> bool:
        """Read each feed once; return False if `stop` came first.

        On a cluster, a node that does not answer fails its feeds after one timeout. Unavailable:
        Redis does not answer, and is not a cluster.
        """
        silent: dict[str, str] = {}  # error by node
        for follower in self._followers():
            if self._end.is_set():
                return False
            node = node_of(self._url, FeedKeys(follower.shown.feed).state)
            try:
                if node not in silent:
                    _update(follower)
            except Unavailable as error:
                if not self._is_cluster:
                    raise
                silent[node] = printable(str(error))[:_MAX_ERROR_TEXT]
                follower.close()
            if node in silent:
                follower.shown.fail(silent[node])
        return True

    def _disconnect(self) -> None:
        self._list.close()
        for follower in self._followers():
            follower.close()

    def _run(self) -> None:
        while not self._end.is_set():
            self._wake.clear()
            began = time.monotonic()
            self.read()
            self._wake.wait(max(0.1, _INTERVAL_SECONDS - (time.monotonic() - began)))

    def _followers(self) -> list[FeedFollower]:
        with self._lock:
            return sorted(self._feeds.values(), key=lambda follower: -follower.viewers)

    def _add_listed(self) -> None:
        """Follow the feeds that Redis lists; forget feeds that are neither listed nor viewed."""
        if not self._selection.patterns:
            return
        try:
            listed = self._selection.of(names(self._list))
        except Unavailable:
            if self._is_cluster and self._feeds:
                self._list.close()
                return  # the node with the list is down; others may hold feeds that can be read
            raise
        except WorkerError as error:
            log.warning("the list of feeds cannot be read", reason=str(error))
            return
        self.left_out = max(0, len(listed) - MAX_FEEDS)
        wanted = set(listed[:MAX_FEEDS])
        with self._lock:
            for name in wanted - self._feeds.keys():
                self._feeds[name] = FeedFollower(self._url, name)
            gone = [n for n, one in self._feeds.items() if n not in wanted and not one.viewers]
            for name in gone:
                self._feeds.pop(name).close()


def _update(follower: FeedFollower) -> None:
    """Read a feed; keep an error of the feed for the page. Unavailable: Redis does not answer."""
    try:
        follower.update()
    except Unavailable:
        raise
    except (WorkerError, LookupError, TypeError, ValueError) as error:
        # LookupError, TypeError, ValueError: another program wrote to a stream of the feed.
        follower.shown.fail(printable(str(error))[:_MAX_ERROR_TEXT])
