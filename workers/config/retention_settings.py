"""Settings of a feed's retention in Redis. They change no answer, so any start may set them."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

MiB = 1 << 20

Policy = Literal["trim", "block"]


class RetentionSettings(BaseModel):
    """Retention of input and answers; see docs/operate.md.

    They are stored with the feed. A worker that is given none of them uses the stored ones.
    """

    model_config = ConfigDict(frozen=True)

    keep_input: bool = Field(
        False,
        description="Keep all input, for fork and verify, until a start has `--no-keep-input`; "
        "else snapshots trim what is older than the window.",
    )
    retain_out: int = Field(
        1_000_000, ge=1, description="Approximate number of entries kept in `out`."
    )
    retain_bytes: int = Field(
        64 * MiB,
        ge=1024,
        description="Approximate bytes kept in `out`; a quarter as many in `met` and in `dlq`.",
    )
    downstream: Policy = Field(
        "trim",
        description="Answers beyond what is kept: trim them, or block the feed until the "
        "consumer group `downstream` of `out` has acknowledged them.",
    )
