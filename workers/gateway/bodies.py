"""The bodies of requests and responses, as the OpenAPI document describes them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, create_model

from workers.gateway.tensors import DATATYPES, MAX_ROWS, OUTPUTS
from workers.message.entry_decode import MAX_ID_CHARS
from workers.message.schema import (
    AlarmsMessage,
    DuplicateMessage,
    LabelMessage,
    PredictionMessage,
)
from workers.reading.verdict import Verdict

Id = Annotated[str, Field(max_length=MAX_ID_CHARS)]
Label = str | bool | int | float

_ENTRY = "ID of the entry that got this answer: an earlier one if the example was sent again."

_BATCH = Field(min_length=1, max_length=MAX_ROWS)


class NewExample(BaseModel):
    """An example, with the fields of an entry of `in`. Without `y` its label may follow."""

    model_config = ConfigDict(extra="forbid")

    x: list[Any] | dict[str, Any] | None = Field(
        None,
        description="Features: an array of numbers, or an object of named values. Needed, unless "
        "there is a score.",
    )
    y: Label | None = Field(None, description="Label.")
    p: float | str | None = Field(None, description="Probability of the second class.")
    id: str | None = Field(None, description="The producer's id; the answer repeats it.")
    s: dict[str, Any] | None = Field(None, description="Values of the feed's slices.")
    time: int | None = Field(None, description="The producer's time in milliseconds.")
    score: float | list[float | None] | dict[str, float | None] | None = Field(
        None, description="Output of another model, in a feed with `scores`."
    )
    score_version: str | int | None = Field(None, description="Version of that model.")


def _as_in_example(name: str) -> Any:
    """Return a field that means the same in `NewExample`."""
    return Field(None, description=NewExample.model_fields[name].description)


class RowToScore(BaseModel):
    """A row to score: an example without a label, time or slices."""

    model_config = ConfigDict(extra="forbid")

    x: list[Any] | dict[str, Any] | None = _as_in_example("x")
    id: str | None = _as_in_example("id")
    score: float | list[float | None] | dict[str, float | None] | None = _as_in_example("score")
    score_version: str | int | None = _as_in_example("score_version")


class LabelOfExample(BaseModel):
    """The label of an earlier example."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="Id of the example.")
    y: Label = Field(description="Its label.")


class Examples(
    RootModel[NewExample | Annotated[list[NewExample], Field(min_length=1, max_length=MAX_ROWS)]]
):
    """An example, or a list of up to 1,000."""


class Labels(RootModel[LabelOfExample | Annotated[list[LabelOfExample], _BATCH]]):
    """A label, or a list of up to 1,000."""


class RejectedRow(BaseModel):
    """The answer to a row that could not be used."""

    v: Literal[2]
    status: Literal["rejected"]
    id: str | None = None
    seq: int = Field(description="Input entries before this one.")
    n: int = Field(description="Examples learned before this entry.")
    code: str = Field(description="Reason code.")
    about: dict[str, Any] | None = Field(None, description="The case and its parameters.")
    reason: str = Field(description="The reason as a sentence.")


class Rejected(RejectedRow):
    """The answer to an example or label that the worker could not use."""

    entry: str = Field(description=_ENTRY)


class Answer(RootModel[PredictionMessage | Rejected | DuplicateMessage | LabelMessage]):
    """What the worker answered, and its entry; see `status`."""

    model_config = ConfigDict(
        json_schema_extra={
            "properties": {"entry": {"type": "string", "description": _ENTRY}},
            "required": ["entry"],
        }
    )


class Answers(RootModel[Answer | list[Answer]]):
    """The answer, or the answers to a list in its order."""


class RowsToScore(
    RootModel[RowToScore | Annotated[list[RowToScore], Field(min_length=1, max_length=100)]]
):
    """A row, or a list of up to 100."""


class ScoresOfRows(BaseModel):
    """Answers by the newest published state; nothing was recorded."""

    n: int = Field(description="Examples learned by the state.")
    state: str = Field(description="Its `n` and eight digits of its checksum.")
    behind: int = Field(description="Examples that the feed has learned since.")
    answers: list[PredictionMessage | RejectedRow] = Field(
        description="The answers in the order of the rows, with the state's `seq` and `n`."
    )


class Waiting(BaseModel):
    """Entries that were added and have no answer yet."""

    ids: list[str] = Field(
        description="IDs of the entries; each answer will be at /feeds/{feed}/answers/{entry}."
    )


class Status(BaseModel):
    """What `online-svm status --json` prints. There are more members."""

    feed: str
    verdict: Verdict
    seq: int | None = Field(description="Entries answered.")
    n: int | None = Field(description="Examples learned.")
    waiting: int | None = Field(description="Entries that wait for the worker.")
    holder: str | None = Field(description="The worker that holds the feed.")
    open_alarms: list[Any]
    notices: list[Any]


class StoredAlarms(AlarmsMessage):
    """The alarms that one entry raised."""

    entry: str = Field(description="ID of the entry.")


class AlarmList(RootModel[list[StoredAlarms]]):
    """The newest alarms, the oldest first."""


class Tensor(BaseModel):
    """A tensor of the Open Inference Protocol."""

    name: str
    shape: list[Annotated[int, Field(gt=0)]] = Field(
        min_length=1, max_length=2, description="Rows, and columns of a matrix."
    )
    datatype: Literal[*DATATYPES]  # type: ignore[valid-type]  # unpacked
    data: list[Any] = Field(description="Values, flat or as rows; null is a gap.")


class OutputName(BaseModel):
    """The name of a wanted output."""

    name: Literal[*(str(one["name"]) for one in OUTPUTS)]  # type: ignore[valid-type]  # unpacked


class InferRequest(BaseModel):
    """Rows to answer: one matrix, or a tensor for each feature."""

    id: Id | None = Field(None, description="Names the rows: `id`, or `id/0`, `id/1` and so on.")
    inputs: list[Tensor] = Field(min_length=1)
    outputs: list[OutputName] | None = Field(None, description="The wanted outputs; all if absent.")


class LabelRequest(BaseModel):
    """Labels of the rows of the request with the same id, as one tensor `label`."""

    id: Id
    inputs: list[Tensor] = Field(min_length=1, max_length=1)


class TensorForm(BaseModel):
    """Name, type and shape of a tensor; -1 stands for any size."""

    name: str
    datatype: str
    shape: list[int]


class OutputTensor(TensorForm):
    """A tensor of a response."""

    data: list[Any]
    parameters: dict[str, Any] | None = None


class InferResponse(BaseModel):
    """Answers as tensors, a value for each row."""

    model_name: str
    id: str | None = None
    outputs: list[OutputTensor]


def _body(model: str, text: str, /, **types: Any) -> type[BaseModel]:
    """Return a model whose fields are all required."""
    fields: dict[str, Any] = {field: (kind, ...) for field, kind in types.items()}
    return create_model(model, __doc__=text, **fields)


Server = _body("Server", "The metadata of the server.", name=str, version=str, extensions=list[str])
Live = _body("Live", "The process runs.", live=bool)
Ready = _body("Ready", "Whether every feed gives probabilities.", ready=bool)
ModelReady = _body("ModelReady", "Whether a feed gives probabilities.", name=str, ready=bool)
Model = _body(
    "Model", "The metadata of a feed.",
    name=str, platform=str, inputs=list[TensorForm], outputs=list[TensorForm],
)  # fmt: skip


class ProblemDetails(BaseModel):
    """Problem details (RFC 9457). The parameters of `detail` are further members."""

    type: str = Field(description="Reference to the problem in `x-problems` of this document.")
    title: str
    status: int
    detail: str = Field(description="What was wrong with which input, and what to do.")
    code: str = Field(description="The problem, for programs.")
    error: str = Field(description="The same as `detail`.")
    ids: list[str] | None = Field(
        None, description="Entries that were added anyway and will be answered."
    )
