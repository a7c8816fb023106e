"""Settings of the machine that scores, which `PredictorConfig` inherits."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MemberName = Literal["rbf", "rbf-wide", "rbf-narrow", "cauchy", "logistic"]
Label = Annotated[str, Field(min_length=1, max_length=256)]


class MachineConfig(BaseModel):
    """Which machine is fitted, with which kernel and penalty, on features scaled how.

    Examples
    --------
    >>> MachineConfig().kernel, MachineConfig(gamma=0.5).gamma
    ('rbf', 0.5)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    learner: Literal["svc", "psvm"] = Field(
        "svc",
        description="The machine that scores: the ordinary SVM, or the P-SVM, which also learns "
        "from probabilities.",
    )
    committee: Literal["single", "default"] | tuple[MemberName, ...] | None = Field(
        None,
        description="One machine, or several unlike ones, weighed by what they said of training "
        "examples before they learned them: 'default' or their names. Default: "
        "'default' where learner = 'svc', split = 'interleaved' and kernel = 'rbf', else 'single'.",
    )
    kernel: Literal["rbf", "linear", "poly"] = Field("rbf", description="Kernel function.")
    C: float = Field(1.0, gt=0, le=1e6, description="Penalty of a margin violation.")
    C_prob: float = Field(
        1.0, gt=0, le=1e6, description="Penalty of leaving the tube of a probability (psvm)."
    )
    eta: float = Field(
        0.1, ge=1e-6, le=0.499, description="Half the height of that tube; f = 1 means 1 - eta."
    )
    gamma: float | Literal["scale"] = Field(
        "scale", description="Kernel width; 'scale' is 1 / (n_features * variance of T)."
    )
    class_weight: (
        dict[Label, Annotated[float, Field(ge=1e-6, le=1e6)]] | Literal["balanced"] | None
    ) = Field(None, description="Multiplies C for a class.")

    scale: Literal["standard", "none"] = Field(
        "standard", description="Scaling of the features, fitted on the proper training set."
    )

    @model_validator(mode="after")
    def _valid_width(self) -> Self:
        """Refuse a width of the kernel that cannot work."""
        if not isinstance(self.gamma, str) and not 1e-300 <= self.gamma <= 1e12:
            raise ValueError("gamma: must be positive, or 'scale'; at most 1e12, at least 1e-300")
        return self
