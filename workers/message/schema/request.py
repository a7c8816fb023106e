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
        description="Names the key of the answer, `osvm:{F}:ans:<id>`. Without a readable id "
        "that is the entry ID. A repeated id gets the first answer while that is "
        "kept.",
    )


class ReplyMessage(Message):
    """The one element of the list `ans:<id>`, which goes after a while (`scorer --keep`)."""

    v: Literal[2] = Field(2, description="Version of the schema.")
    state: str | None = Field(
        description="The published state: its n and eight digits of its checksum."
    )
    behind: int | None = Field(ge=0, description="Examples learned since that state.")
    age: int | None = Field(ge=0, description="Milliseconds since it was published.")
    answer: dict[str, Any] = Field(
        description="An answer as in `out`, `RejectedMessage` or `UnavailableMessage`. `seq` "
        "and `n` are those of the state."
    )


class UnavailableMessage(Message):
    """Answer to a request that no state can answer now. Ask again later, under a new id."""

    v: Literal[2] = Field(2, description="Version of the schema.")
    status: Literal["unavailable"] = Field("unavailable", description="Always `unavailable`.")
    id: str | None = Field(None, description="The request's id, if it could be read.")
    code: Literal["no_state", "stale", "failed", "late"] = Field(
        description="[Why](#codes-of-requests)."
    )
    reason: str = Field(description="The same for a person.")
