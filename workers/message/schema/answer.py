"""The schema of answers: what stands in `out`, but for combinations."""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field, create_model

from online_svm.stream.answer_columns import COLUMNS, Column, Status
from online_svm.stream.label_counts import Done
from workers.message.schema.base import OPTIONAL, Message


class AnswerHead(Message):
    """What the service puts in front of the columns of a prediction."""

    v: Literal[2] = Field(2, description="Version of the schema.")
    status: Status = Field(
        description="`warming` until two classes were in the training set: label, probability"
        " and category are null, lists empty."
    )
    id: str | None = Field(None, description="The producer's id, only if it sent one.")
    seq: int = Field(ge=0, description="Input entries before this one.")


def fields_of(columns: Iterable[Column]) -> dict[str, Any]:
    """Return columns as the fields of a model; an optional one may be absent."""
    return {
        column.name: (
            column.type,
            Field(None if column.name in OPTIONAL else ..., description=column.description),
        )
        for column in columns
    }


PredictionMessage = create_model(
    "PredictionMessage",
    __base__=AnswerHead,
    __doc__="Answer to one accepted example, in `out`; its entry ID is the ID of the input entry.",
    **fields_of(COLUMNS),
)


class CompactMessage(Message):
    """The same answer in the compact form, in `out` of a feed with `payload = "compact"`.

    Only such an answer has `c`. While warming up, and for any other entry, messages are those of
    the full form. `workers.message.compact.decode.parse` returns the fields of a full answer.
    """

    v: Literal[2] = Field(2, description="Version of the schema.")
    id: str | None = Field(None, description="The producer's id, only if it sent one.")
    seq: int = Field(ge=0, description="Input entries before this one.")
    imputed: int | None = Field(None, ge=0, description="As in a full answer.")
    c: list[Any] = Field(description="The values below, in their order.")
    action: str | None = Field(None, description="As in a full answer.")
    expected_cost: float | None = Field(None, description="As in a full answer.")


class RejectedMessage(Message):
    """Answer to one input entry that could not be used, in `out`. It changed nothing else."""

    v: Literal[2] = Field(2, description="Version of the schema.")
    status: Literal["rejected"] = Field("rejected", description="Always `rejected`.")
    id: str | None = Field(None, description="The producer's id, if it could be read.")
    seq: int = Field(ge=0, description="Input entries before this one.")
    n: int = Field(ge=0, description="Examples learned before this entry.")
    code: str = Field(description="[Reason code](#reason-codes).")
    reason: str = Field(description="What was wrong, for a person.")


class DuplicateMessage(Message):
    """Answer to one entry whose id was answered recently, in `out`. It was not learned again.

    Only if `dedupe_window` is set. The window holds the ids of the last `dedupe_window` answered
    examples that carried an id. Rejected entries are not in it, so they may be sent again.
    """

    v: Literal[2] = Field(2, description="Version of the schema.")
    status: Literal["duplicate"] = Field("duplicate", description="Always `duplicate`.")
    id: str = Field(description="The producer's id.")
    seq: int = Field(ge=0, description="Input entries before this one.")
    n: int = Field(ge=0, description="Examples learned before this entry.")
    first: int = Field(ge=0, description="`seq` of the answer that the id got.")


class LabelMessage(Message):
    """Answer to one label entry, in `out`. A label that could not be used is answered `rejected`.

    Only if `horizon` is set. An example that waits for its label and is sent again with it is
    answered so too.
    """

    v: Literal[2] = Field(2, description="Version of the schema.")
    status: Literal["label"] = Field("label", description="Always `label`.")
    id: str | None = Field(None, description="The entry's own id, only if it has one.")
    seq: int = Field(ge=0, description="Input entries before this one.")
    n: int = Field(ge=0, description="Examples learned before this entry.")
    example: str = Field(description="The id of the example.")
    label: str = Field(description="Its label.")
    done: Done = Field(
        description="`accepted`: it had no label. `repeated`: it had this one. `corrected`: "
        "it had another; the next refit uses this one, and figures stay."
    )
