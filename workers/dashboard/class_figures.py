"""Detection of the classes of interest, computed from answers with a known label."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from online_svm.metrics.detection import Detection, detection
from workers.dashboard.shown_feed import ShownAnswer
from workers.reading.answers import as_list, number

MIN_LABELLED = 50  # labelled answers needed for figures by class
MAX_CLASSES = 5  # classes of interest, at most
_RARE = 0.5  # a class is rare below this share of an equal division


class Decided(NamedTuple):
    """An answer with its true label."""

    probabilities: dict[str, float]  # of each declared or known class
    decision: str  # the action; without costs, the label
    truth: str


class ClassDetection(NamedTuple):
    """The figures of one class."""

    label: str
    found: Detection
    reviewed: int  # examples of the class that were sent to a person


def decided_answers(answers: Sequence[ShownAnswer]) -> list[Decided]:
    """Return the answers of a model with a known label; others are skipped."""
    found = []
    for _, message, truth in answers:
        classes, given = as_list(message.get("classes")), as_list(message.get("probabilities"))
        decision = message.get("action") or message.get("label")
        if message.get("status") != "ok" or truth.label is None or not isinstance(decision, str):
            continue
        named = dict(zip(classes, map(number, given), strict=False))
        probabilities = {name: p for name, p in named.items() if isinstance(name, str)}
        if probabilities and all(0.0 <= p <= 1.0 for p in probabilities.values()):
            found.append(Decided(probabilities, decision, truth.label))
    return found


def classes_of_interest(decided: Sequence[Decided], positive: str | None = None) -> list[str]:
    """Return the class that is asked for, or the rare classes, the rarest first."""
    if positive is not None:
        return [positive]
    counts = Counter(each.truth for each in decided)
    names = sorted({name for each in decided for name in each.probabilities} | set(counts))
    if len(names) < 2:
        return []
    names.sort(key=lambda name: counts[name])
    rare = [name for name in names if counts[name] < _RARE * len(decided) / len(names)]
    return (rare if len(names) > 2 else [])[:MAX_CLASSES] or names[:1]


def detections(answers: Sequence[ShownAnswer], positive: str | None = None) -> list[ClassDetection]:
    """Return the figures of each class of interest; none below `MIN_LABELLED` labelled answers."""
    decided = decided_answers(answers)
    if len(decided) < MIN_LABELLED:
        return []
    return [_detection(name, decided) for name in classes_of_interest(decided, positive)]


def _detection(label: str, decided: Sequence[Decided]) -> ClassDetection:
    found = detection(
        [each.probabilities.get(label, 0.0) for each in decided],
        [each.truth == label for each in decided],
        [each.decision == label for each in decided],
    )
    reviewed = sum(each.truth == label and each.decision == "review" for each in decided)
    return ClassDetection(label, found, 0 if label == "review" else reviewed)
