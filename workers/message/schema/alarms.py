"""The schema of alarms, and of where the monitors stand."""

from typing import Any, Literal

from pydantic import Field

from online_svm.stream.alarm import AlarmAction, AlarmKind, AlarmScope
from workers.message.schema.base import Message


class MovedMessage(Message):
    """A feature that moved."""

    feature: str | int = Field(
        description="Its name; its number, from 0 on, where features have no names."
    )
    shift: float = Field(
        description="Mean over some 250 recent examples less that of the examples that they are "
        "compared with, in standard deviations."
    )


class AlarmMessage(Message):
    """One alarm: a sequential test was rejected."""

    n: int = Field(ge=0, description="Examples learned when it was raised, that one included.")
    kind: AlarmKind = Field(
        description="`calibration`: the probabilities are off by more than the tolerance. "
        "`exchangeability`: the examples are not independent draws of one distribution; only this "
        "kind makes the guarantee `none`. `comparison`: one method beats another."
    )
    scope: AlarmScope = Field(description="What the test watched.")
    name: str | None = Field(description="Name of the class, category, bin or slice; null without.")
    monitor: str = Field(description="Name of the test.")
    log_wealth: float = Field(description="Evidence of the test: the natural log of its wealth.")
    threshold: float = Field(description="What it had to reach, on the same scale.")
    since: int = Field(ge=0, description="Examples learned when the test began.")
    estimate: float | None = Field(description="Mean of y - p since then; null without.")
    lower: float | None = Field(description="Lower end of its confidence sequence.")
    upper: float | None = Field(description="Upper end.")
    action: AlarmAction = Field(
        description="What was done, by `on_drift`: nothing but this (`report`), refits from later "
        "examples alone (`refit`), or a predictor that begins anew (`reset`)."
    )
    moved: list[MovedMessage] = Field(
        description="The features that moved most, at most three, where exchangeability was "
        "tested; empty otherwise. Descriptive, no test."
    )


class MonitorsMessage(Message):
    """Where the monitors stand, in a validity report."""

    alarms: int = Field(ge=0, description="Alarms so far.")
    open: list[AlarmMessage] = Field(
        description="Alarms that are open, the oldest first; the newest of each test. An alarm is "
        "open while the model or its calibration uses an example from before it."
    )
    tests: list[dict[str, Any]] = Field(
        description="The tests nearest to a finding, each an object: `kind`, `scope` and `name` as "
        "of an alarm; `log_wealth`, its evidence, and `threshold`, what it has to reach, both "
        "natural logarithms; `alarms`, its alarms so far; `since`, examples learned when it began, "
        "null before its first example; of a calibration test also `deviation`, a mean of y - p "
        "with its confidence sequence; of a slice `off`, whether it is one of those that are off "
        "with a false discovery rate of 5 % (they are all listed)."
    )


class AlarmsMessage(Message):
    """The alarms that one entry raised, in `alarms`; its entry ID is the ID of the input entry."""

    v: Literal[2] = Field(2, description="Version of this schema.")
    seq: int = Field(ge=0, description="`seq` of the input entry.")
    alarms: list[AlarmMessage] = Field(description="At least one.")
