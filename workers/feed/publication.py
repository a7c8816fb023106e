"""The newest published state, which scorers answer with."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from workers.errors import InvalidPublication
from workers.feed.keys import FeedKeys
from workers.feed.position import Position
from workers.feed.state_fields import count, digest, entry_id

_MOST_PARTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Publication:
    """A published state: where it stands, and how its bytes are found and checked.

    Attributes
    ----------
    n, seq : int
        Examples learned, and input entries answered.
    cursor : bytes
        ID of the last of these entries.
    sha256 : str
        Of its bytes.
    size : int
        Bytes.
    parts : int
        Keys they are stored under.
    config_hash : str
        Of the feed; the script that publishes adds it.
    at : int
        Milliseconds since 1970 by the clock of Redis; the script adds it.

    Examples
    --------
    >>> made = Publication.of(Position(b"9-1", 3, 2, bytes(32)), b"a state", 4)
    >>> made.parts, made.name, made.keys(FeedKeys("f"))[1]
    (2, '2-1b1c710d', 'osvm:{f}:pub:2:1b1c710d:2')
    """

    n: int
    seq: int
    cursor: bytes
    sha256: str
    size: int
    parts: int
    config_hash: str = ""
    at: int = 0

    @classmethod
    def of(cls, position: Position, data: bytes, part_bytes: int) -> Self:
        """Return the publication of these bytes, in parts of at most so many bytes."""
        parts = max(1, -(-len(data) // part_bytes))
        name = sha256(data).hexdigest()
        return cls(position.n, position.seq, position.cursor, name, len(data), parts)

    @property
    def name(self) -> str:
        """Its n and the first digits of its checksum, as answers name it."""
        return f"{self.n}-{self.sha256[:8]}"

    def keys(self, names: FeedKeys) -> list[str]:
        """Return the keys of its parts, in order."""
        return names.published_parts(self.n, self.sha256, self.parts)

    def fields(self) -> list[bytes | str | int]:
        """Return names and values of the fields that a worker gives; the script adds the others."""
        return [
            "n", self.n, "seq", self.seq, "cursor", self.cursor, "sha256", self.sha256,
            "size", self.size, "parts", self.parts,
        ]  # fmt: skip

    @staticmethod
    def shown(fields: Mapping[bytes, bytes]) -> str:
        """Return the name that unchecked fields give, for a person."""
        n, sha = (
            fields.get(name, b"?")[:20].decode(errors="replace") for name in (b"n", b"sha256")
        )
        return f"{n}-{sha[:8]}"

    @classmethod
    def parse(cls, fields: Mapping[bytes, bytes], key: str) -> Self:
        """Return the publication from the fields of the hash.

        Raises
        ------
        InvalidPublication
            If a field is missing or has another form.
        """
        try:
            parsed = cls(
                count(fields[b"n"]),
                count(fields[b"seq"]),
                entry_id(fields[b"cursor"]),
                digest(fields[b"sha256"]).hex(),
                count(fields[b"size"]),
                count(fields[b"parts"]),
                digest(fields[b"config_hash"]).hex(),
                count(fields[b"at"]),
            )
        except (KeyError, ValueError) as error:
            raise InvalidPublication(f"{key} is damaged: {error}") from error
        if not 1 <= parsed.parts <= min(_MOST_PARTS, max(1, parsed.size)) or parsed.n > parsed.seq:
            raise InvalidPublication(f"{key} is damaged: its numbers do not fit one another")
        return parsed
