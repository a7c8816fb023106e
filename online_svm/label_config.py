"""Settings of late labels: how long the label of an example may take, and when it is learned."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class LabelConfig(BaseModel):
    """Settings of `LateLabels`.

    Examples
    --------
    >>> LabelConfig().takes_late_labels, LabelConfig(horizon=500).takes_late_labels
    (False, True)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    horizon: int = Field(
        0,
        ge=0,
        le=10**12,
        description="How long the label of an example may take: so many further examples, or "
        "milliseconds. 0: a label comes with its example.",
    )
    horizon_in: Literal["examples", "time"] = Field(
        "examples",
        description="What the horizon counts: accepted examples, or milliseconds of the field "
        "`time`, which each example then has.",
    )
    maturity: Literal["horizon", "arrival"] = Field(
        "horizon",
        description="When an example is scored and learned: when its horizon has passed, whether "
        "its label came early or late; or when its label comes, which favours what is labelled "
        "soon.",
    )
    max_pending: int = Field(
        100_000,
        ge=1,
        le=10_000_000,
        description="Answered examples that wait to be learned; beyond it the oldest is learned "
        "if its label is there, else given up and counted. As many ids of learned ones are "
        "remembered, to correct their labels.",
    )

    given_answers: bool = Field(
        False,
        description="Whether an example may carry `a`, an answer that was given before its label "
        "came: that one is scored, in place of the worker's own.",
    )

    @property
    def takes_late_labels(self) -> bool:
        """Whether a label may come after its example."""
        return self.horizon > 0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Refuse combinations that cannot work, and say why."""
        self._check_labels()
        return self

    def _check_labels(self) -> None:
        if self.given_answers and self.takes_late_labels:
            raise ValueError(
                "given_answers: with a horizon the answer that the feed gave is scored; set one of "
                "the two"
            )
        if not self.takes_late_labels:
            for name, wanted in (("horizon_in", "examples"), ("maturity", "horizon")):
                if getattr(self, name) != wanted:
                    raise ValueError(
                        f"{name}: {getattr(self, name)!r} needs a horizon; set horizon to how long "
                        "a label may take"
                    )
        elif self.horizon_in == "examples" and self.horizon > self.max_pending:
            raise ValueError(
                f"horizon: {self.horizon} examples would wait, more than max_pending = "
                f"{self.max_pending}; raise that too"
            )
