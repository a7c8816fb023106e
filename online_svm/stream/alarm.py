"""Alarm: a sequential test was rejected, and what the predictor did about it."""

from dataclasses import dataclass
from typing import Literal

AlarmKind = Literal["calibration", "exchangeability", "comparison"]
AlarmScope = Literal["overall", "class", "category", "bin", "slice", "scores"]
AlarmAction = Literal["report", "refit", "reset"]


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm, raised by the example that made a test reject.

    Attributes
    ----------
    n : int
        Examples learned, that one included. The alarm is open while model or calibration use an
        example numbered below n.
    kind : {"calibration", "exchangeability", "comparison"}
        What was tested; it decides what the alarm does to the guarantee.
    scope : {"overall", "class", "category", "bin", "slice", "scores"}
    name : str or None
        Of the class, category, bin or slice; None where the scope has no names.
    monitor : str
        Name of the test.
    log_wealth, threshold : float
        Natural logarithms: of the test's evidence, and of what it had to reach.
    since : int
        Examples learned when the test began.
    estimate, lower, upper : float or None
        Mean of y - p since then with its confidence sequence; None where the test has none.
    action : {"report", "refit", "reset"}
        What was done about it: nothing but this report, refits from later examples alone, or a
        predictor that begins anew.

    Examples
    --------
    >>> Alarm(5040, "calibration", "overall", None, "tolerant", 4.7, 4.6, 5000).action
    'report'
    """

    n: int
    kind: AlarmKind
    scope: AlarmScope
    name: str | None
    monitor: str
    log_wealth: float
    threshold: float
    since: int
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    action: AlarmAction = "report"
