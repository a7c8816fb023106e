"""The selection of the feeds that a process answers: by name, by pattern, and by shard `i/n`.

Shards use rendezvous hashing (Thaler and Ravishankar, 1998, IEEE/ACM Transactions on Networking
6(1)): each shard has a weight for each feed, a hash of both, and the shard with the largest weight
owns the feed. A new shard takes over the feeds for which its weight is the largest, on average one
in n. A removed shard leaves its feeds to the others. No other feed moves.
"""

import platform
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Self

from workers.errors import BadConfiguration, InvalidFeedName
from workers.feed.keys import FeedKeys

_MAX_PATTERN_LENGTH = 256  # largest number of characters: four for each of the longest name

_WILD = frozenset("*?[")
_ALLOWED = frozenset("*?[]!-._")
_SET = re.compile(r"\[!?\]?[^\]]*\]")


class Selection:
    """The feeds that are selected by names and patterns and owned by this process.

    A name selects its feed even if the feed does not exist. A pattern (`*`, `?`, `[ab]`, `[!ab]`,
    as in a shell) selects matching feeds that have a state or input. `owns` returns whether this
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


MAX_SHARDS = 10_000  # largest number of shards: a feed name is hashed once for each shard

_TEXT = re.compile(r"(auto|[0-9]{1,9})/([0-9]{1,9})", re.ASCII)
_ORDINAL = re.compile(r".*-([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """Shard `index` of `count`; it owns the feeds that rendezvous hashing gives it."""

    index: int  # 0 to `count - 1`; a larger one owns nothing
    count: int

    def owns(self, feed: str) -> bool:
        """Return whether this shard answers a feed."""
        return owner(feed, self.count) == self.index

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @classmethod
    def parse(cls, text: str, host: str | None = None) -> Self:
        """Return the shard that `i/n` or `auto/n` names; `host` defaults to this host's name.

        `auto` stands for the number at the end of the host's name: the ordinal of a pod of a
        StatefulSet. A pod with an ordinal beyond n owns no feeds. Raises BadConfiguration if the
        text is invalid, or the host's name does not end in a number.
        """
        found = _TEXT.fullmatch(text)
        if found is None:
            raise BadConfiguration(
                f"--shard {text[:40]!r}: give i/n, the number of this shard from 0 on and how many "
                "there are, such as 0/4; or auto/n, which reads i from the host's name"
            )
        first, count = found[1], int(found[2])
        if not 1 <= count <= MAX_SHARDS:
            raise BadConfiguration(f"--shard {text}: n must be from 1 to {MAX_SHARDS}")
        host = platform.node() if host is None else host
        if first == "auto":
            return cls(_ordinal(text, host), count)
        index = int(first)
        if index >= count:
            raise BadConfiguration(f"--shard {text}: i must be from 0 to {count - 1}")
        return cls(index, count)


def _ordinal(text: str, host: str) -> int:
    """Return the number at the end of a host's name, without its domain."""
    found = _ORDINAL.fullmatch(host.partition(".")[0])
    if found is None:
        raise BadConfiguration(
            f"--shard {text}: the host's name {host[:80]!r} ends in no number, as the pods of a "
            "StatefulSet do (worker-0); give i itself"
        )
    return int(found[1])


def weight(feed: str, shard: int) -> int:
    """Return the weight of a shard for a feed: 64 bits, the same in each process and version."""
    text = f"{shard}/{feed}".encode()
    return int.from_bytes(blake2b(text, digest_size=8, person=b"osvm-shard").digest(), "big")


def owner(feed: str, shards: int) -> int:
    """Return the shard that owns a feed, 0 to `shards - 1`.

    Examples
    --------
    After another shard is added, a feed stays where it is or moves to the new shard.

    >>> [owner(feed, 3) for feed in ("fraud", "returns", "sensors-1")]
    [1, 1, 2]
    >>> [owner(feed, 4) for feed in ("fraud", "returns", "sensors-1")]
    [1, 1, 3]
    """
    # A tie, with a chance of 2 ** -64, goes to the lower shard.
    return max(range(shards), key=lambda shard: (weight(feed, shard), -shard))
