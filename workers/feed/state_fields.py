"""Strict parsers of the fields of `st`: a value that this program never writes is damage.

Each parser takes the bytes of one field, and raises ValueError with the expected form.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import orjson

from workers.errors import StateLost, way_back
from workers.feed.position import MAX_ID_PART, parse_id

if TYPE_CHECKING:  # a command that only reads the fields starts without numpy
    from online_svm.predictor.changed_kinds import ChangedKind
    from online_svm.predictor.delayed_labels import DelayedLabels
    from online_svm.predictor.online_predictor import OnlinePredictor

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
        feed = self.key.partition("{")[2].partition("}")[0]
        return StateLost(f"{self.key} is damaged: {problem}; {way_back(feed)}")


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


def encode_kinds(kinds: "Sequence[ChangedKind]") -> bytes:
    """Encode features that came in another kind than was learned, for `st`."""
    return orjson.dumps([kind.about for kind in kinds])


KINDS = "kinds"  # name of the field with changed kinds of features: JSON, the newest counts


def parse_kinds(value: bytes) -> list[dict[str, Any]]:
    """Decode features that came in another kind than was learned; see `ChangedKind`.

    Raises ValueError for any other text.
    """
    try:
        found = json.loads(value)
    except RecursionError:
        found = None
    if not isinstance(found, list) or not all(isinstance(kind, dict) for kind in found):
        raise ValueError("not a JSON list of objects")
    return found


MEMORY = "memory"  # name of the field with the memory at the newest snapshot: JSON


def encode_memory(predictor: "OnlinePredictor") -> bytes:
    """Encode the state of the memory for `st`; "{}" without one."""
    found = predictor.memory_status
    return json.dumps({} if found is None else found._asdict()).encode()


def parse_memory(value: bytes) -> dict[str, Any]:
    """Decode a result of `encode_memory`. Raises ValueError for any other text."""
    try:
        found = json.loads(value)
    except RecursionError:
        found = None
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found


DUPLICATES = "duplicates"  # name of the field with the number of answered duplicates
PENDING = "pending"  # name of the field with `PendingLabels`, which only a feed with a horizon has


class PendingLabels(NamedTuple):
    """Answered examples that are not learned yet, as of the last commit."""

    pending: int  # their number
    unlabelled: int  # number of these without a label
    ahead: int = 0  # number of these whose time is far ahead of the clock of the feed
    # Milliseconds since the oldest unlabelled one, by the clock of the feed; None without one
    age: int | None = None
    sent: int = 0  # labels of earlier examples that came so far, repeated and corrected ones too

    @property
    def seconds(self) -> float:
        """Age of the oldest unlabelled example; 0 if there is none."""
        return (self.age or 0) / 1000

    def as_dict(self) -> dict[str, float | None]:
        """Return the counts, and the age of the oldest in seconds."""
        return {
            "pending": self.pending, "unlabelled": self.unlabelled, "ahead_now": self.ahead,
            "seconds": self.seconds,
        }  # fmt: skip

    @classmethod
    def of(cls, labels: "DelayedLabels") -> Self:
        """Return the counts of a predictor."""
        counts = labels.counts
        sent = counts.late + counts.repeated + counts.corrected
        return cls(counts.pending, counts.unlabelled, labels.ahead, labels.open_for, sent)

    def encode(self) -> bytes:
        """Encode for `st`.

        Examples
        --------
        >>> PendingLabels(7, 5, 1, 3000, 20).encode(), PendingLabels(2, 0).encode()
        (b'7 5 1 3000 20', b'2 0 0 - 0')
        """
        age = b"-" if self.age is None else b"%d" % self.age
        return b"%d %d %d %b %d" % (self.pending, self.unlabelled, self.ahead, age, self.sent)

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Decode a result of `encode`. Raises ValueError for any other text."""
        *counts, age, sent = text.split(b" ")
        pending, unlabelled, ahead = map(count, counts)
        return cls(pending, unlabelled, ahead, None if age == b"-" else count(age), count(sent))


def fields_of(predictor: "OnlinePredictor", duplicates: int) -> dict[str, bytes]:
    """Return the fields of `st` that describe a predictor and its answers, all of them."""
    found = {KINDS: encode_kinds(predictor.changed_kinds), MEMORY: encode_memory(predictor)}
    found[DUPLICATES] = b"%d" % duplicates
    if predictor.delayed_labels.is_delayed:
        found[PENDING] = PendingLabels.of(predictor.delayed_labels).encode()
    return found
