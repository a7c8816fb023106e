"""Parameters that estimators of kernel machines share; `OnlineSVC` describes each.

The estimators are dataclasses: the fields are the parameters of `__init__`, as scikit-learn's
`get_params` and `clone` read them. Shared ones are passed by name, except `C`.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from online_svm.compiled.kernels import KernelName


@dataclass(eq=False, repr=False)
class MachineParameters:
    """Penalty and kernel."""

    C: float = 1.0
    _: KW_ONLY
    kernel: KernelName = "rbf"
    gamma: float | Literal["scale"] = "scale"


@dataclass(eq=False, repr=False, kw_only=True)
class SolverParameters(MachineParameters):
    """Penalty, every kernel, and the solver of the machine."""

    degree: int = 3
    coef0: float = 0.0
    tol: float = 1e-3
    cache_mb: float = 200.0


@dataclass(eq=False, repr=False, kw_only=True)
class WeightParameters:
    """Weights of the classes."""

    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
