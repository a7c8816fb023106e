"""Define an alarm: a sequential test that rejected its hypothesis, in words and fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from online_svm.stream.answer_columns import Count, StrictRecord, doc

AlarmKind = Literal["calibration", "exchangeability"]
AlarmScope = Literal["overall", "class", "category", "bin", "slice", "scores", "labels"]
AlarmAction = Literal["report", "refit", "reset"]

MIN_NAMED_SHIFT = 0.25
"""Shift in standard deviations from which the wording names a feature; chance alone gives 0.05."""


@dataclass(frozen=True, slots=True)
class Moved(StrictRecord):
    """A feature whose recent mean shifted."""

    feature: Annotated[str | int, doc("Name, or number from 0 on.")]
    shift: Annotated[float, doc("In standard deviations.")]

    def __str__(self) -> str:
        way = "risen" if self.shift > 0.0 else "fallen"
        return f"feature {self.feature} has {way} by {abs(self.shift):.1f} standard deviations"


@dataclass(frozen=True, slots=True)
class Alarm(StrictRecord):
    """A sequential test rejected its hypothesis.

    Examples
    --------
    >>> off = Alarm(5040, "calibration", "class", "b", "bets", 5.7, 5.3, 4000, -0.06, -0.09, -0.03)
    >>> off.words
    'the probability of class b is too high by 0.060 (0.030 to 0.090) since n = 4,000'
    >>> replace(off, scope="overall", name=None, upper=0.1).words.partition(" at times")[0]
    "the probability of the SVM's class was off by more than the tolerance"
    >>> replace(off, kind="exchangeability", scope="labels").words
    'the share of class b has changed (watched since n = 4,000)'
    >>> replace(off, kind="exchangeability", scope="scores", moved=(Moved("hour", 1.92),)).words
    'the features have changed (watched since n = 4,000); feature hour has risen by 1.9 standard \
deviations'
    """

    n: Annotated[Count, doc("Learned examples.")]
    kind: Annotated[AlarmKind, doc("[Subject of the test](monitoring.md#monitors).")]
    scope: Annotated[
        AlarmScope,
        doc("Part tested: `overall`, `class`, `category`, `bin`, `slice`, `scores` or `labels`."),
    ]
    name: Annotated[str | None, doc("Name of that part.")]
    monitor: Annotated[str, doc("Name of the test.")]
    log_wealth: Annotated[float, doc("Natural log of the wealth.")]
    threshold: Annotated[float, doc("`log_wealth` at which the test alarms.")]
    since: Annotated[Count, doc("`n` when the test began.")]
    estimate: Annotated[float | None, doc("Mean of y - p since then.")] = None
    lower: Annotated[float | None, doc("Ends of its confidence sequence.")] = None
    upper: Annotated[float | None, doc("Ends of its confidence sequence.")] = None
    action: Annotated[
        AlarmAction, doc("What [`on_drift`](monitoring.md#what-follows-an-alarm) did.")
    ] = "report"
    moved: Annotated[
        tuple[Moved, ...],
        doc("Of exchangeability: the three features that shifted most."),
    ] = ()

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Read an alarm from its JSON object; fields added by later versions are ignored.

        Raises TypeError or LookupError if a field is missing.
        """
        known = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
        moved = tuple(Moved(part["feature"], part["shift"]) for part in fields.get("moved", ()))
        return cls(**known | {"moved": moved})

    def naming(self, features: Sequence[str] | None) -> Self:
        """Return the alarm with names in place of feature numbers, if `features` gives names."""
        if features is None or not self.moved:
            return self
        moved = [Moved(features[int(part.feature)], part.shift) for part in self.moved]
        return replace(self, moved=tuple(moved))

    @property
    def words(self) -> str:
        """The finding, with the features that moved."""
        if self.kind != "exchangeability" or not self.moved:
            return self.finding
        named = [str(part) for part in self.moved if abs(part.shift) >= MIN_NAMED_SHIFT]
        # Without a name nothing is said of the features: a stuck one keeps its mean.
        return "; ".join([self.finding, *([", ".join(named)] if named else [])])

    @property
    def gist(self) -> str:
        """The finding without its beginning."""
        if self.kind == "exchangeability":
            return self._changed
        if self.estimate is None or self.lower is None or self.upper is None:
            return f"the probability {self._part} was off by more than the tolerance"
        way = "low" if self.estimate > 0.0 else "high"
        size = f"{abs(self.estimate):.3f}"
        if not self.lower <= 0.0 <= self.upper:
            smaller, larger = sorted((abs(self.lower), abs(self.upper)))
            size = f"{smaller:.3f} to {larger:.3f}"
        return f"the probability {self._part} is too {way} by {size}"

    @property
    def finding(self) -> str:
        """The finding in one sentence."""
        since = f"since n = {self.since:,}"
        if self.kind == "exchangeability":
            return f"{self._changed} (watched {since})"
        off = f"the probability {self._part} was off by more than the tolerance"
        if self.estimate is None or self.lower is None or self.upper is None:
            return f"{off} {since}"
        way, size = "low" if self.estimate > 0.0 else "high", f"{abs(self.estimate):.3f}"
        if self.lower <= 0.0 <= self.upper:  # the test may reject before 0 is outside the interval
            return f"{off} at times {since}, on average too {way} by {size}"
        smaller, larger = sorted((abs(self.lower), abs(self.upper)))
        interval = f"({smaller:.3f} to {larger:.3f})"
        return f"the probability {self._part} is too {way} by {size} {interval} {since}"

    @property
    def _part(self) -> str:
        """The probabilities that a calibration test is about."""
        if self.scope == "overall":
            return "of the SVM's class"
        return f"{'of' if self.scope == 'class' else 'in'} {self.scope} {self.name}"

    @property
    def _changed(self) -> str:
        if self.scope == "class":
            return f"class {self.name} has moved towards the other classes or away from them"
        if self.scope == "labels":
            return f"the share of class {self.name} has changed"
        if self.scope == "scores":
            return "the features have changed"
        return "the relation of labels to features has changed"
