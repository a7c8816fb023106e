"""Finding: a test of a monitor that was rejected."""

from dataclasses import dataclass
from typing import Literal

FindingKind = Literal["calibration", "exchangeability", "comparison"]
FindingScope = Literal["overall", "class", "category", "bin", "slice", "scores"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A sequential test whose wealth passed its threshold.

    Attributes
    ----------
    row : int
        Index of the row that did it, in the call of `update`.
    kind : {"calibration", "exchangeability", "comparison"}
        What does not hold: the announced probability is off by more than the tolerance; the
        examples are not exchangeable; two maps are not equally good.
    scope : {"overall", "class", "category", "bin", "slice", "scores"}
        Which part of the examples the test is about.
    name : str or None
        Which class, category, bin or slice.
    monitor : str
        Name of the test.
    log_wealth, threshold : float
        Natural logarithms; the wealth is a supermartingale that begins at 1 while its null holds.
    since : int
        Examples learned before the first row that the test looked at.
    estimate, lower, upper : float or None
        Mean of y - p over the rows that tell most, with its confidence sequence; None where the
        test has none.
    moved : tuple of (int, float)
        Of a test of exchangeability: the features that moved most, by index, each with its recent
        mean less its usual one, in standard deviations.
    """

    row: int
    kind: FindingKind
    scope: FindingScope
    name: str | None
    monitor: str
    log_wealth: float
    threshold: float
    since: int
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    moved: tuple[tuple[int, float], ...] = ()
