"""Settings of the monitors: what they look for, and how seldom they may be wrong."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class MonitorConfig(BaseModel):
    """Settings of `MonitorSet`.

    Examples
    --------
    >>> MonitorConfig().tolerance, MonitorConfig(monitors="off").monitors
    (0.02, 'off')
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    monitors: Literal["default", "off"] = Field(
        "default", description="Sequential tests of the announced probabilities and the examples."
    )
    tolerance: float = Field(
        0.02,
        gt=0,
        lt=0.5,
        description="A probability may be off by so much on average before a monitor says so.",
    )
    alarm_level: float = Field(
        0.01,
        ge=1e-9,
        le=0.5,
        description="Probability that any monitor ever raises a false alarm.",
    )
    monitor_every: int = Field(
        10_000,
        ge=100,
        description="Scored examples for which the exchangeability tests keep the scorer that "
        "they compare with.",
    )
