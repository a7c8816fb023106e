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

_RIGHT_MEAN = 0.02  # mean of y - p up to which an overall alarm is of ranges that differ


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
    >>> figures = -0.06, -0.09, -0.03, 0.9, 910
    >>> off = Alarm(5040, "calibration", "class", "b", "bets", 5.7, 5.3, 4000, *figures)
    >>> off.words
    'class b: announced 90 of 100, true were 84 (81 to 87), in 910 since example 4,000'
    >>> replace(off, scope="overall", name=None).gist
    'announced 90 of 100, right were 84 (81 to 87)'
    >>> replace(off, scope="overall", name=None, estimate=0.01, lower=-0.02, upper=0.04).gist
    'too high in some ranges, too low in others: announced 90 of 100, right were 91 (88 to 94)'
    >>> replace(off, kind="exchangeability", scope="labels").words
    'the share of class b has changed (watched since example 4,000)'
    >>> replace(off, examples=None).words_since("Tue 2026-11-24 09:12 UTC")
    'class b: announced 90 of 100, true were 84 (81 to 87), since example 4,000 (Tue 2026-11-24 \
09:12 UTC)'
    >>> replace(off, kind="exchangeability", scope="scores", moved=(Moved("hour", 1.92),)).words
    'the features have changed (watched since example 4,000); feature hour has risen by 1.9 \
standard deviations'
    """

    n: Annotated[Count, doc("Learned examples.")]
    kind: Annotated[AlarmKind, doc("[Subject of the test](explanation/monitors.md#alarms).")]
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
    announced: Annotated[float | None, doc("Mean of p since then.")] = None
    examples: Annotated[int | None, doc("Examples of the part since then.")] = None
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
    def test(self) -> tuple[str, str, str | None, str]:
        """The sequential test that raised it: kind, scope, name and monitor."""
        return self.kind, self.scope, self.name, self.monitor

    @property
    def words(self) -> str:
        """The finding, with the features that moved."""
        return self.words_since()

    def words_since(self, date: str = "") -> str:
        """Return `words` with the date of the example `since`, if it is known."""
        finding = self._finding(date)
        if self.kind != "exchangeability" or not self.moved:
            return finding
        named = [str(part) for part in self.moved if abs(part.shift) >= MIN_NAMED_SHIFT]
        # Without a name nothing is said of the features: a stuck one keeps its mean.
        return "; ".join([finding, *([", ".join(named)] if named else [])])

    @property
    def gist(self) -> str:
        """The finding without its beginning."""
        if self.kind == "exchangeability":
            return self._changed
        p, deviations = self.announced, (self.estimate, self.lower, self.upper)
        if p is None or None in deviations:
            part = part_words(self.scope, self.name)
            return f"{part or 'overall'}: the probability was off by more than the tolerance"
        shares = (min(max(p + float(deviation or 0.0), 0.0), 1.0) for deviation in deviations)
        found = of_hundred(part_words(self.scope, self.name), p, *shares)
        is_mean_right = self.scope == "overall" and abs(self.estimate or 0.0) <= _RIGHT_MEAN
        return f"too high in some ranges, too low in others: {found}" if is_mean_right else found

    @property
    def finding(self) -> str:
        """The finding in one sentence."""
        return self._finding()

    def _finding(self, date: str = "") -> str:
        since = since_example(self.since, date)
        if self.kind == "exchangeability":
            return f"{self._changed} (watched {since})"
        count = "" if self.examples is None else f"in {self.examples:,} "
        return f"{self.gist}, {count}{since}"

    @property
    def _changed(self) -> str:
        if self.scope == "class":
            return f"class {self.name} has moved towards the other classes or away from them"
        if self.scope == "labels":
            return f"the share of class {self.name} has changed"
        if self.scope == "scores":
            return "the features have changed"
        return "the relation of labels to features has changed"


def since_example(n: int, date: str = "") -> str:
    """Return "since example ...", with the date of the example if it is known."""
    return f"since example {n:,}{f' ({date})' if date else ''}"


def part_words(scope: AlarmScope, name: str | None) -> str:
    """Return a part of the stream in words; "" for all of it."""
    return "" if scope == "overall" else f"{scope} {name}"


def of_hundred(
    part: str,
    announced: float,
    happened: float,
    *bounds: float,
    verbs: tuple[str, str] = ("announced", "true were"),
) -> str:
    """Return what was announced of a part, and what happened, of 100.

    The part "" means all answers, of which the event is that the label was right. `bounds` are the
    ends of the interval of what happened.

    Examples
    --------
    >>> of_hundred("", 0.9, 0.85), of_hundred("class b", 0.02, 0.05, 0.04, 0.061)
    ('announced 90 of 100, right were 85', 'class b: announced 2.0 of 100, true were 5.0 (4.0 to \
6.1)')
    """
    places = 0 if min(announced, happened) >= 0.1 and max(announced, happened) <= 0.97 else 1
    p, share, *ends = (f"{100.0 * value:.{places}f}" for value in (announced, happened, *bounds))
    interval = f" ({' to '.join(ends)})" if ends else ""
    head, (said, came) = (f"{part}: ", verbs) if part else ("", ("announced", "right were"))
    return f"{head}{said} {p} of 100, {came} {share}{interval}"
