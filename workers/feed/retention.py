"""Retention of each output stream: so many entries, and so many bytes."""

from dataclasses import dataclass
from typing import Self

from workers.config.retention_settings import RetentionSettings
from workers.feed.kept_bytes import Bounds

DOWNSTREAM = "downstream"
"""Consumer group of `out` that the policy `block` waits for."""

_DEFAULT = RetentionSettings()

_BESIDE = 4
"""`met`, and `dlq`, have this part of the bytes of `out`."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept of the output streams, about; 0 bounds none.

    Both bounds of a stream hold: the one that is reached first trims it.

    Attributes
    ----------
    out, met, alarms, dlq : int
        Entries of each stream.
    out_bytes, met_bytes, dlq_bytes : int
        Bytes of each stream.
    is_held : bool
        Whether commits trim nothing of answers, reports and alarms, since a consumer has to
        acknowledge answers first.
    """

    out: int = _DEFAULT.retain_out
    met: int = 100_000
    alarms: int = 100_000
    dlq: int = 1_000_000
    out_bytes: int = _DEFAULT.retain_bytes
    met_bytes: int = _DEFAULT.retain_bytes // _BESIDE
    dlq_bytes: int = _DEFAULT.retain_bytes // _BESIDE
    is_held: bool = False

    @classmethod
    def of(cls, settings: RetentionSettings) -> Self:
        """Return what these settings keep.

        Examples
        --------
        >>> kept = Retention.of(RetentionSettings(retain_out=500, retain_bytes=4096))
        >>> kept.entries, kept.bytes.met
        ((500, 100000, 100000, 1000000), 1024)
        """
        beside = settings.retain_bytes // _BESIDE
        return cls(
            out=settings.retain_out,
            out_bytes=settings.retain_bytes,
            met_bytes=beside,
            dlq_bytes=beside,
            is_held=settings.downstream == "block",
        )

    @property
    def entries(self) -> tuple[int, int, int, int]:
        """Entries of `out`, `met`, `alarms` and `dlq`."""
        return self.out, self.met, self.alarms, self.dlq

    @property
    def bytes(self) -> Bounds:
        """Bytes of each stream."""
        return Bounds(self.out_bytes, self.met_bytes, 0, self.dlq_bytes)
