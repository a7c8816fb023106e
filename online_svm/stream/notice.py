"""Define a notice: a part of a stream that is off at present, in words and fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from online_svm.stream.alarm import AlarmScope, of_hundred, part_words, since_example
from online_svm.stream.answer_columns import Count, Probability, StrictRecord, doc

NOTICE_SCOPES: tuple[AlarmScope, ...] = (
    "overall", "bin", "category", "class", "slice", "labels",
)  # fmt: skip
NoticeDirection = Literal["low", "high", "extreme", "cautious", "risen", "fallen"]

_OUTWARD = {"extreme": "too near 0 and 1: ", "cautious": "too near 1/2: "}


@dataclass(frozen=True, slots=True)
class Notice(StrictRecord):
    """A part whose announced probabilities are off at present; it withdraws nothing.

    With the scope `labels`, a class comes more or less often than usual: nothing need be off.

    Examples
    --------
    >>> notice = Notice(12900, "overall", None, "high", 12300, 640, 0.9, 0.85, 0.81, 0.884)
    >>> notice.words
    'announced 90 of 100, right were 85 (81 to 88), in 640 since example 12,300'
    >>> replace(notice, direction="extreme", happened=0.9, upper=0.93).words
    'too near 0 and 1: announced 90 of 100, right were 90 (81 to 93), in 640 since example 12,300'
    >>> rare = Notice(12900, "slice", "country=DE", "low", 12300, 9000, 0.02, 0.05, 0.04, 0.061)
    >>> rare.code
    'slice:country=DE:low'
    >>> rare.words
    'slice country=DE: announced 2.0 of 100, true were 5.0 (4.0 to 6.1), in 9,000 since example \
12,300'
    >>> replace(rare, scope="labels", name="b", direction="risen").words
    'class b has risen: usually 2.0 of 100, now 5.0 (4.0 to 6.1), in 9,000 since example 12,300'
    """

    n: Annotated[Count, doc("Examples learned before the answer whose label opened it.")]
    scope: Annotated[
        AlarmScope,
        doc("Part that is off: `overall`, `class`, `category`, `bin` or `slice`; or `labels`."),
    ]
    name: Annotated[str | None, doc("Name of that part.")]
    direction: Annotated[
        NoticeDirection,
        doc(
            "What the probabilities are: too `low`, `high`, `extreme` or `cautious`. Of `labels`: "
            "the share of the class has `risen` or `fallen`."
        ),
    ]
    since: Annotated[Count, doc("`n` from which on they are off, by the strongest interval.")]
    examples: Annotated[Count, doc("Examples of the part since then.")]
    announced: Annotated[
        Probability, doc("Mean probability since then; of `labels` the usual share.")
    ]
    happened: Annotated[Probability, doc("Share that came true since then, with its interval.")]
    lower: Annotated[Probability, doc("Ends of the interval, at 95 % and at all times.")]
    upper: Annotated[Probability, doc("Ends of the interval, at 95 % and at all times.")]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Read a notice from its JSON object; fields added by later versions are ignored.

        Raises TypeError or LookupError if a field is missing.
        """
        return cls(**{name: fields[name] for name in cls.__dataclass_fields__})

    @property
    def code(self) -> str:
        """Scope, name if there is one, and direction, separated by colons."""
        return ":".join([self.scope, *([] if self.name is None else [self.name]), self.direction])

    @property
    def opened(self) -> int:
        """Examples learned when it opened; with the code it identifies the notice."""
        return self.n

    @property
    def words(self) -> str:
        """The notice in one sentence."""
        return self.words_since()

    def words_since(self, date: str = "") -> str:
        """Return `words` with the date of the example `since`, if it is known."""
        shares = self.announced, self.happened, self.lower, self.upper
        if self.scope == "labels":
            part = f"class {self.name} has {self.direction}"
            found = of_hundred(part, *shares, verbs=("usually", "now"))
        else:
            found = of_hundred(part_words(self.scope, self.name), *shares)
            found = _OUTWARD.get(self.direction, "") + found
        return f"{found}, in {self.examples:,} {since_example(self.since, date)}"


FeatureDirection = Literal["missing", "present", "risen", "fallen", "wider", "narrower"]


@dataclass(frozen=True, slots=True)
class FeatureNotice(StrictRecord):
    """A feature that is not as usual in the answered examples; no label is needed to see it.

    Examples
    --------
    >>> FeatureNotice(12300, "income", "missing", 0.98).words
    'feature income is missing more often than usual, since example 12,300'
    >>> FeatureNotice(12300, "income", "risen", 0.93).words
    'feature income has risen: on average above 93 of 100 of its usual values, since example 12,300'
    >>> FeatureNotice(12300, "income", "narrower", 0.5).words
    'feature income varies less than usual, since example 12,300'
    """

    since: Annotated[Count, doc("Examples learned when the change began.")]
    feature: Annotated[str | int, doc("Name, or number from 0 on.")]
    direction: Annotated[
        FeatureDirection, doc("What it is: more often a gap or not; what its values have done.")
    ]
    rank: Annotated[Probability, doc("Recent mean rank among all values; .5 as usual.")]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Read a notice from its JSON object, as `Notice.of`."""
        return cls(**{name: fields[name] for name in cls.__dataclass_fields__})

    def naming(self, features: Sequence[str] | None) -> Self:
        """Return the notice with the name of its feature, if `features` gives names."""
        return self if features is None else replace(self, feature=features[int(self.feature)])

    @property
    def code(self) -> str:
        """`feature`, name, and direction, separated by colons."""
        return f"feature:{self.feature}:{self.direction}"

    @property
    def opened(self) -> int:
        """`since`, which stays while the notice is open; with the code it identifies the notice."""
        return self.since

    @property
    def words(self) -> str:
        """The notice in one sentence."""
        return self.words_since()

    def words_since(self, date: str = "") -> str:
        """Return `words` with the date of the example `since`, if it is known."""
        since = since_example(self.since, date)
        if self.direction in ("missing", "present"):
            return f"feature {self.feature} is {self.direction} more often than usual, {since}"
        if self.direction in ("wider", "narrower"):
            much = "more" if self.direction == "wider" else "less"
            return f"feature {self.feature} varies {much} than usual, {since}"
        rank = f"on average above {100.0 * self.rank:.0f} of 100 of its usual values"
        return f"feature {self.feature} has {self.direction}: {rank}, {since}"


@dataclass(frozen=True, slots=True)
class OpenNotices:
    """The notices that are open after `n` learned examples, when one opened or closed.

    `of_labels`: they are those of the shares of the labels, else those of the probabilities.
    """

    n: int
    notices: tuple[Notice, ...]
    of_labels: bool = False
