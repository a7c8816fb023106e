"""Find feeds by their input: a client that only appends to a stream lists its feed nowhere.

Each look reads a bounded number of keys of every primary, by SCAN, and goes on where the last one
ended; after the last key it begins again. So a feed is found after some looks, at worst.
"""

import time

from workers.broker.connection import Connection
from workers.broker.nodes import NodeHealth, nodes_of
from workers.broker.script import Script
from workers.errors import Unavailable
from workers.feed.keys import is_feed_name

PAGE = 1000
"""Keys of one page, about: SCAN keeps Redis from others for some 0.3 ms."""

PAGES = 10
"""Pages that one look reads of each server: of a million keys all are read in nine minutes."""

LONGEST = 64
"""Bytes of a name; a longer one is not transferred."""

_PAGE = Script.load("input_page")


class InputScan:
    """Goes through the keys of all servers for streams of input.

    Parameters
    ----------
    connection : Connection
        To one server, or to a cluster.
    page, pages : int
        Keys of one page, about; pages of each server at a time.
    """

    def __init__(self, connection: Connection, page: int = PAGE, pages: int = PAGES) -> None:
        self._connection, self._page, self._pages = connection, page, pages
        self._cursors: dict[str, bytes] = {}  # by the URL of the server
        self._links: dict[str, Connection] = {}  # to the primaries of a cluster
        self._silent: dict[str, float] = {}  # when one of them last did not answer

    def names(self) -> list[str]:
        """Read the next pages of each server; return the names of feeds that were met.

        A node that does not answer is passed over.

        Raises
        ------
        AccessDenied
            If this user may not run SCAN.
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
        for _ in range(self._pages):
            cursor = self._cursors.get(url, b"0")
            reply = connection.evaluate(_PAGE, [], [cursor, self._page, LONGEST])
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
            self._links[url] = Connection(url, given.stop, 0.0, given.timeout, given.haste)
        return self._links[url]

    def _is_passed_over(self, url: str) -> bool:
        """Return whether a node did not answer a moment ago: other feeds would wait for it."""
        given = self._connection
        if nodes_of(given.url).health(url, given.haste) is NodeHealth.SILENT:
            return True
        return time.monotonic() - self._silent.get(url, float("-inf")) < given.haste
