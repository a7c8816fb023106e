"""A figure with its interval, and its form as text; without numpy, which `status` does not load."""

import math
from dataclasses import dataclass

LEVEL = 0.95  # confidence of each `Estimate`


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval of confidence `LEVEL`; NaN is an unknown figure or interval.

    Examples
    --------
    >>> print(Estimate(0.8, 0.708, 0.873))
    .800 (.708 to .873)
    """

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "unknown"
        value, *bounds = (
            f"{figure:.3f}".removeprefix("0") for figure in (self.value, self.lower, self.upper)
        )
        return value if math.isnan(self.lower) else f"{value} ({bounds[0]} to {bounds[1]})"


UNDEFINED = Estimate(math.nan, math.nan, math.nan)
