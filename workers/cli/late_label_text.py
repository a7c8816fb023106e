"""Late labels of a validity report as lines of text."""

from collections.abc import Iterator, Mapping
from typing import Any

from workers.plural import counted

_COUNTS = (
    ("late", "came late"),
    ("repeated", "repeated"),
    ("corrected", "corrected"),
    ("censored", "examples whose horizon passed without one"),
    ("dropped", "examples given up, too many waited"),
    ("early", "came before their example"),
    ("backwards", "examples whose time ran backwards"),
)


def pending_text(pending: Mapping[str, Any]) -> str:
    """Return how many examples wait, with the age of the oldest without a label if it is known.

    Examples
    --------
    >>> pending_text({"pending": 900, "unlabelled": 900, "seconds": 7500.0})
    '900 examples wait, 900 of them without a label, the oldest for 2 h 5 min'
    """
    open_ones = pending["unlabelled"]
    wait = "waits" if pending["pending"] == 1 else "wait"
    text = f"{counted(pending['pending'], 'example')} {wait}, {open_ones:,} of them without a label"
    seconds = pending.get("seconds")
    return f"{text}, the oldest for {_span(seconds)}" if open_ones and seconds else text


def _span(seconds: float) -> str:
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if hours >= 48:
        return f"{hours // 24:,} days"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min {int(seconds) % 60} s"


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
    yield "labels", pending_text(counts)
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
