"""How much of each output stream is kept: by bytes, by entries, or both."""

from dataclasses import dataclass
from typing import ClassVar

from workers.config.retention_settings import RetentionSettings
from workers.feed.kept_bytes import Bounds

_DEFAULT = RetentionSettings()

ENTRIES = (_DEFAULT.retain_out, _DEFAULT.retain_met, _DEFAULT.retain_alarms, _DEFAULT.retain_dlq)
"""Entries of `out`, `met`, `alarms` and `dlq` that are kept where their bytes have no bound."""

BYTES = Bounds(
    out=_DEFAULT.retain_out_bytes,
    met=_DEFAULT.retain_met_bytes,
    alarms=0,
    dlq=_DEFAULT.retain_dlq_bytes,
)
"""Bytes that are kept where nothing was told of a stream."""


@dataclass(frozen=True, slots=True)
class RetentionBounds:
    """The bounds in force, of `out`, `met`, `alarms` and `dlq`; 0 bounds none."""

    entries: tuple[int, int, int, int]
    bytes: Bounds


@dataclass(frozen=True, slots=True)
class Retention:
    """What a worker was told to keep; None where it was told nothing.

    Attributes
    ----------
    out, met, alarms, dlq : int or None
        Entries of each stream, about; 0 bounds none.
    out_bytes, met_bytes, dlq_bytes : int or None
        Bytes of each stream, about; 0 bounds none.
    is_held : bool
        Whether commits trim nothing of answers, reports and alarms, since a consumer has to
        acknowledge answers first.
    """

    TOLD: ClassVar = ("out", "met", "alarms", "dlq", "out_bytes", "met_bytes", "dlq_bytes")

    out: int | None = None
    met: int | None = None
    alarms: int | None = None
    dlq: int | None = None
    out_bytes: int | None = None
    met_bytes: int | None = None
    dlq_bytes: int | None = None
    is_held: bool = False

    @property
    def bounds(self) -> RetentionBounds:
        """The bounds in force.

        A number of entries alone is a bound of entries alone. Where bytes have a bound, entries
        have none unless it was given.

        Examples
        --------
        >>> Retention().bounds.entries, Retention().bounds.bytes.out
        ((0, 0, 100000, 0), 67108864)
        >>> Retention(out=500).bounds.entries[0], Retention(out=500).bounds.bytes.out
        (500, 0)
        >>> Retention(out_bytes=0).bounds.entries[0]
        1000000
        """
        told = (self.out, self.met, self.alarms, self.dlq)
        told_bytes = (self.out_bytes, self.met_bytes, None, self.dlq_bytes)
        of_bytes = [
            size if size is not None else 0 if entries is not None else own
            for entries, size, own in zip(told, told_bytes, BYTES, strict=True)
        ]
        out, met, alarms, dlq = (
            entries if entries is not None else 0 if size else default
            for entries, size, default in zip(told, of_bytes, ENTRIES, strict=True)
        )
        return RetentionBounds((out, met, alarms, dlq), Bounds(*of_bytes))
