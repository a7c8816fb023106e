"""The settings of `PredictorConfig` by group: machine, monitors, windows, costs, delayed labels."""

import re
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator


class Settings(BaseModel):
    """Immutable settings; unknown names and NaN are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


MemberName = Literal["rbf", "rbf-wide", "rbf-narrow", "trees", "logistic"]


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains NUL, which no entry may contain")
    return text


WithoutNul = AfterValidator(_without_nul)
Label = Annotated[str, Field(min_length=1, max_length=256), WithoutNul]


class MachineConfig(Settings):
    """Settings of the machines: learner, kernel and penalties."""

    learner: Literal["svc", "psvm"] = Field(
        "svc",
        description="The SVM, or the P-SVM, which also learns from probabilities.",
    )
    committee: Literal["single", "default"] | tuple[MemberName, ...] | None = Field(
        None,
        description="One machine, or several, weighted by how well each predicted. Default: "
        "'default', but 'single' with another learner, split or kernel.",
    )
    kernel: Literal["rbf", "linear"] = Field("rbf", description="Kernel function.")
    C: float = Field(1.0, gt=0, le=1e6, description="Penalty of a margin violation.")
    gamma: float | Literal["scale"] = Field(
        "scale",
        description="Kernel width; 'scale' is 1 / (n_features * variance of the training part).",
    )
    class_weight: (
        dict[Label, Annotated[float, Field(ge=1e-6, le=1e6)]] | Literal["balanced"] | None
    ) = Field(None, description="Multiplies C for a class.")

    @model_validator(mode="after")
    def _valid_width(self) -> Self:
        """Refuse a kernel width out of range."""
        if not isinstance(self.gamma, str) and not 1e-300 <= self.gamma <= 1e12:
            raise ValueError("gamma: must be positive, or 'scale'; at most 1e12, at least 1e-300")
        return self


ScoreUse = Literal["alone", "member", "watched"]


class ScoreConfig(Settings):
    """Settings of the scores that another model gives; see `online_svm.stream.scores`."""

    scores: Literal["probability", "margin"] | None = Field(
        None,
        description="Examples carry `score`, the output of another model: a probability of the "
        "second class, or a margin; with more classes one number a class. Needs "
        "`classes`.",
    )
    score_use: ScoreUse | None = Field(
        None,
        description="'alone' (default): the answer is the calibrated score, features are "
        "ignored. 'member': the score joins the machines. 'watched': monitors test "
        "the score, a probability, and answers do not use it.",
    )
    score_model: Literal["fixed", "learning"] | None = Field(
        None,
        description="Whether the scored model stays as it is, 'fixed', until `score_version` "
        "changes. A model that learns on (default) scores examples that it learned otherwise than "
        "the next one, so the guarantee is approximate.",
    )

    @property
    def score_role(self) -> ScoreUse | None:
        """The use of the scores; None if examples carry none."""
        return None if self.scores is None else self.score_use or "alone"

    def _check_scores(self) -> None:
        for name in ("score_use", "score_model"):
            if getattr(self, name) is not None and self.scores is None:
                raise ValueError(f"{name}: set scores to what a score is: probability or margin")
        if self.score_role == "watched" and self.scores != "probability":
            raise ValueError("score_use: only a probability can be watched; set scores to that")


class MonitorConfig(Settings):
    """Settings of `MonitorSet`."""

    monitors: Literal["default", "off"] = Field(
        "default", description="Sequential tests of probabilities and examples."
    )
    tolerance: float = Field(
        0.02,
        gt=0,
        lt=0.5,
        description="Largest mean error of probabilities that raises no alarm.",
    )
    alarm_level: float = Field(
        0.01,
        ge=1e-9,
        le=0.5,
        description="Probability of any false alarm ever, if labels come with their examples.",
    )
    notice_every: int = Field(
        100_000,
        ge=1000,
        le=1_000_000_000,
        description="Scored examples to a false notice, on average and at least. Smaller: notices "
        "of smaller and younger errors, and more false ones.",
    )
    on_drift: Literal["report", "refit", "reset"] = Field(
        "report",
        description="What follows an alarm of calibration or exchangeability: a message; refits "
        "from later examples, the first after 10; or these, without answers of the "
        "old model. At most twice in 1,000 examples.",
    )


SliceName = Annotated[str, Field(min_length=1, max_length=64), WithoutNul]

MAX_SLICES = 16  # limit on the slices: each costs a pass over the window at every report


class WindowConfig(Settings):
    """Settings of the windowed figures in validity reports."""

    metrics_window: Annotated[int, Field(ge=10, le=100_000)] | None = Field(
        1000,
        description="Scored examples of the windowed figures in a report; none: no figures.",
    )
    slices: tuple[SliceName, ...] = Field(
        (),
        description="Names of texts in `s`, as country, with windowed figures of the first 20 "
        "values and the rest. They are no features.",
    )

    @model_validator(mode="after")
    def _valid_slices(self) -> Self:
        """Refuse duplicate or too many slices."""
        if len(set(self.slices)) != len(self.slices):
            raise ValueError("slices: a name is given twice")
        if len(self.slices) > MAX_SLICES:
            raise ValueError(f"slices: {len(self.slices)} names, the limit is {MAX_SLICES}")
        if self.slices and self.metrics_window is None:
            raise ValueError("slices: their figures are windowed; set metrics_window")
        return self


def _table(value: object) -> object:
    """Return costs unchanged if they map true labels to costs of actions."""
    if value is None:
        return value
    rows = list(value.values()) if isinstance(value, dict) else [value]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError(
            'must have a row of actions for each true label, as {"a": {"a": 0, "b": 5}, '
            '"b": {"a": 1, "b": 0}}'
        )
    return value


Cost = Annotated[float, Field(ge=-1e12, le=1e12)]

REVIEW = "review"  # the action of asking a person, who finds the true label; its price is added

MAX_ACTIONS = 64

Promised = Literal["error", "miss", "false_alarm", "confidence"]
Rate = Annotated[float, Field(ge=1e-6, le=1 - 1e-6)]


def _whole_promise(value: dict[str, float] | None) -> dict[str, float] | None:
    """Return a promise in canonical order, with its confidence."""
    if value is None:
        return value
    if not value.keys() - {"confidence"}:
        raise ValueError("must have a rate, as error=.03; also miss=.1 or false_alarm=.02")
    given = {"confidence": 0.95} | value
    return {name: given[name] for name in get_args(Promised) if name in given}


class DecisionConfig(Settings):
    """Settings of `CostMatrix`, `PromisedErrorRate` and `LabelSets`."""

    costs: Annotated[dict[Label, dict[Label, Cost]] | None, BeforeValidator(_table)] = Field(
        None,
        description="Cost of each action by true label; actions are labels, `review`, and "
        "others. Each answer has the action of least expected cost. Needs "
        "`classes`. As a:b=5,b:a=1,review=.4: b costs 5 if a is true, review .4. Or "
        "JSON, or tables [costs.a] of a file.",
    )
    promise: Annotated[dict[Promised, Rate] | None, AfterValidator(_whole_promise)] = Field(
        None,
        description="Largest error rate among decided cases, and the confidence that it always "
        "holds: each answer has a label or `review` as action. Needs `classes`. As "
        "error=.03,confidence=.95 (default). For two classes also miss, the share "
        "of the second decided as the first, and false_alarm, the reverse.",
    )
    set_coverage: float | None = Field(
        None,
        ge=0.5,
        lt=1,
        description="Long-run share of labels that are in the `set` of their answer, as .9.",
    )

    @model_validator(mode="after")
    def _valid_costs(self) -> Self:
        """Refuse incomplete or inconsistent costs."""
        if self.costs is None:
            return self
        rows = list(self.costs.values())
        actions = set(rows[0]) if rows else set()
        if any(set(row) != actions for row in rows):
            raise ValueError("costs: each true label needs the cost of the same actions")
        missing = sorted(set(self.costs) - actions)
        if missing or len(rows) < 2:
            raise ValueError(
                f"costs: the labels are actions, and there are at least two; not given: {missing}"
            )
        if len(actions) > MAX_ACTIONS:
            raise ValueError(f"costs: {len(actions)} actions, the limit is {MAX_ACTIONS}")
        if self.reviews:
            prices = {row[REVIEW] for row in rows}
            if len(prices) != 1 or min(prices) < 0:
                raise ValueError(
                    f"costs: {REVIEW} has one price, at least 0, whatever the true label is"
                )
        return self

    @property
    def reviews(self) -> bool:
        """Whether `review` is an action and not a label."""
        costs = self.costs or {}
        return REVIEW not in costs and any(REVIEW in row for row in costs.values())


UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
"""Milliseconds of each time unit of a horizon, longest first."""

LONGEST_HORIZON = 10**12  # largest horizon, in examples or milliseconds

_TIME = re.compile("([0-9]{1,13}) ?(ms|[smhd])")


def _plain_horizon(value: object) -> object:
    """Return a horizon in canonical form: a number of examples, or a whole number of time units.

    The unit is the longest one that divides the time.
    """
    if not isinstance(value, str):
        return value
    if value.isascii() and value.isdigit():
        return int(value[:20])
    found = _TIME.fullmatch(value)
    length = int(found[1]) * UNITS[found[2]] if found else 0
    if not 0 < length <= LONGEST_HORIZON:
        raise ValueError(
            'must be a number of examples, as 500, or a time above zero in s, m, h or d, as "30m"'
        )
    unit = next(unit for unit, size in UNITS.items() if length % size == 0)
    return f"{length // UNITS[unit]}{unit}"


Horizon = Annotated[
    Annotated[int, Field(ge=0, le=LONGEST_HORIZON)] | str, BeforeValidator(_plain_horizon)
]


class LabelConfig(Settings):
    """Settings of `DelayedLabels`.

    Examples
    --------
    >>> LabelConfig().takes_delayed_labels, LabelConfig(horizon=500).takes_delayed_labels
    (False, True)
    >>> config = LabelConfig(horizon="90s")
    >>> config.counts_time, config.horizon_length
    (True, 90000)
    >>> LabelConfig(horizon="1440m").horizon  # equal times are equal settings
    '1d'
    """

    horizon: Horizon = Field(
        0,
        description="How long a label may take: accepted examples, as 500, or a time (s, m, h, "
        "d) by the field `time`, as 30m. 0: a label comes with its example.",
    )
    maturity: Literal["horizon", "arrival"] = Field(
        "horizon",
        description="When an example is scored and learned: after its horizon, or when its "
        "label comes, which favours early labels.",
    )
    max_pending: int = Field(
        100_000,
        ge=1,
        le=10_000_000,
        description="Answered examples that wait; beyond it the oldest is learned, or dropped "
        "without a label. As many ids of learned ones are kept, to correct labels.",
    )

    label_budget: Annotated[float, Field(ge=1e-4, le=1)] | None = Field(
        None,
        description="Share of the answers whose labels are bought, as .05. Each answer says "
        "whether its label is wanted, by chance, and with which probability. "
        "Figures weight wanted labels, so they hold for all examples. Needs a "
        "horizon.",
    )

    @property
    def takes_delayed_labels(self) -> bool:
        """Whether a label may come after its example."""
        return self.horizon != 0

    @property
    def counts_time(self) -> bool:
        """Whether the horizon is a time instead of a number of examples."""
        return isinstance(self.horizon, str)

    @property
    def horizon_length(self) -> int:
        """The horizon in accepted examples, or in milliseconds if it is a time."""
        if isinstance(self.horizon, int):
            return self.horizon
        found = _TIME.fullmatch(self.horizon)
        assert found is not None
        return int(found[1]) * UNITS[found[2]]

    def _check_labels(self) -> None:
        if self.label_budget is not None and not self.takes_delayed_labels:
            raise ValueError(
                "label_budget: an answer says whether its label is wanted, so the label comes "
                "after it; set horizon to how long a label may take"
            )
        if not self.takes_delayed_labels and self.maturity != "horizon":
            raise ValueError(
                f"maturity: {self.maturity!r} needs a horizon; set horizon to how long a label may "
                "take"
            )
        if not self.counts_time and self.horizon_length > self.max_pending:
            raise ValueError(
                f"horizon: {self.horizon} examples would wait, more than max_pending = "
                f"{self.max_pending}; raise that too"
            )
