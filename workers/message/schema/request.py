"""The schema of requests to scorers, and of their answers."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from workers.message.schema.base import Message


class RequestEntry(BaseModel):
    """An entry of `req`: an example without a label, for a scorer. Any other field is rejected."""

    model_config = ConfigDict(extra="forbid")

    x: str | None = Field(None, description="Features, as in `in`.")
    xb: bytes | None = Field(None, description="Features as raw floats, as in `in`.")
    id: str | None = Field(
        None,
        description="Names the key of the answer, `osvm:{F}:ans:<id>`. No two requests may have "
        "the same while an answer is kept: the second gets the answer of the first. Without an id, "
        "or with one that cannot be read, the key is named by the ID of the entry.",
    )


class ReplyMessage(Message):
    """The one element of the list `ans:<id>`, which goes after a while (`scorer --keep`)."""

    v: Literal[2] = Field(2, description="Version of this schema.")
    state: str | None = Field(
        description="The published state: its n, and eight digits of its checksum; null without."
    )
    behind: int | None = Field(
        ge=0, description="Examples that the feed had learned since that state, as committed."
    )
    age: int | None = Field(ge=0, description="Milliseconds since the state was published.")
    answer: dict[str, Any] = Field(
        description="An answer as in `out`, in the form that the feed's `payload` names, or "
        "`RejectedMessage`: byte for byte what the worker itself would answer to an entry that "
        "comes next after the state, without a label (its `seq` and `n` are those of the state). "
        "Or `UnavailableMessage`."
    )


class UnavailableMessage(Message):
    """Answer to a request that no state can answer now. Ask again later, under a new id."""

    v: Literal[2] = Field(2, description="Version of this schema.")
    status: Literal["unavailable"] = Field("unavailable", description="Always `unavailable`.")
    id: str | None = Field(None, description="The request's id, if it could be read.")
    code: Literal["no_state", "stale", "failed", "late"] = Field(
        description="Why; see the table of codes of requests."
    )
    reason: str = Field(description="The same for a person.")
