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
        description="Probability that any monitor ever raises a false alarm, where labels come "
        "with their examples.",
    )
    on_drift: Literal["report", "refit", "reset"] = Field(
        "report",
        description="What follows an alarm of calibration or exchangeability: nothing but a "
        "message; refits from later examples alone, the first after 10 of them; or that and no "
        "answers of the model of before. Of the changes within 1,000 learned examples it acts on "
        "two; all alarms within 50 examples are one change.",
    )
