"""What the compact form of an answer holds, and in which order: encoder, decoder and docs agree."""

from typing import NamedTuple

KEY = "c"
"""The field that an answer in the compact form has, and no other message of `out`."""

DECIMALS = 6
"""Of each probability and score. A log loss counts no probability below 1e-6 either."""

NONE = -1
"""Stands for no class, and for no category."""

NAME = "compact"
"""What `payload` says of an answer that was expanded from this form."""


class Place(NamedTuple):
    """One value, or one run of values, in the list `c`."""

    name: str
    meaning: str


ROWS = (
    Place("n", "Examples learned before this prediction."),
    Place("label", "Index of the predicted label in `classes`; -1 for none."),
    Place("svm_label", "Index of the SVM's own class in `classes`; -1 for none."),
    Place("category", "Category of the taxonomy; -1 for none."),
    Place("category_size", "N: calibration examples in that category."),
)
"""Integers that differ from row to row; they come first."""

CONSTANTS = (
    Place("model", "Version of the SVM."),
    Place("calibration", "Version of the probability maps."),
    Place("taxonomy", "Version of the taxonomy."),
    Place("guarantee", "As in a full answer."),
    Place("reason", "As in a full answer."),
    Place("method", "As in a full answer."),
    Place("interval_level", "As in a full answer."),
    Place("classes", "As in a full answer: a list."),
)
"""What changes with the model or the calibration only; it follows."""

NUMBERS = (
    Place("probabilities", "k values. Of two classes that of the second."),
    Place("intervals", "k pairs, flat. Of two classes that of the second."),
    Place("venn", "k pairs, flat. Of two classes that of the second."),
    Place("scores", "All numbers that are left."),
)
"""The numbers come last; k is 1 for two classes, else the number of classes."""

DERIVED = ("status", "label", "lower", "upper", "probability", "svm_label")
"""Fields of a full answer that follow from others. Of two classes, so do the values of the first:
1 minus those of the second, with the ends of an interval exchanged."""

ABSENT = ("maps", "map_intervals")
"""Fields of a full answer that the compact form leaves out."""

COUNT = len(ROWS) + len(CONSTANTS)
"""Values before the numbers."""


def width(classes: int) -> int:
    """Return k: how many classes have numbers.

    Examples
    --------
    >>> width(2), width(3)
    (1, 3)
    """
    return 1 if classes == 2 else classes
