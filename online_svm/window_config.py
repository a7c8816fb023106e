"""Settings of the windowed figures, which `PredictorConfig` inherits."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

SliceName = Annotated[str, Field(min_length=1, max_length=64)]

MOST_NAMES = 16
"""Names of slices: each costs a pass over the window at every report."""


class WindowConfig(BaseModel):
    """What validity reports say of the most recent scored examples.

    Examples
    --------
    >>> WindowConfig().metrics_window, WindowConfig(slices=("country",)).slices
    (1000, ('country',))
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    metrics_window: Annotated[int, Field(ge=10, le=100_000)] | None = Field(
        1000,
        description="Scored examples that the windowed figures of a report run over; none: a "
        "report has no such figures.",
    )
    slices: tuple[SliceName, ...] = Field(
        (),
        description="Names of the text values of `s`, such as country, for each of which the "
        "windowed figures are also given: the first 20 values that come, and all others together. "
        "They are no features.",
    )

    @model_validator(mode="after")
    def _valid_slices(self) -> Self:
        """Refuse names of slices that cannot work, and say why."""
        if len(set(self.slices)) != len(self.slices):
            raise ValueError("slices: a name is given twice")
        if len(self.slices) > MOST_NAMES:
            raise ValueError(f"slices: {len(self.slices)} names, the limit is {MOST_NAMES}")
        if self.slices and self.metrics_window is None:
            raise ValueError("slices: their figures are windowed; set metrics_window")
        return self
