"""What a validity report says of late labels, as lines of text."""

from collections.abc import Iterator
from typing import Any

_COUNTS = (
    ("late", "came late"),
    ("repeated", "repeated"),
    ("corrected", "corrected"),
    ("censored", "examples whose horizon passed without one"),
    ("dropped", "examples given up, too many waited"),
    ("early", "came before their example"),
    ("backwards", "examples whose time ran backwards"),
)


def late_label_lines(labels: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines of late labels, each after its name; lines that go on have no name.

    Examples
    --------
    >>> counts = {"pending": 100, "unlabelled": 40, "late": 1200, "censored": 3}
    >>> bounds = {"lower": 0.7, "estimate": 0.72, "upper": 0.74}
    >>> for line in late_label_lines({"counts": counts, "accuracy": bounds, "brier": None}):
    ...     print(line)
    ('labels', '100 examples wait, 40 of them without a label')
    ('', '1,200 came late, 3 examples whose horizon passed without one')
    ('', 'accuracy in the end from 0.700 to 0.740; 0.720 if the probabilities are right')
    """
    counts = labels["counts"]
    yield (
        "labels",
        f"{counts['pending']:,} examples wait, {counts['unlabelled']:,} of them without a label",
    )
    told = [f"{counts[name]:,} {words}" for name, words in _COUNTS if counts.get(name)]
    if told:
        yield "", ", ".join(told)
    for name, words in (("accuracy", "accuracy"), ("brier", "Brier score")):
        if labels[name] is not None:
            least, likely, most = (labels[name][k] for k in ("lower", "estimate", "upper"))
            yield (
                "",
                f"{words} in the end from {least:.3f} to {most:.3f}; {likely:.3f} if the "
                "probabilities are right",
            )
