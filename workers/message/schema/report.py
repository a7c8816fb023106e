"""The schema of validity reports: what stands in `met`."""

from typing import Literal

from pydantic import Field

from online_svm.stream.answer_columns import Probability
from workers.message.schema.alarms import MonitorsMessage
from workers.message.schema.base import Message
from workers.message.schema.late_labels import LateLabelsMessage
from workers.message.schema.windowed import Windowed


class LabelValidity(Message):
    """One choice of label: its accuracy against the probability it was given."""

    accuracy: Probability | None = Field(description="Share of examples with this label right.")
    lower: Probability | None = Field(description="Mean lower probability; null for a map.")
    probability: Probability | None = Field(description="Mean point probability.")
    upper: Probability | None = Field(description="Mean upper probability; null for a map.")
    paper_p: Probability | None = Field(
        description="The papers' two-sided p-value of the number of hits. Descriptive only: it "
        "looks fine under drift and is never the alarm."
    )


class MethodValidity(Message):
    """Cumulative validity of one method."""

    predicted: LabelValidity = Field(
        description="For the label the method itself predicts, the one with the largest "
        "probability."
    )
    svm: LabelValidity = Field(description="For the SVM's own class, which no calibration chose.")
    log_loss: float | None = Field(description="Mean of -ln p(true label), p clipped at 1e-6.")
    brier: float | None = Field(
        description="Mean Brier score: (p - y)^2 for two declared classes, else its sum over all."
    )
    clipped: int = Field(ge=0, description="Examples whose p(true label) was clipped.")


class MetricsMessage(Message):
    """Validity, in `met`: cumulative, and recent. Every `metrics_every` learned examples.

    Its entry ID is the ID of the last input entry it covers.
    """

    v: Literal[2] = Field(2, description="Version of this schema.")
    n: int = Field(ge=0, description="Learned examples.")
    seq: int = Field(ge=0, description="`seq` of the last input entry it covers.")
    scored: int = Field(
        ge=0, description="Labelled examples answered after warm-up: what the means run over."
    )
    headline: MethodValidity = Field(
        description="What an answer puts first: `probabilities` and `intervals`."
    )
    venn: MethodValidity = Field(
        description="The Venn predictor: the mean over its multiprobability, and `venn`."
    )
    maps: dict[str, MethodValidity] = Field(description="Each published map.")
    windowed: Windowed | None = Field(
        None,
        description="The headline over the last scored examples. Only if `metrics_window` is set.",
    )
    monitors: MonitorsMessage | None = Field(
        None, description="Where the monitors stand; absent where they are off."
    )
    labels: LateLabelsMessage | None = Field(
        None, description="What became of late labels. Only if `horizon` is set."
    )
