"""WindowedReport: figures of the most recent scored examples, in a validity report.

Each field says here what it means: the page of messages is made from these classes.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from online_svm.stream.answer_columns import STRICT, Count, Probability

_Z = "in standard deviations, if each probability is right. Descriptive."
_PARTS = {
    "miscalibration": "What isotonic recalibration would save. `brier` = `miscalibration` - "
    "`discrimination` + `uncertainty`.",
    "discrimination": "What it then saves against the constant frequency.",
    "uncertainty": "Score of that constant.",
}

_Positive = Annotated[float, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One of at most ten bins of equal mass, by ascending probability."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    count: Annotated[int, Field(ge=1, description="Its examples.")]
    probability: Annotated[Probability, Field(description="Mean of what was said.")]
    frequency: Annotated[
        Probability, Field(description="Share of its examples where the event happened.")
    ]
    lower: Annotated[
        Probability,
        Field(
            description="Lower end of the band that holds the share nine times of ten if the "
            "probabilities are right."
        ),
    ]
    upper: Annotated[Probability, Field(description="Its upper end.")]


@dataclass(frozen=True, slots=True)
class WindowScores:
    """Scores of the headline over some examples; without any, all but the count are null."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    scored: Annotated[Count, Field(description="The examples.")]
    accuracy: Annotated[
        Probability | None, Field(description="Share whose predicted label was right.")
    ]
    lower: Annotated[Probability | None, Field(description="Mean lower end announced for it.")]
    probability: Annotated[
        Probability | None, Field(description="Mean probability announced for it.")
    ]
    upper: Annotated[Probability | None, Field(description="Mean upper end announced for it.")]
    z: Annotated[float | None, Field(description=f"`accuracy` less `probability`, {_Z}")]
    log_loss: Annotated[
        float | None, Field(description="Mean of -ln p(true label), p clipped at 1e-6.")
    ]
    brier: Annotated[
        float | None,
        Field(
            description="Brier score: (p - y)^2 for two declared classes, else its sum over all."
        ),
    ]
    miscalibration: Annotated[float | None, Field(description=_PARTS["miscalibration"])]
    discrimination: Annotated[float | None, Field(description=_PARTS["discrimination"])]
    uncertainty: Annotated[float | None, Field(description=_PARTS["uncertainty"])]
    calibration_error: Annotated[
        float | None,
        Field(
            description="Root mean squared difference of frequency and probability in 15 bins, "
            "without what chance adds. Of two classes the last, else the predicted "
            "label."
        ),
    ]


@dataclass(frozen=True, slots=True)
class WeightedScores:
    """The same scores, the last example with weight 1, each one before it with a little less."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    weight: Annotated[
        _Positive,
        Field(description="Sum of the weights."),
    ]
    accuracy: Annotated[
        Probability | None, Field(description="As in `WindowScores`, as all below.")
    ]
    lower: Annotated[Probability | None, Field(description="Mean lower end.")]
    probability: Annotated[Probability | None, Field(description="Mean probability.")]
    upper: Annotated[Probability | None, Field(description="Mean upper end.")]
    log_loss: Annotated[float | None, Field(description="Mean log loss.")]
    brier: Annotated[float | None, Field(description="Mean Brier score.")]


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """How one class came about, beside how probable it was said to be."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    label: Annotated[str | None, Field(description="The class; null: unseen labels.")]
    examples: Annotated[Count, Field(description="Those with this label.")]
    frequency: Annotated[Probability, Field(description="Their share.")]
    probability: Annotated[_Positive, Field(description="Mean probability of the class.")]
    z: Annotated[float | None, Field(description=f"`frequency` less `probability`, {_Z}")]
    brier: Annotated[_Positive, Field(description="Brier score of that probability.")]
    miscalibration: Annotated[_Positive, Field(description="Of this class.")]
    discrimination: Annotated[_Positive, Field(description="Of this class.")]
    uncertainty: Annotated[_Positive, Field(description="Of this class.")]
    calibration_error: Annotated[float | None, Field(description="Of this class.")]
    predicted: Annotated[Count, Field(description="Examples for which it was predicted.")]
    accuracy: Annotated[Probability | None, Field(description="Share of these that are right.")]
    announced: Annotated[float | None, Field(description="Mean probability of these.")]


@dataclass(frozen=True, slots=True)
class SliceScores:
    """Scores of the examples of one slice."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    value: Annotated[
        str | None,
        Field(description="The value; null: all after the first 20."),
    ]
    scores: Annotated[WindowScores, Field(description="Their scores.")]


@dataclass(frozen=True, slots=True)
class Descriptive:
    """Statistics of a moving window, looked at again and again: no tests.

    They are of the same event as `calibration_error`.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    spiegelhalter_z: Annotated[
        float | None,
        Field(
            description="Excess of the Brier score, in standard deviations; positive where "
            "probabilities are too extreme."
        ),
    ]
    kolmogorov_smirnov: Annotated[
        _Positive,
        Field(
            description="Greatest |sum of y - p| up to some probability, over the number of "
            "examples."
        ),
    ]
    kuiper: Annotated[
        _Positive,
        Field(description="The same between any two probabilities."),
    ]
    integrated_calibration_index: Annotated[
        _Positive,
        Field(description="Mean of |p - r|, r the isotonic regression of y on p."),
    ]


@dataclass(frozen=True, slots=True)
class WindowedReport:
    """Figures of the headline over the last scored examples."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    window: Annotated[
        int,
        Field(ge=1, description="`metrics_window`."),
    ]
    overall: Annotated[WindowScores, Field(description="Over the window.")]
    weighted: Annotated[
        WeightedScores, Field(description="Exponentially weighted over all examples.")
    ]
    reliability: Annotated[
        list[ReliabilityBin],
        Field(description="A reliability diagram."),
    ]
    classes: Annotated[
        list[ClassFigures],
        Field(description="Each class; of more than 32 those with the greatest |`z`|."),
    ]
    slices: Annotated[
        dict[str, list[SliceScores]],
        Field(description="The values of each slice in the window."),
    ]
    descriptive: Annotated[Descriptive | None, Field(description="Null without an example.")]
