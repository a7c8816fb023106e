"""Results of a detector: its cell of the table, its figures, and the line that shows them."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from typing_extensions import override

from scripts.bench.report import BenchResult


@dataclass(frozen=True, slots=True)
class DetectorCell:
    """One detector on one kind of stream.

    Attributes
    ----------
    world, detector : str
        Of `STREAMS` and `DETECTORS`.
    streams : int
        Of each kind: with the change, and without it to choose the sensitivity. There is one real
        stream of a name.
    """

    world: str
    detector: str
    streams: int

    def __str__(self) -> str:
        return f"{self.world}, {self.detector}"


@dataclass(frozen=True, slots=True)
class Detection:
    """What a detector did.

    Attributes
    ----------
    streams : int
    false_share : float
        Of streams without a change, those with an alarm.
    found_share : float or None
        Of streams with one, those with an alarm after it, within 5,000 examples; None on a null.
    delay : float or None
        Median number of examples from the change to that alarm.
    """

    streams: int
    false_share: float
    found_share: float | None
    delay: float | None


@dataclass(frozen=True, slots=True)
class Watched:
    """What a detector did on a real stream.

    Attributes
    ----------
    examples : int
        Scored ones.
    alarms : int
        Those within 50 examples of another count as one.
    first : int or None
        Examples before the one that raised the first.
    delay : int or None
        From the stream's first change to the first alarm after it; None where no moment is known.
    """

    examples: int
    alarms: int
    first: int | None
    delay: int | None


Figures = Detection | Watched


@dataclass(frozen=True, slots=True)
class DetectorLine(BenchResult):
    """What a detector did on a kind of stream, or why it was not run."""

    cell: DetectorCell
    measured: Figures | str

    @override
    def plain(self) -> dict[str, Any]:
        what = {"world": self.cell.world, "detector": self.cell.detector}
        if isinstance(self.measured, str):
            return what | {"skipped": self.measured}
        return what | asdict(self.measured) | {"found_share_error": self.error}

    @property
    def error(self) -> float | None:
        """Standard error of the share found, where there is one."""
        found = self.measured
        if not isinstance(found, Detection) or found.found_share is None:
            return None
        return math.sqrt(found.found_share * (1.0 - found.found_share) / found.streams)

    def __str__(self) -> str:
        begin = f"{self.cell.world:<34}{self.cell.detector:<36}"
        found = self.measured
        if isinstance(found, str):
            return f"{begin}not run: {found}"
        if isinstance(found, Watched):
            first, delay = _count(found.first), _count(found.delay)
            return f"{begin}alarms {found.alarms:>4}  first after {first:>6}  delay {delay:>6}"
        false = f"false {found.false_share:6.1%} of {found.streams}"
        if found.found_share is None:
            return f"{begin}{false}"
        share, delay = f"{found.found_share:6.1%} ± {self.error:.1%}", _count(found.delay)
        return f"{begin}found {share}  median delay {delay:>6}  {false}"


def _count(number: float | None) -> str:
    return "-" if number is None else f"{number:,.0f}"
