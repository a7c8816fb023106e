"""Settings of what a feed keeps in Redis. They change no answer, so each start may have others."""

from typing import Literal

from pydantic import BaseModel, Field

MiB = 1 << 20

Policy = Literal["trim", "block"]


class RetentionSettings(BaseModel):
    """What is kept of input and answers; see docs/bounds.md.

    A number of entries counts where it is given, or where the bytes of that stream have no bound.

    Examples
    --------
    >>> RetentionSettings(retain_out_bytes=1 << 20).retain_out_bytes
    1048576
    """

    keep_input: bool = Field(
        False,
        description="Keep all input, for fork and verify; else snapshots trim what is "
        "older than the window.",
    )
    retain_out: int = Field(1_000_000, ge=1, description="Entries kept in `out`.")
    retain_met: int = Field(100_000, ge=1, description="Entries kept in `met`.")
    retain_alarms: int = Field(100_000, ge=1, description="Entries kept in `alarms`.")
    retain_dlq: int = Field(1_000_000, ge=1, description="Entries kept in `dlq`.")
    retain_out_bytes: int = Field(
        64 * MiB,
        ge=0,
        description="Bytes kept in `out`, about; 0 bounds none. It has to be given to hold beside "
        "retain_out.",
    )
    retain_met_bytes: int = Field(
        16 * MiB, ge=0, description="Bytes kept in `met`, in the same way."
    )
    retain_dlq_bytes: int = Field(
        16 * MiB, ge=0, description="Bytes kept in `dlq`, in the same way."
    )
    downstream: Policy = Field(
        "trim",
        description="Answers beyond what is kept: `trim` them, or `block` the feed until the "
        "downstream group has acknowledged them.",
    )
    downstream_group: str = Field(
        "downstream",
        min_length=1,
        max_length=256,
        description="Consumer group of `out` that `block` waits for.",
    )
