"""Choose the feeds that a process takes up: first those with state, then with input, then the rest.

Producers may write the list of feeds. So a look reads a bounded part of it, checks each name, and
keeps a bounded number of selected names of each rank, so names without a feed displace no feed. A
long list is read over several looks. Until all of it was read, only feeds with state are taken up.

A client that only appends to a stream does not list its feed. Such feeds are found by their input:
each look reads a bounded number of keys of every primary by SCAN; the next look continues there.
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
from workers.session.known_feeds import KnownFeeds

log = Logger("online_svm.worker")

PAGE_NAMES = 1000
"""Names in a page of the list, or keys in a page of SCAN, about. A page blocks Redis for .3 ms."""

PAGES_PER_LOOK = 2
"""Pages of the list in one look, which takes a few milliseconds."""

SCAN_PAGES_PER_LOOK = 10
"""Pages of SCAN of each server in one look: a scan of a million keys takes nine minutes."""

MAX_NAME_BYTES = 64
"""Bytes of a name; a longer one is not transferred."""

FEEDS_PER_CALL = 200
"""Feeds in one call of the script, which blocks Redis for some 0.2 ms."""

_PAGE = Script.load("registry_page")
_SCAN = Script.load("input_page")
_RANK = Script.load("rank_feeds")

_STATE, _INPUT, _NOTHING = range(3)


class RegistryWatch:
    """Finds the feeds to take up, in the list of feeds and by their input.

    Parameters
    ----------
    most : int
        Names kept of each rank, at most.
    known : KnownFeeds
        Each selected feed with state is added to it, even if another process answers the feed.
    feeds_per_call : int
        Feeds in one call: 1 on a cluster, where all keys of a call must belong to one feed.
    """

    def __init__(
        self,
        connection: Connection,
        selection: Selection,
        most: int,
        known: KnownFeeds,
        feeds_per_call: int = FEEDS_PER_CALL,
    ) -> None:
        self._connection, self._selection = connection, selection
        self._most, self._known, self._feeds_per_call = most, known, feeds_per_call
        self._cursor, self._is_whole = b"0", False
        self._inputs: InputScan | None = InputScan(connection) if selection.patterns else None
        self._ranked: tuple[set[str], set[str], set[str]] = (set(), set(), set())
        self._told: set[str] = set()

    def look(self) -> list[str]:
        """Read some of the list; return the selected feeds to take up, the most urgent first.

        If Redis does not answer, return the feeds known so far.
        """
        names = self._selection.of(())
        with suppress(Unavailable):  # the feeds' own connections report this
            self._rank(names + (self._read() if self._selection.patterns else []))
            self._rank(self._scanned())
        ranks = self._ranked if self._is_whole else self._ranked[:1]
        listed = [name for rank in ranks for name in sorted(rank) if self._selection.selects(name)]
        if self._selection.patterns and self._is_whole and not (listed or names):
            self._warn(
                "no feed is answered yet: none that is listed, or has input, matches",
                patterns=" ".join(self._selection.patterns),
            )
        return list(dict.fromkeys(names + listed))

    def _read(self) -> list[str]:
        """Return the selected names on the next pages."""
        met: list[str] = []
        try:
            for _ in range(PAGES_PER_LOOK):
                met += self._read_page()
                if self._cursor == b"0":
                    self._is_whole = True
                    break
        except AccessDenied as error:
            self._warn(str(error))
        except WrongKeyType:
            self._warn("the list of feeds is not a set; delete that key", key=REGISTRY)
        return met

    def _scanned(self) -> list[str]:
        """Return selected names of feeds with input, listed or not."""
        if self._inputs is None:
            return []
        try:
            return [name for name in self._inputs.names() if self._selection.selects(name)]
        except AccessDenied:
            self.close()
            self._warn(
                "this user may not run SCAN: a feed that nobody listed is not found; list it once: "
                "SADD osvm:feeds FEED"
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

    def _rank(self, met: Iterable[str]) -> None:
        """Record which of these feeds have state or input; one with state is not asked for again.

        A feed counts as having neither while its node does not answer.
        """
        asked = [name for name in dict.fromkeys(met) if name not in self._ranked[_STATE]]
        parts = [
            asked[i : i + self._feeds_per_call] for i in range(0, len(asked), self._feeds_per_call)
        ]
        sent = [self._connection.send_script(_RANK, _keys(part), ()) for part in parts]
        for part, each in zip(parts, sent, strict=True):
            ranks = [_NOTHING] * len(part)
            try:
                ranks = self._connection.receive_script(_RANK, each)
            except Unavailable:
                if not self._connection.fail_fast_for:  # there is one server
                    raise
            except AccessDenied as error:
                self._warn(str(error))
            for name, rank in zip(part, ranks, strict=True):
                self._keep(name, rank)

    def _keep(self, name: str, rank: int) -> None:
        """Keep a name under its rank if there is room."""
        if rank == _STATE:
            self._known.add(name)
        for kept in self._ranked:
            kept.discard(name)
        if len(self._ranked[rank]) < self._most:
            self._ranked[rank].add(name)
        else:
            self._warn("the list of feeds holds more feeds than are taken up", most=self._most)

    def _warn(self, text: str, **figures: object) -> None:
        """Log each warning once."""
        if text not in self._told:
            self._told.add(text)
            log.warning(text, **figures)


def _keys(feeds: Iterable[str]) -> list[str]:
    """Return the keys of state and input of each feed."""
    return [key for keys in map(FeedKeys, feeds) for key in (keys.state, keys.input)]


class InputScan:
    """Scans the keys of all servers for input streams, some pages of each server at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursors: dict[str, bytes] = {}  # by the URL of the server
        self._links: dict[str, Connection] = {}  # to the primaries of a cluster
        self._silent: dict[str, float] = {}  # when a server last did not answer, by its URL

    def names(self) -> list[str]:
        """Read the next pages of each server; return the names of the feeds there.

        A node that does not answer is skipped.

        Raises AccessDenied if this user may not run SCAN.
        """
        found: list[str] = []
        for url in nodes_of(self._connection.url).primaries() or [""]:
            try:
                if not self._is_passed_over(url):
                    found += self._of_server(url)
            except Unavailable:  # the feeds' own connections report this
                self._silent[url] = time.monotonic()
        return found

    def close(self) -> None:
        """Close the connections to the primaries of a cluster."""
        for link in self._links.values():
            link.close()

    def _of_server(self, url: str) -> list[str]:
        connection, met = self._connected(url), list[bytes]()
        for _ in range(SCAN_PAGES_PER_LOOK):
            cursor = self._cursors.get(url, b"0")
            reply = connection.evaluate(_SCAN, [], [cursor, PAGE_NAMES, MAX_NAME_BYTES])
            self._cursors[url], names = reply
            met += names
            if self._cursors[url] == b"0":
                break
        return [name.decode() for name in met if is_feed_name(name)]

    def _connected(self, url: str) -> Connection:
        """Return a connection to a primary of a cluster, or to the only server."""
        given = self._connection
        if not url:
            return given
        if url not in self._links:
            self._links[url] = Connection(url, given.stop, 0.0, given.timeout, given.fail_fast_for)
        return self._links[url]

    def _is_passed_over(self, url: str) -> bool:
        """Return whether a node was silent a moment ago: asking it would delay other feeds."""
        given = self._connection
        if nodes_of(given.url).health(url, given.fail_fast_for) is NodeHealth.SILENT:
            return True
        return time.monotonic() - self._silent.get(url, float("-inf")) < given.fail_fast_for
