"""Feeds that a process answers: names, patterns over the list of feeds, and a shard's share."""

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from workers.errors import InvalidFeedName
from workers.feed.keys import FeedKeys

_LONGEST = 256
"""Characters of a pattern: four for each of a name."""

_WILD = frozenset("*?[")
_ALLOWED = frozenset("*?[]!-._")
_SET = re.compile(r"\[!?\]?[^\]]*\]")


class Selection:
    """The feeds that names and patterns select, as far as they are this process's.

    A name selects its feed, whether there is one or not. A pattern (`*`, `?`, `[ab]`, `[!ab]`, as
    in a shell) selects the feeds that match it, of those that are listed or have input.

    Parameters
    ----------
    patterns : sequence of str
        Names and patterns; at least one.
    owns : callable, optional
        Whether this process answers the feed of a name; by default it answers all. What it returns
        may change; the next `of` follows it.

    Raises
    ------
    InvalidFeedName
        For a text that can neither be the name of a feed nor match one.

    Examples
    --------
    >>> selection = Selection(["sensors-*", "returns"])
    >>> selection.of(["sensors-2", "sensors-1", "fraud"])
    ['returns', 'sensors-1', 'sensors-2']
    >>> Selection(["*"], owns=lambda feed: feed.endswith("1")).of(["a-1", "a-2"])
    ['a-1']
    """

    def __init__(self, patterns: Sequence[str], owns: Callable[[str], bool] | None = None) -> None:
        if not patterns:
            raise InvalidFeedName("give the name of a feed, or a pattern such as 'sensors-*'")
        self.names = frozenset(text for text in patterns if not is_pattern(text))
        self.patterns = sorted({text for text in patterns if is_pattern(text)})
        for name in sorted(self.names):
            FeedKeys(name)  # raises for what is no name
        for pattern in self.patterns:
            _check(pattern)
        self._owns = owns or _all

    def of(self, registry: Iterable[str]) -> list[str]:
        """Return the selected feeds, sorted; `registry` holds the names of the listed feeds."""
        matching = {name for name in registry if self._matches(name)}
        return sorted(name for name in matching.union(self.names) if self._owns(name))

    def selects(self, name: str) -> bool:
        """Return whether a listed feed is selected.

        Examples
        --------
        >>> selection = Selection(["sensors-*", "returns"], owns=lambda feed: feed != "sensors-2")
        >>> [selection.selects(name) for name in ("sensors-1", "sensors-2", "returns", "fraud")]
        [True, False, True, False]
        """
        return (name in self.names or self._matches(name)) and self._owns(name)

    def _matches(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.patterns)


def is_pattern(text: str) -> bool:
    """Return whether a text is a pattern, not a name.

    Examples
    --------
    >>> is_pattern("sensors-*"), is_pattern("sensors-1")
    (True, False)
    """
    return not _WILD.isdisjoint(text)


def _check(pattern: str) -> None:
    """Raise InvalidFeedName for a pattern that matches no name."""
    is_plain = all((c.isascii() and c.isalnum()) or c in _ALLOWED for c in pattern)
    if not is_plain or len(pattern) > _LONGEST:
        raise InvalidFeedName(
            f"pattern {pattern[:80]!r}: names of feeds have letters, digits, '.', '_' and '-'; "
            f"'*', '?' and '[...]' stand for some of them, in {_LONGEST} characters at most"
        )
    if "[" in _SET.sub("", pattern):
        raise InvalidFeedName(f"pattern {pattern[:80]!r}: a '[' has no ']'")


def _all(_feed: str) -> bool:
    return True
