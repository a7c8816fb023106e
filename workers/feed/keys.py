"""The names of a feed's keys, in one place.

Every key of feed F is `osvm:{F}:...`; the braces keep them in one hash slot.
"""

import re
from dataclasses import dataclass

from workers.errors import InvalidFeedName

REGISTRY = "osvm:feeds"
"""Set of the names of all feeds that were pushed to, forked or started by a worker."""

SCORERS = "scorers"
"""Consumer group of `req`, in which scorers share the requests."""

GROUP = "osvm"
"""Consumer group of `in` at the committed cursor, for people and autoscalers."""

FIELD = "p"
"""The one field of an entry of `out`, `met`, `alarms` and `events`."""

ALARM = "alarm"
"""The one field of an entry of `raised`: the ID of an entry of `alarms`."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def fleet_key(name: str) -> str:
    """Return the key of a fleet's definition; see `workers.placed.definition`.

    Raises
    ------
    InvalidFeedName
        If the name is none that a feed could have.

    Examples
    --------
    >>> fleet_key("sensors")
    'osvm:fleet:sensors'
    """
    FeedKeys(name)  # raises for what is no name
    return f"osvm:fleet:{name}"


def is_feed_name(name: bytes) -> bool:
    """Return whether this is a valid name of a feed.

    Examples
    --------
    >>> is_feed_name(b"fraud"), is_feed_name(b"a b"), is_feed_name(b"")
    (True, False, False)
    """
    return name.isascii() and _NAME.fullmatch(name.decode()) is not None


@dataclass(frozen=True, slots=True)
class FeedKeys:
    """The keys of one feed.

    Parameters
    ----------
    feed : str
        1 to 64 letters, digits, dots, underscores or hyphens; the first a letter or digit.

    Raises
    ------
    InvalidFeedName
        For any other name.

    Examples
    --------
    >>> keys = FeedKeys("fraud")
    >>> keys.out
    'osvm:{fraud}:out'
    >>> keys.snapshot(2000, "0123456789abcdef")
    'osvm:{fraud}:snap:2000:01234567'
    """

    feed: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.feed):
            raise InvalidFeedName(
                f"feed name {self.feed[:80]!r}: use 1 to 64 letters, digits, '.', '_' or '-', "
                "and begin with a letter or digit"
            )

    @property
    def input(self) -> str:
        """Stream of examples."""
        return self._key("in")

    @property
    def out(self) -> str:
        """Stream of predictions; entry ID = input entry ID."""
        return self._key("out")

    @property
    def met(self) -> str:
        """Stream of validity reports."""
        return self._key("met")

    @property
    def alarms(self) -> str:
        """Stream of alarms; entry ID = ID of the input entry that raised them."""
        return self._key("alarms")

    @property
    def dlq(self) -> str:
        """Stream of rejected input."""
        return self._key("dlq")

    @property
    def outputs(self) -> tuple[str, str, str, str]:
        """The streams that a commit adds to, in the order in which it does: the digest's."""
        return self.out, self.met, self.alarms, self.dlq

    @property
    def events(self) -> str:
        """Stream of operational events: no function of the input, and no part of the digest."""
        return self._key("events")

    @property
    def raised(self) -> str:
        """Stream that tells when entries of `alarms` were committed; outside the digest."""
        return self._key("raised")

    @property
    def state(self) -> str:
        """Hash: epoch, cursor, counters, digest, snapshot pointers, configuration."""
        return self._key("st")

    @property
    def lease(self) -> str:
        """String: the worker that runs the feed. It ensures liveness, not correctness."""
        return self._key("lease")

    @property
    def anew(self) -> str:
        """String that `reset` leaves for some days: the feed may begin anew though it is known."""
        return self._key("anew")

    @property
    def wanted(self) -> str:
        """String that `backup` leaves for some seconds: the worker is to leave a snapshot."""
        return self._key("wanted")

    @property
    def snapshots(self) -> str:
        """Pattern that matches the feed's snapshot keys and no other key."""
        return f"osvm:{{{self.feed}}}:snap:*"

    def snapshot(self, n: int, sha256: str) -> str:
        """Return the key of the snapshot taken after `n` learned examples."""
        return self._key(f"snap:{n}:{sha256[:8]}")

    def snapshot_parts(self, n: int, sha256: str, parts: int) -> list[str]:
        """Return the keys of its parts, in order.

        Examples
        --------
        >>> FeedKeys("f").snapshot_parts(7, "01234567", 2)
        ['osvm:{f}:snap:7:01234567:2:1', 'osvm:{f}:snap:7:01234567:2:2']
        """
        whole = self.snapshot(n, sha256)
        return [whole] if parts == 1 else [f"{whole}:{parts}:{i + 1}" for i in range(parts)]

    @property
    def published(self) -> str:
        """Hash: which published state is the newest; outside the digest."""
        return self._key("pub")

    @property
    def publications(self) -> str:
        """Pattern that matches the keys of the parts of published states and no other key."""
        return f"osvm:{{{self.feed}}}:pub:*"

    def published_parts(self, n: int, sha256: str, parts: int) -> list[str]:
        """Return the keys of the parts of the state published after `n` learned examples.

        Examples
        --------
        >>> FeedKeys("f").published_parts(7, "0123456789", 2)
        ['osvm:{f}:pub:7:01234567:1', 'osvm:{f}:pub:7:01234567:2']
        """
        return [self._key(f"pub:{n}:{sha256[:8]}:{i + 1}") for i in range(parts)]

    @property
    def requests(self) -> str:
        """Stream of requests: examples without a label that scorers answer."""
        return self._key("req")

    def reply(self, request: str) -> str:
        """Return the key of the answer to one request: a list of one element, which expires.

        Examples
        --------
        >>> FeedKeys("f").reply("a")
        'osvm:{f}:ans:a'
        """
        return self._key(f"ans:{request}")

    @property
    def erased(self) -> str:
        """Hash: which entries were erased, by ID, and nothing of what was in them."""
        return self._key("erased")

    def copy_of(self, stream: str) -> str:
        """Return the key under which a copy of a stream is made, until it replaces the stream.

        Examples
        --------
        >>> keys = FeedKeys("f")
        >>> keys.copy_of(keys.out)
        'osvm:{f}:copy:out'
        """
        return self._key(f"copy:{stream.removeprefix(self._key(''))}")

    def _key(self, name: str) -> str:
        return f"osvm:{{{self.feed}}}:{name}"
