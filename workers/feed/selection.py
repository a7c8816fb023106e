"""The selection of the feeds that a process answers: by name, by pattern, and by shard."""

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from workers.errors import InvalidFeedName
from workers.feed.keys import FeedKeys

_MAX_PATTERN_LENGTH = 256  # largest number of characters: four for each of the longest name

_WILD = frozenset("*?[")
_ALLOWED = frozenset("*?[]!-._")
_SET = re.compile(r"\[!?\]?[^\]]*\]")


class Selection:
    """The feeds that are selected by names and patterns and owned by this process.

    A name selects its feed even if the feed does not exist. A pattern (`*`, `?`, `[ab]`, `[!ab]`,
    as in a shell) selects matching feeds that are listed or have input. `owns` returns whether this
    process owns a feed, which may change. Raises InvalidFeedName for an invalid name, or a pattern
    that can match none.

    Examples
    --------
    >>> selection = Selection(["sensors-*", "returns"])
    >>> selection.of(["sensors-2", "sensors-1", "fraud"])
    ['returns', 'sensors-1', 'sensors-2']
    """

    def __init__(self, patterns: Sequence[str], owns: Callable[[str], bool] | None = None) -> None:
        if not patterns:
            raise InvalidFeedName("give the name of a feed, or a pattern such as 'sensors-*'")
        self.names = frozenset(text for text in patterns if not is_pattern(text))
        self.patterns = sorted({text for text in patterns if is_pattern(text)})
        for name in sorted(self.names):
            FeedKeys(name)  # raises for an invalid name
        for pattern in self.patterns:
            _check(pattern)
        self._owns = owns or (lambda _: True)

    def of(self, registry: Iterable[str]) -> list[str]:
        """Return the selected feeds, sorted; `registry` has the names of the listed feeds."""
        matching = {name for name in registry if self._matches(name)}
        return sorted(name for name in matching.union(self.names) if self._owns(name))

    def selects(self, name: str) -> bool:
        """Return whether a listed feed is selected."""
        return (name in self.names or self._matches(name)) and self._owns(name)

    def _matches(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.patterns)


def is_pattern(text: str) -> bool:
    """Return whether a text is a pattern rather than a name."""
    return not _WILD.isdisjoint(text)


def _check(pattern: str) -> None:
    """Raise InvalidFeedName for a pattern that can match no name."""
    is_plain = all((c.isascii() and c.isalnum()) or c in _ALLOWED for c in pattern)
    if not is_plain or len(pattern) > _MAX_PATTERN_LENGTH:
        raise InvalidFeedName(
            f"pattern {pattern[:80]!r}: names of feeds have letters, digits, '.', '_' and '-'; "
            "'*', '?' and '[...]' stand for some of them, in "
            f"{_MAX_PATTERN_LENGTH} characters at most"
        )
    if "[" in _SET.sub("", pattern):
        raise InvalidFeedName(f"pattern {pattern[:80]!r}: a '[' has no ']'")
