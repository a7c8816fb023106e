"""Fields of the compact form of an answer, and their order: encoder, decoder and docs agree."""

from typing import NamedTuple

KEY = "c"
"""The field that an answer in the compact form has, and no other message of `out`."""

MILLION = 10**6
"""Probabilities are whole millionths. A log loss counts no probability below 1e-6 either."""

DECIMALS = 6
"""Of each score."""

NONE = -1
"""Stands for no class, and for no category."""

NAME = "compact"
"""What `payload` says of an answer that was expanded from this form."""


class Place(NamedTuple):
    """One value, or one run of values, in the list `c`."""

    name: str
    meaning: str


ROWS = (
    Place("n", "As in a full answer."),
    Place("label", "Index in `classes`; -1 for none."),
    Place("svm_label", "The same."),
    Place("category", "-1 for none."),
    Place("category_size", "As in a full answer."),
)
"""Integers that differ from row to row; they come first."""

TEXTS = (
    "exact",
    "approximate",
    "none",
    "venn",
    "venn-abers-mixed",
    "joint",
    "classes are discovered, not declared",
    "split is crossfit: the calibration scores are out of fold, by machines that trained on the "
    "rest of the calibration set",
    "some examples have a probability instead of a label: exact for those that get a label, for "
    "all only if which they get does not depend on the example",
    "maturity is arrival: an example is learned when its label comes, and those whose labels come "
    "soon may be unlike the others",
    "an entry without a label lies in the window: exact for those that get a label, for all only "
    "if which get one does not depend on the example",
    "an example of the window was given up without its label: exact for those that get one in "
    "time, for all only if which get one does not depend on the example",
)
"""What `guarantee`, `method` and `reason` mostly are, by number. New ones are added at the end."""

CONSTANTS = (
    Place("model", "As in a full answer."),
    Place("calibration", "The same."),
    Place("taxonomy", "The same."),
    Place("guarantee", "A number of the texts below."),
    Place("reason", "Null, text, or a number of the texts below."),
    Place("method", "Null, text, or a number of the texts below."),
    Place("interval_level", "As in a full answer."),
    Place("classes", "A list."),
)
"""What changes with the model or the calibration only; it follows."""

CODED = ("guarantee", "reason", "method")

NUMBERS = (
    Place("probabilities", "k values, in millionths."),
    Place("intervals", "k pairs, flat, in millionths."),
    Place("venn", "k pairs, flat, in millionths."),
    Place("scores", "The numbers that are left, with six decimals."),
)
"""The numbers come last; k is 1 for two classes, else the number of classes."""

DERIVED = ("status", "label", "lower", "upper", "probability", "svm_label")
"""Fields of a full answer that follow from others. Of two classes, so do the values of the first:
1 minus those of the second, with the ends of an interval exchanged."""

BESIDE = ("action", "expected_cost")
"""Fields of a full answer that stand beside the list, as they are; only if `costs` is set."""

COUNTED = ("imputed",)
"""Counts that stand before the list; only where features have names."""

ABSENT = ("maps", "map_intervals")
"""Fields of a full answer that the compact form leaves out."""

COUNT = len(ROWS) + len(CONSTANTS)
"""Values before the numbers."""


_NUMBERS = {text: number for number, text in enumerate(TEXTS)}


def code(text: str | None) -> int | str | None:
    """Return the number of a text, if it has one.

    Examples
    --------
    >>> code("approximate"), code("an alarm is open"), code(None)
    (1, 'an alarm is open', None)
    """
    return text if text is None else _NUMBERS.get(text, text)


def width(classes: int) -> int:
    """Return k: how many classes have numbers.

    Examples
    --------
    >>> width(2), width(3)
    (1, 3)
    """
    return 1 if classes == 2 else classes
