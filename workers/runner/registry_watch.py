"""Choose the feeds that a process serves: those given by name, then those with state, with input.

Producers can write anything to the list of feeds. So a poll reads a bounded part of it, checks each
name, and keeps a bounded number of selected names of each rank. A listed feed that has neither
state nor input is not served: invalid and empty names displace no feed. A long list takes several
polls. Until all of it is read, only feeds with state are served.

A client that only appends to a stream does not list its feed. Such feeds are found by their input:
each poll continues a SCAN of every primary by a bounded number of keys.
"""

import time
from collections.abc import Iterable
from contextlib import suppress

from workers.broker.commands import Script
from workers.broker.connection import Connection
from workers.broker.nodes import NodeHealth, nodes_of
from workers.errors import AccessDenied, Unavailable, WrongKeyType
from workers.feed.keys import REGISTRY, FeedKeys, is_feed_name
from workers.feed.selection import Selection
from workers.log import Logger
from workers.session.preflight import KnownFeeds

log = Logger("online_svm.worker")

PAGE_NAMES = 1000
"""Approximate names in a page of the list, or keys in a page of SCAN; blocks Redis for 0.3 ms."""

PAGES_PER_POLL = 2  # pages of the list in one poll: a few milliseconds

SCAN_PAGES_PER_POLL = 10
"""Pages of SCAN of each server in one poll: a scan of a million keys takes nine minutes."""

MAX_NAME_BYTES = 64  # bytes of the longest valid name; longer ones are not transferred
FEEDS_PER_CALL = 200  # feeds in one call of the script, which blocks Redis for about 0.2 ms

_PAGE = Script.load("registry_page")
_SCAN = Script.load("input_page")
_RANK = Script.load("rank_feeds")

_STATE, _INPUT, _NOTHING = range(3)  # what the script `rank_feeds` returns


class RegistryWatch:
    """Finds the feeds to serve, in the list of feeds and by their input.

    Parameters
    ----------
    max_names : int
        Largest number of names of each rank to keep.
    known : KnownFeeds
        Gets each selected feed with state, even if another process answers it.
    feeds_per_call : int
        1 on a cluster, where all keys of a call must belong to one feed.
    """

    def __init__(
        self,
        connection: Connection,
        selection: Selection,
        max_names: int,
        known: KnownFeeds,
        feeds_per_call: int = FEEDS_PER_CALL,
    ) -> None:
        self._connection, self._selection = connection, selection
        self._max_names, self._known, self._feeds_per_call = max_names, known, feeds_per_call
        self._cursor, self._is_complete = b"0", False
        self._inputs: InputScan | None = InputScan(connection) if selection.patterns else None
        self._ranked: tuple[set[str], set[str]] = (set(), set())  # with state, and with input
        self._warned: set[str] = set()

    def poll(self) -> list[str]:
        """Read a part of the list; return the selected feeds to serve, the most urgent first.

        If Redis does not answer, return the feeds known so far.
        """
        names = self._selection.of(())
        with suppress(Unavailable):  # the feeds' own connections report this
            self._rank(names + (self._read() if self._selection.patterns else []))
            self._rank(self._scan())
        ranks = self._ranked if self._is_complete else self._ranked[:1]
        listed = [name for rank in ranks for name in sorted(rank) if self._selection.selects(name)]
        if self._selection.patterns and self._is_complete and not (listed or names):
            self._warn(
                "no feed is answered yet: none that has input, or was answered before, matches",
                patterns=" ".join(self._selection.patterns),
            )
        return list(dict.fromkeys(names + listed))

    def _read(self) -> list[str]:
        """Return the selected names on the next pages."""
        names: list[str] = []
        try:
            for _ in range(PAGES_PER_POLL):
                names += self._read_page()
                if self._cursor == b"0":
                    self._is_complete = True
                    break
        except AccessDenied as error:
            self._warn(str(error))
        except WrongKeyType:
            self._warn("the list of feeds is not a set; delete that key", key=REGISTRY)
        return names

    def _scan(self) -> list[str]:
        """Return selected names of feeds with input, listed or not."""
        if self._inputs is None:
            return []
        try:
            return [name for name in self._inputs.names() if self._selection.selects(name)]
        except AccessDenied:
            self.close()
            self._warn(
                "this user may not run SCAN: a feed that nobody listed is not found; list it "
                "once: SADD osvm:feeds FEED"
            )
            return []

    def close(self) -> None:
        """Stop looking for feeds by their input."""
        if self._inputs is not None:
            self._inputs.close()
        self._inputs = None

    def _read_page(self) -> list[str]:
        reply = self._connection.evaluate(
            _PAGE, [REGISTRY], [self._cursor, PAGE_NAMES, MAX_NAME_BYTES]
        )
        self._cursor, found, longer = reply[0], reply[1], int(reply[2])
        names = [name.decode() for name in found if is_feed_name(name)]
        if longer or len(names) < len(found):
            self._warn("the list of feeds holds texts that are no names; they are passed over")
        return [name for name in names if self._selection.selects(name)]

    def _rank(self, names: Iterable[str]) -> None:
        """Record which of these feeds have state or input; feeds known to have state are skipped.

        While its node does not answer, a feed counts as having neither.
        """
        new = [name for name in dict.fromkeys(names) if name not in self._ranked[_STATE]]
        parts = [
            new[i : i + self._feeds_per_call] for i in range(0, len(new), self._feeds_per_call)
        ]
        sent = [self._connection.send_script(_RANK, _keys(part), ()) for part in parts]
        for part, each in zip(parts, sent, strict=True):
            ranks = [_NOTHING] * len(part)
            try:
                ranks = self._connection.receive_script(_RANK, each)
            except Unavailable:
                if not self._connection.fail_fast_for:  # not a cluster
                    raise
            except AccessDenied as error:
                self._warn(str(error))
            for name, rank in zip(part, ranks, strict=True):
                self._record(name, rank)

    def _record(self, name: str, rank: int) -> None:
        """Keep the name of a feed with state or input, under its rank, if there is room."""
        if rank == _STATE:
            self._known.add(name)
        for kept in self._ranked:
            kept.discard(name)
        if rank == _NOTHING:
            return
        if len(self._ranked[rank]) < self._max_names:
            self._ranked[rank].add(name)
        else:
            self._warn("the list of feeds holds more feeds than are taken up", most=self._max_names)

    def _warn(self, text: str, **figures: object) -> None:
        if text not in self._warned:
            self._warned.add(text)
            log.warning(text, **figures)


def _keys(feeds: Iterable[str]) -> list[str]:
    return [key for keys in map(FeedKeys, feeds) for key in (keys.state, keys.input)]


class InputScan:
    """Scans the keys of all servers for input streams, a few pages of each server at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursors: dict[str, bytes] = {}  # by the URL of the server
        self._links: dict[str, Connection] = {}  # to the primaries of a cluster
        self._failed_at: dict[str, float] = {}  # last failure of a server, by its URL

    def names(self) -> list[str]:
        """Return the names of feeds on the next pages of each server; skip silent nodes.

        Raises AccessDenied if this user may not run SCAN.
        """
        found: list[str] = []
        for url in nodes_of(self._connection.url).primaries() or [""]:
            try:
                if not self._is_silent(url):
                    found += self._scan_server(url)
            except Unavailable:  # the feeds' own connections report this
                self._failed_at[url] = time.monotonic()
        return found

    def close(self) -> None:
        """Close the connections to the primaries of a cluster."""
        for link in self._links.values():
            link.close()

    def _scan_server(self, url: str) -> list[str]:
        connection, names = self._connected(url), list[bytes]()
        for _ in range(SCAN_PAGES_PER_POLL):
            cursor = self._cursors.get(url, b"0")
            reply = connection.evaluate(_SCAN, [], [cursor, PAGE_NAMES, MAX_NAME_BYTES])
            self._cursors[url], page = reply
            names += page
            if self._cursors[url] == b"0":
                break
        return [name.decode() for name in names if is_feed_name(name)]

    def _connected(self, url: str) -> Connection:
        """Return a connection to a primary of a cluster, or to the only server."""
        given = self._connection
        if not url:
            return given
        if url not in self._links:
            self._links[url] = Connection(url, given.stop, 0.0, given.timeout, given.fail_fast_for)
        return self._links[url]

    def _is_silent(self, url: str) -> bool:
        """Return whether a node was silent recently, so that a command to it would delay feeds."""
        given = self._connection
        if nodes_of(given.url).health(url, given.fail_fast_for) is NodeHealth.SILENT:
            return True
        return time.monotonic() - self._failed_at.get(url, float("-inf")) < given.fail_fast_for
