"""Settings of feeds that estimators have as parameters; `OnlineClassifier` describes each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from online_svm.config.groups import MemberName
from online_svm.svm.machine_parameters import MachineParameters, WeightParameters


@dataclass(eq=False, repr=False, kw_only=True)
class FeedParameters:
    """Parameters of each estimator that runs the model of a feed."""

    window: int | None = 2000
    interval_level: float | None = 0.9
    seed: int = 0
    settings: Mapping[str, Any] | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class ClassifierParameters(FeedParameters, WeightParameters, MachineParameters):
    """Parameters of an estimator that trains machines."""

    C: float = 1.0  # by name, like all of these: river's first parameter is `classes`
    kernel: Literal["rbf", "linear"] = "rbf"
    committee: Literal["single", "default"] | tuple[MemberName, ...] | None = None
    refit_every: int | None = None
    on_drift: Literal["report", "refit", "reset"] = "report"
