"""The schema of what a validity report says of late labels."""

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class LabelCountsMessage(_Part):
    """Since the feed began, but for the first two, which are of now."""

    pending: int = Field(ge=0, description="Answered examples that wait to be learned.")
    unlabelled: int = Field(ge=0, description="Those of them whose label has not come.")
    late: int = Field(ge=0, description="Labels that came after their example, and were taken.")
    repeated: int = Field(ge=0, description="Labels that were sent again.")
    corrected: int = Field(ge=0, description="Labels that replaced another one.")
    censored: int = Field(ge=0, description="Examples whose horizon passed without a label.")
    dropped: int = Field(ge=0, description="Examples given up because `max_pending` others waited.")
    early: int = Field(
        ge=0,
        description="Examples whose label came before them, and was rejected: of the last "
        "1,000 such labels.",
    )
    backwards: int = Field(
        ge=0, description="Examples whose `time` was before that of an example before them."
    )


class MeanBounds(_Part):
    """What a mean may yet become when all labels that are out have come."""

    lower: float = Field(description="The least it can become.")
    estimate: float = Field(
        description="What it becomes on average if the announced probabilities are right: an "
        "estimate that assumes what it should show."
    )
    upper: float = Field(description="The most it can become.")


class LateLabelsMessage(_Part):
    """What became of labels that come late."""

    counts: LabelCountsMessage = Field(description="Examples and labels, counted.")
    open: int = Field(ge=0, description="Answers of a model whose label has not come.")
    accuracy: MeanBounds | None = Field(
        description="Of the predicted label, over the scored and the open answers: all open ones "
        "wrong, or all right."
    )
    brier: MeanBounds | None = Field(description="The Brier score of the headline, likewise.")


LATE_LABELS: tuple[type[BaseModel], ...] = (LateLabelsMessage, LabelCountsMessage, MeanBounds)
