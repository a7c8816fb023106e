"""Settings of late labels: how long the label of an example may take, and when it is learned."""

import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
"""Milliseconds of the units of a horizon in time, the longest first."""

LONGEST = 10**12
"""Largest horizon, in examples or milliseconds."""

_TIME = re.compile("([0-9]{1,13}) ?(ms|[smhd])")


def _plain(value: object) -> object:
    """Return a horizon in its one form: a number of examples, or a time in the longest unit."""
    if not isinstance(value, str):
        return value
    if value.isascii() and value.isdigit():
        return int(value[:20])
    found = _TIME.fullmatch(value)
    length = int(found[1]) * UNITS[found[2]] if found else 0
    if not 0 < length <= LONGEST:
        raise ValueError(
            'must be a number of examples, as 500, or a time above zero in s, m, h or d, as "30m"'
        )
    unit = next(unit for unit, size in UNITS.items() if length % size == 0)
    return f"{length // UNITS[unit]}{unit}"


Horizon = Annotated[Annotated[int, Field(ge=0, le=LONGEST)] | str, BeforeValidator(_plain)]


class LabelConfig(BaseModel):
    """Settings of `LateLabels`.

    Examples
    --------
    >>> LabelConfig().takes_late_labels, LabelConfig(horizon=500).takes_late_labels
    (False, True)
    >>> config = LabelConfig(horizon="90s")
    >>> config.counts_time, config.horizon_length
    (True, 90000)
    >>> LabelConfig(horizon="1440m").horizon  # equal times are equal settings
    '1d'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    horizon: Horizon = Field(
        0,
        description="How long the label of an example may take: so many further accepted examples, "
        "as 500, or a time (s, m, h, d), as 30m, by the field `time`, which each example then has. "
        "0: a label comes with its example.",
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
        return self.horizon != 0

    @property
    def counts_time(self) -> bool:
        """Whether the horizon is a time, and not a number of examples."""
        return isinstance(self.horizon, str)

    @property
    def horizon_length(self) -> int:
        """The horizon in accepted examples, or in milliseconds where it is a time."""
        if isinstance(self.horizon, int):
            return self.horizon
        found = _TIME.fullmatch(self.horizon)
        assert found is not None
        return int(found[1]) * UNITS[found[2]]

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
        if not self.takes_late_labels and self.maturity != "horizon":
            raise ValueError(
                f"maturity: {self.maturity!r} needs a horizon; set horizon to how long a label may "
                "take"
            )
        if not self.counts_time and self.horizon_length > self.max_pending:
            raise ValueError(
                f"horizon: {self.horizon} examples would wait, more than max_pending = "
                f"{self.max_pending}; raise that too"
            )
