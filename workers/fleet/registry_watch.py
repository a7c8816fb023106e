"""Which selected feeds the list of feeds names, seen page by page.

Producers may write the list. So a look reads a bounded part of it, each name is checked, and only
names that are selected are kept, a bounded number of them. A list of any size is gone through over
several looks.
"""

import structlog

from workers.broker.connection import Connection
from workers.broker.script import Script
from workers.errors import AccessDenied, Unavailable, WrongKeyType
from workers.feed.keys import REGISTRY, is_feed_name
from workers.fleet.selection import Selection

log = structlog.get_logger("online_svm.worker")

PAGE = 1000
"""Names of one page, about."""

PAGES = 2
"""Pages of one look: it takes a few milliseconds."""

_LONGEST = 64
"""Bytes of a name; a longer one is not transferred."""

_PAGE = Script.load("registry_page")


class RegistryWatch:
    """Looks at the list of feeds.

    Parameters
    ----------
    connection : Connection
    selection : Selection
    most : int
        Names that are kept.
    page : int
        Names of one page, about.
    """

    def __init__(
        self, connection: Connection, selection: Selection, most: int, page: int = PAGE
    ) -> None:
        self._connection, self._selection = connection, selection
        self._most, self._page = most, page
        self._cursor = b"0"
        self._known: set[str] = set()
        self._told: set[str] = set()

    def look(self) -> list[str]:
        """Read some of the list; return the selected feeds that are known by now, sorted.

        Where Redis does not answer, they are those that were known before.
        """
        if self._selection.patterns:
            try:
                for _ in range(PAGES):
                    self._read_page()
                    if self._cursor == b"0":
                        break
            except Unavailable:
                pass  # the feeds' own connections report this
            except AccessDenied as error:
                self._warn(str(error))
            except WrongKeyType:
                self._warn("the list of feeds is not a set; delete that key", key=REGISTRY)
        found = self._selection.of(self._known)
        if self._selection.patterns and not found and self._cursor == b"0":
            self._warn(
                "no feed is answered yet: none that is listed matches; a push lists its feed",
                patterns=" ".join(self._selection.patterns),
            )
        return found

    def _read_page(self) -> None:
        reply = self._connection.evaluate(_PAGE, [REGISTRY], [self._cursor, self._page, _LONGEST])
        self._cursor, found, longer = reply[0], reply[1], int(reply[2])
        names = [name.decode() for name in found if is_feed_name(name)]
        if longer or len(names) < len(found):
            self._warn("the list of feeds holds texts that are no names; they are passed over")
        room = self._most - len(self._known)
        new = [name for name in self._selection.of(names) if name not in self._known]
        if len(new) > room:
            self._warn("the list of feeds holds more feeds than are taken up", most=self._most)
        self._known.update(new[:room])

    def _warn(self, text: str, **figures: object) -> None:
        """Warn once of each thing."""
        if text not in self._told:
            self._told.add(text)
            log.warning(text, **figures)
