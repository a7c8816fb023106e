"""Settings of what a feed keeps in Redis. They change no answer, so each start may have others."""

from typing import Literal

from pydantic import BaseModel, Field

MiB = 1 << 20

Policy = Literal["trim", "block"]


class RetentionSettings(BaseModel):
    """What is kept of input and answers; see docs/operate.md.

    Examples
    --------
    >>> RetentionSettings(retain_bytes=1 << 20).retain_bytes
    1048576
    """

    keep_input: bool = Field(
        False,
        description="Keep all input, for fork and verify; else snapshots trim what is "
        "older than the window.",
    )
    retain_out: int = Field(1_000_000, ge=1, description="Entries kept in `out`, at most, about.")
    retain_bytes: int = Field(
        64 * MiB,
        ge=1024,
        description="Bytes kept in `out`, at most, about; and a quarter as many in `met` and in "
        "`dlq`.",
    )
    downstream: Policy = Field(
        "trim",
        description="Answers beyond what is kept: `trim` them, or `block` the feed until the "
        "consumer group `downstream` of `out` has acknowledged them.",
    )
