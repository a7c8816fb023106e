"""The kept input of a feed, as a history to be answered again."""

from collections.abc import Iterator

from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration, InputLost
from workers.feed.position import parse_id
from workers.feed.stored_settings import stored_settings
from workers.history.backtest.recording import Identified
from workers.reading.answers import newest
from workers.reading.registry import NoSuchFeed

_START = b"0-0"


class FeedHistory:
    """The input of a feed that is kept now; what is pushed later is left out.

    Parameters
    ----------
    store : Store

    Attributes
    ----------
    trimmed : int
        Entries that the feed answered and no longer has, once `entries` has ended.

    Raises
    ------
    NoSuchFeed
        If the feed has no input.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        last = newest(store, store.keys.input, 1)
        if not last:
            raise NoSuchFeed(
                f"feed {store.keys.feed!r} has no input to answer: push to it, or name a file or a "
                "data set"
            )
        self._last = bytes(last[0][0])
        self._state = store.state()
        self.trimmed = 0

    def settings(self, given: WorkerSettings) -> WorkerSettings:
        """Return settings with those of the feed in place of all that were not given.

        Raises
        ------
        BadConfiguration
            If the feed is a combination, or was begun with settings that this version cannot take.
        """
        if self._state is None:
            return given
        feed = self._store.keys.feed
        stored = stored_settings(feed, self._state.agreement)
        if stored is None:
            raise BadConfiguration(f"feed {feed!r} is a combination: backtest its sources")
        return given.over(*stored)

    def entries(self) -> Iterator[list[bytes]]:
        """Yield the fields of each entry.

        Raises
        ------
        InputLost
            If a worker trimmed entries before they were read.
        """
        state, after, answered = self._state, _START, 0
        cursor = parse_id(_START if state is None else state.position.cursor)
        for page in self._store.pages(self._store.keys.input, _START, self._last):
            self._refuse_gap(after)
            for entry_id, fields in page:
                answered += parse_id(entry_id) <= cursor
                yield Identified(entry_id, fields)
            after = page[-1][0]
        self.trimmed = 0 if state is None else max(0, state.position.seq - answered)

    def _refuse_gap(self, after: bytes) -> None:
        """Raise InputLost if what came before a page is gone: something between may be too."""
        if after == _START:
            return
        oldest = self._store.call("XRANGE", self._store.keys.input, "-", "+", "COUNT", 1)
        if not oldest or parse_id(oldest[0][0]) > parse_id(after):
            raise InputLost(
                f"feed {self._store.keys.feed!r} gave up input before it was read: stop its worker "
                "meanwhile, or start it with --keep-input"
            )
