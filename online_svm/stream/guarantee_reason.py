"""Why an answer has no exact guarantee: the name of a case, its parameters, and its sentence.

A feed stores case and parameters, in the form of `GuaranteeReason.about`. Their names are bytes of
answers and change only when `SEMANTICS` is raised. A sentence may be improved at any time.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from online_svm.stream.alarm import Alarm

ALARM = "alarm"
"""The case of an open alarm; its parameters are the fields of the alarm that its finding needs."""

_OF_ALARM = (
    "n", "kind", "scope", "name", "since", "estimate", "lower", "upper", "announced",
    "examples",
)  # fmt: skip

SENTENCES = {
    "warming": "warming up: no proper training set had two classes yet",
    "venn_abers_of_many": "Venn-Abers over more than two classes is one-against-all: its values "
    "are points, not a multiprobability",
    "classes_discovered": "classes are discovered, not declared",
    "probabilities": "some examples have a probability instead of a label: exact for those that "
    "get a label, for all only if which they get does not depend on the example",
    "score_model": "score_model is not fixed: a model that learns on scores the examples of the "
    "calibration set, which it may have learned since, otherwise than the next one",
    "arrival": "maturity is arrival: an example is learned when its label comes, and those whose "
    "labels come soon may be unlike the others",
    "time": "time: a feature is a time, which comes once, so the examples are not i.i.d.",
    "names": "names: more than max_features came, so which are known depends on all examples",
    "unlabelled": "an entry without a label lies in the window: exact for those that get a label, "
    "for all only if which get one does not depend on the example",
    "given_up": "an example of the window was given up without its label: exact for those that get "
    "one in time, for all only if which get one does not depend on the example",
    "corrected": "the label of an example of the window was corrected after it was learned: the "
    "guarantee is of labels as they are when examples are learned, and later examples may still be "
    "corrected",
    "false_alarm": "but for the probability {level:g} that an alarm is false",
}
"""Sentence of each case but that of an alarm; parameters stand in braces."""


@dataclass(frozen=True, slots=True)
class GuaranteeReason:
    """A reason why an answer has no exact guarantee, or an exact one with a proviso.

    Examples
    --------
    >>> reason = GuaranteeReason("false_alarm", (("level", 0.01),))
    >>> str(reason), reason.about
    ('but for the probability 0.01 that an alarm is false', {'case': 'false_alarm', 'level': 0.01})
    """

    case: str
    given: tuple[tuple[str, Any], ...] = ()  # names and values of the parameters
    before: "GuaranteeReason | None" = None  # a reason that held without the alarm

    @classmethod
    def of_alarm(cls, alarm: Alarm, before: "GuaranteeReason | None" = None) -> Self:
        """Return the reason that an alarm is open."""
        fields = ((name, getattr(alarm, name)) for name in _OF_ALARM)
        return cls(ALARM, tuple(pair for pair in fields if pair[1] is not None), before)

    @property
    def about(self) -> dict[str, Any]:
        """The case and its parameters as JSON values."""
        before = {} if self.before is None else {"before": self.before.about}
        return {"case": self.case} | dict(self.given) | before

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Self:
        """Return a stored reason. Raises ValueError or LookupError for anything else."""
        names = [name for name in about if name not in ("case", "before")]
        names.sort(key=(*_OF_ALARM, "level").index)  # a stored object may have lost their order
        before = None if "before" not in about else cls.of(about["before"])
        reason = cls(about["case"], tuple((name, about[name]) for name in names), before)
        str(reason)  # raises if a parameter is absent or does not fit
        hash(reason)
        return reason

    def __str__(self) -> str:
        """Return the sentence."""
        given = dict(self.given)
        if self.case == ALARM:
            alarm = Alarm(
                **{"name": None, "monitor": "", "log_wealth": 0.0, "threshold": 0.0} | given
            )
            text = f"{alarm.kind} alarm at example {alarm.n:,}: {alarm.finding}"
        else:
            text = SENTENCES[self.case].format(**given)
        return text if self.before is None else f"{self.before}; {text}"


def sentence_of(about: object) -> str | None:
    """Return the sentence of a stored reason, None without one, the JSON of any other value."""
    if about is None:
        return None
    try:
        return str(GuaranteeReason.of(about))  # type: ignore[arg-type]  # TypeError if no mapping
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return json.dumps(about)[:400]
