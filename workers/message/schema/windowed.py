"""The schema of the windowed part of a validity report."""

from pydantic import BaseModel, ConfigDict, Field

from online_svm.stream.answer_columns import Count, Probability

_Z = (
    "in standard deviations that it has by chance if each probability is right; null where that is "
    "zero. Descriptive: it is looked at again and again."
)
_PARTS = {
    "miscalibration": "Part of `brier` that isotonic recalibration would save (CORP; Dimitriadis, "
    "Gneiting & Jordan 2021). By chance alone it is positive too. "
    "`brier` = `miscalibration` - `discrimination` + `uncertainty`.",
    "discrimination": "What the recalibrated probabilities save against the constant frequency.",
    "uncertainty": "The score of that constant.",
}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Scores(_Part):
    """Scores of the headline over some examples; without any, all but the count are null."""

    scored: Count = Field(description="The examples.")
    accuracy: Probability | None = Field(description="Share whose predicted label was right.")
    lower: Probability | None = Field(description="Mean lower end announced for that label.")
    probability: Probability | None = Field(description="Mean probability announced for it.")
    upper: Probability | None = Field(description="Mean upper end announced for it.")
    z: float | None = Field(description=f"`accuracy` less `probability`, {_Z}")
    log_loss: float | None = Field(description="Mean of -ln p(true label), p clipped at 1e-6.")
    brier: float | None = Field(
        description="Mean Brier score: (p - y)^2 for two declared classes, else its sum over all."
    )
    miscalibration: float | None = Field(description=_PARTS["miscalibration"])
    discrimination: float | None = Field(description=_PARTS["discrimination"])
    uncertainty: float | None = Field(description=_PARTS["uncertainty"])
    calibration_error: float | None = Field(
        description="Root mean squared difference of frequency and probability in 15 equal-mass "
        "bins, without what chance adds; 0 where that leaves less than nothing. Of the probability "
        "of the last of two classes, or of the predicted label where there are more. Null for a "
        "single example."
    )


class WeightedScores(_Part):
    """The same scores, the last example with weight 1, each one before it with a little less."""

    weight: float = Field(
        ge=0, description="Sum of the weights; it approaches (`window` + 1) / 2, half the window."
    )
    accuracy: Probability | None = Field(description="As in `Scores`; so are all below.")
    lower: Probability | None = Field(description="Mean lower end.")
    probability: Probability | None = Field(description="Mean probability.")
    upper: Probability | None = Field(description="Mean upper end.")
    log_loss: float | None = Field(description="Mean log loss.")
    brier: float | None = Field(description="Mean Brier score.")


class ReliabilityBin(_Part):
    """One of at most ten bins of equal mass, by ascending probability."""

    count: int = Field(ge=1, description="Its examples.")
    probability: Probability = Field(description="Mean of what was said.")
    frequency: Probability = Field(description="Share of its examples where the event happened.")
    lower: Probability = Field(
        description="Lower end of the consistency band: where the share lies nine times of ten if "
        "the probabilities are right. Quantiles of the binomial distribution."
    )
    upper: Probability = Field(description="Its upper end.")


class ClassFigures(_Part):
    """How one class came about, beside how probable it was said to be."""

    label: str | None = Field(description="The class; null is the slot of labels not seen yet.")
    examples: Count = Field(description="Those of the window with this label.")
    frequency: Probability = Field(description="Their share.")
    probability: float = Field(ge=0, description="Mean probability announced for the class.")
    z: float | None = Field(description=f"`frequency` less `probability`, {_Z}")
    brier: float = Field(ge=0, description="Brier score of that probability.")
    miscalibration: float = Field(ge=0, description="As in `Scores`, for this class.")
    discrimination: float = Field(ge=0, description="As in `Scores`, for this class.")
    uncertainty: float = Field(ge=0, description="As in `Scores`, for this class.")
    calibration_error: float | None = Field(description="As in `Scores`, for this class.")
    predicted: Count = Field(description="Examples for which the class was predicted.")
    accuracy: Probability | None = Field(description="Share of these that are right.")
    announced: float | None = Field(description="Mean probability announced for these.")


class SliceScores(_Part):
    """Scores of the examples of one slice."""

    value: str | None = Field(
        description="The value they share; null for all values after the first 20."
    )
    scores: Scores = Field(description="Their scores.")


class Descriptive(_Part):
    """Statistics of a moving window, looked at again and again: no tests.

    They are of the same event as `calibration_error`.
    """

    spiegelhalter_z: float | None = Field(
        description="Excess of the Brier score over what it is on average if the probabilities are "
        "right, in standard deviations. Positive where they are too extreme."
    )
    kolmogorov_smirnov: float = Field(
        ge=0,
        description="Greatest |sum of y - p| over the examples up to some probability, over their "
        "number.",
    )
    kuiper: float = Field(
        ge=0, description="The same between any two probabilities: finds deviations that cancel."
    )
    integrated_calibration_index: float = Field(
        ge=0, description="Mean of |p - r|, where r is the isotonic regression of y on p."
    )


class Windowed(_Part):
    """Figures of the headline over the last scored examples."""

    window: int = Field(ge=1, description="`metrics_window`: examples that the window may hold.")
    overall: Scores = Field(description="Over the window.")
    weighted: WeightedScores = Field(description="Exponentially weighted over all examples.")
    reliability: list[ReliabilityBin] = Field(
        description="A reliability diagram of the same event as `calibration_error`."
    )
    classes: list[ClassFigures] = Field(
        description="Each class, sorted; of more than 32 those with the greatest |`z`|."
    )
    slices: dict[str, list[SliceScores]] = Field(
        description="Of each slice, by name: the values that examples of the window have, in the "
        "order in which they were met."
    )
    descriptive: Descriptive | None = Field(description="Null without an example.")


WINDOWED: tuple[type[BaseModel], ...] = (
    Windowed,
    Scores,
    WeightedScores,
    ReliabilityBin,
    ClassFigures,
    SliceScores,
    Descriptive,
)
