"""The names of a feed's keys.

Every key of feed F begins with `osvm:{F}:`; the braces put all of them into one hash slot.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from workers.errors import InvalidFeedName

REGISTRY = "osvm:feeds"
"""Set of the names of all feeds that were pushed to, forked or started by a worker."""

GROUP = "osvm"  # consumer group of `in` at the committed cursor, for people and autoscalers
FIELD = "p"  # the only field of an entry of `out`, `met`, `alarms` and `events`
LEARNED_AGAIN = "base"  # the field of `erased` with the position of the newest learner
ALARM = "alarm"  # the only field of an entry of `raised`: the ID of an entry of `alarms`

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def fleet_key(name: str) -> str:
    """Return the key of a fleet's definition. Raises InvalidFeedName as `FeedKeys`."""
    FeedKeys(name)
    return f"osvm:fleet:{name}"


def is_feed_name(name: bytes) -> bool:
    """Return whether a name is valid for a feed."""
    return name.isascii() and _NAME.fullmatch(name.decode()) is not None


class _Key:
    """Descriptor of a key by its name after the prefix."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, keys: "FeedKeys", _owner: type) -> str:
        return keys._key(self._name)


@dataclass(frozen=True, slots=True)
class FeedKeys:
    """The keys of one feed. Raises InvalidFeedName.

    Examples
    --------
    >>> keys = FeedKeys("fraud")
    >>> keys.out, keys.snapshot(2000, "0123456789abcdef")
    ('osvm:{fraud}:out', 'osvm:{fraud}:snap:2000:01234567')
    """

    feed: str  # 1 to 64 letters, digits, dots, underscores or hyphens; the first a letter or digit

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.feed):
            raise InvalidFeedName(
                f"feed name {self.feed[:80]!r}: use 1 to 64 letters, digits, '.', '_' or '-', "
                "and begin with a letter or digit"
            )

    input = _Key("in")  # stream of examples
    out = _Key("out")  # stream of predictions; entry ID = input entry ID
    met = _Key("met")  # stream of validity reports
    alarms = _Key("alarms")  # stream; entry ID = ID of the input entry that raised them
    dlq = _Key("dlq")  # stream of rejected input
    # Streams outside the digest: operational events, and the commit times of entries of `alarms`.
    events = _Key("events")
    raised = _Key("raised")
    state = _Key("st")  # hash: epoch, cursor, counters, digest, snapshot pointers, configuration
    lease = _Key("lease")  # string: the worker that runs the feed; for liveness, not correctness
    restart_mark = _Key("anew")  # string: set by `reset` for some days; the feed may start anew
    wanted = _Key("wanted")  # string: set by `backup` for some seconds to request a snapshot
    erased = _Key("erased")  # hash: the IDs of erased entries, and nothing of their contents
    answered_ids = _Key(
        "ids"
    )  # hash: seq and entry ID of the answer to each recent id of producers
    published = _Key("pub")  # hash: which published state is the newest; outside the digest
    table = _Key("table")  # stream of one entry: how tables are written; JSON, added by `push`
    # Patterns of the keys of snapshots, and of parts of published states.
    snapshots = _Key("snap:*")
    publications = _Key("pub:*")

    @property
    def outputs(self) -> tuple[str, str, str, str]:
        """The streams that a commit adds to, in the order of writing."""
        return self.out, self.met, self.alarms, self.dlq

    def snapshot(self, n: int, sha256: str) -> str:
        """Return the key of the snapshot taken after `n` learned examples."""
        return self._key(f"snap:{n}:{sha256[:8]}")

    def snapshot_parts(self, n: int, sha256: str, parts: int) -> list[str]:
        """Return the keys of the snapshot's parts, in order."""
        whole = self.snapshot(n, sha256)
        return [whole] if parts == 1 else [f"{whole}:{parts}:{i + 1}" for i in range(parts)]

    def memory_chunks(self, names: Iterable[str]) -> list[str]:
        """Return the keys of chunks of the memory, which several snapshots may share."""
        return [self._key(f"snap:memory:{name}") for name in names]

    def fits(self, kind: str) -> str:
        """Return the key of the finished fits of the memory's trees, by their kind."""
        return self._key(f"snap:memory:{kind}")

    def published_parts(self, n: int, sha256: str, parts: int) -> list[str]:
        """Return the keys of the parts of the state published after `n` learned examples."""
        return [self._key(f"pub:{n}:{sha256[:8]}:{i + 1}") for i in range(parts)]

    def copy_of(self, stream: str) -> str:
        """Return the key of a copy of a stream, which is to replace the stream."""
        return self._key(f"copy:{stream.removeprefix(self._key(''))}")

    def _key(self, name: str) -> str:
        return f"osvm:{{{self.feed}}}:{name}"
