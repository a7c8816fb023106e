"""Strict parsers of the fields of `st`: a value that this program never writes is damage.

Each parser takes the bytes of one field, and raises ValueError with the expected form.
"""

import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

from workers.errors import StateLost
from workers.feed.position import MAX_ID_PART, parse_id

Value = TypeVar("Value")

_SHOWN = 60  # bytes of a damaged field in a message
MAX_COUNT = 2**63 - 2  # the largest number that HINCRBY can increment

_NUMBER = re.compile(rb"0|[1-9][0-9]{0,19}")
_ID = re.compile(rb"(?:0|[1-9][0-9]{0,19})-(?:0|[1-9][0-9]{0,19})")
_DIGEST = re.compile(rb"[0-9a-f]{64}")
_GONE = re.compile(rb"(-|-?[0-9]{1,20}) (\S+)")


@dataclass(frozen=True, slots=True)
class FieldReader:
    """Reads fields of `st`; its errors name the damaged field."""

    fields: dict[bytes, bytes]
    key: str

    def __call__(
        self, name: str, parse: Callable[[bytes], Value], default: bytes | None = None
    ) -> Value:
        """Parse a field. Raises StateLost if it is damaged, or missing and has no default."""
        value = self.fields.get(name.encode(), default)
        if value is None:
            raise self.damaged(f"field {name!r} is missing")
        try:
            return parse(value)
        except ValueError as error:
            shown = repr(value[:_SHOWN]) + "..." * (len(value) > _SHOWN)
            raise self.damaged(f"field {name!r} is {shown}, {error}") from error

    def damaged(self, problem: str) -> StateLost:
        """Return the error for a damaged field."""
        return StateLost(
            f"{self.key} is damaged: {problem}; restore it from a backup, or reset the feed"
        )


def count(value: bytes) -> int:
    """Parse a count, or the epoch."""
    if not _NUMBER.fullmatch(value) or int(value) > MAX_COUNT:
        raise ValueError(f"not a number from 0 to {MAX_COUNT}")
    return int(value)


def entry_id(value: bytes) -> bytes:
    """Check the ID of a stream entry."""
    if not _ID.fullmatch(value) or max(parse_id(value)) > MAX_ID_PART:
        raise ValueError("not the ID of an entry")
    return value


def digest(value: bytes) -> bytes:
    """Parse the 32 bytes of a digest."""
    if not _DIGEST.fullmatch(value):
        raise ValueError("not a digest of 64 hexadecimal digits")
    return bytes.fromhex(value.decode())


def text(value: bytes) -> str:
    """Parse a text."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None


def json_object(value: bytes) -> str:
    """Check the text of a JSON object."""
    try:
        is_object = isinstance(json.loads(value), dict)
    except (ValueError, RecursionError):
        is_object = False
    if not is_object:
        raise ValueError("not a JSON object")
    return text(value)


def gone(value: bytes) -> bytes:
    """Check the input that was gone before the feed started: a count and an ID; see commit.lua.

    The count is negative for a feed that started from a model, whose examples `seq` includes.
    """
    found = _GONE.fullmatch(value)
    if not found:
        raise ValueError("not a number and an ID")
    entry_id(found[2])
    return value


def _matching(pattern: bytes, expected: str) -> Callable[[bytes], bytes]:
    def parse(value: bytes) -> bytes:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"not {expected}")
        return value

    return parse


added = _matching(rb"[0-9]{1,20} [0-9]{1,20}", "two numbers")
"""Checks how many entries the input ever got, and how many must be gone; see input.lua."""

run_id = _matching(rb"[0-9a-f]{1,64}", "an ID of a server's run")


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of a stream: the entry at which a count, such as of learned examples, reached `n`.

    Examples
    --------
    >>> encode_marks([Mark(40, b"50-0"), Mark(80, b"90-1")])
    b'40:50-0 80:90-1'
    >>> parse_marks(b"40:50-0 80:90-1")
    (Mark(n=40, cursor=b'50-0'), Mark(n=80, cursor=b'90-1'))
    """

    n: int = 0
    cursor: bytes = b"0-0"


def encode_marks(marks: Iterable[Mark]) -> bytes:
    """Encode marks for `st`."""
    return b" ".join(b"%d:%b" % (mark.n, mark.cursor) for mark in marks)


def parse_marks(value: bytes) -> tuple[Mark, ...]:
    """Decode a result of `encode_marks`. Raises ValueError for any other text."""
    pairs = [part.split(b":") for part in value.split()]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("not pairs of number:ID")
    return tuple(Mark(count(n), entry_id(cursor)) for n, cursor in pairs)


PENDING = "pending"  # name of the field with `PendingLabels`, which only a feed with a horizon has


class PendingLabels(NamedTuple):
    """Answered examples that are not learned yet, as of the last commit."""

    pending: int  # their number
    unlabelled: int  # number of these without a label
    # Unix time in milliseconds of the oldest unlabelled one, by its entry ID or the producer's time
    since: int | None

    @property
    def seconds(self) -> float:
        """Age of the oldest unlabelled example; 0 if there is none."""
        return 0.0 if self.since is None else max(time.time() - self.since / 1000, 0.0)

    def as_dict(self) -> dict[str, float | None]:
        """Return the fields, and the age of the oldest."""
        return {**self._asdict(), "seconds": self.seconds}

    def encode(self) -> bytes:
        """Encode for `st`.

        Examples
        --------
        >>> PendingLabels(7, 5, 1700000000000).encode(), PendingLabels(2, 0, None).encode()
        (b'7 5 1700000000000', b'2 0 -')
        """
        since = b"-" if self.since is None else b"%d" % self.since
        return b"%d %d %b" % (self.pending, self.unlabelled, since)

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Decode a result of `encode`. Raises ValueError for any other text."""
        pending, unlabelled, since = text.split(b" ")
        return cls(count(pending), count(unlabelled), None if since == b"-" else count(since))
