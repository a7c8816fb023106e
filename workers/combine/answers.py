"""What is decided becomes answers and dead letters: no I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from online_svm.calibration.evidential import from_bounds
from online_svm.combiner import CombinedPrediction, Combiner
from workers.combine.join import Answer, Row
from workers.commits import HEAD_BYTES, DeadLetter
from workers.messages import CombinedMessage, CombinedSource, Message, RejectedMessage
from workers.position import OUT, Position, chain

REASON = (
    "sources that learned from the same labels are not independent evidence; the probability is "
    "recalibrated, and nothing is promised of it"
)
UNCALIBRATED = "no recalibration yet: the probability is the pignistic one"
NO_EVIDENCE = "every source is still warming up"

VACUOUS = (0.0, 1.0)
"""Bel and Pl of a source that knows nothing: it changes no combination."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A batch of decisions, ready to be committed.

    Attributes
    ----------
    before, after : Position
    ids : list of bytes
        Entry IDs of the answers: those of the first feed.
    out : list of bytes
        Payloads.
    dlq : list of DeadLetter
    letters : int
        Dead letters so far; their entry IDs count them.
    """

    before: Position
    after: Position
    ids: list[bytes]
    out: list[bytes]
    dlq: list[DeadLetter]
    letters: int


class Answering:
    """Answers rows in order, and counts what could not be joined.

    Parameters
    ----------
    combiner : Combiner
    feeds : sequence of str
    window : int
    letters : int
        Dead letters before.
    """

    def __init__(
        self, combiner: Combiner, feeds: Sequence[str], window: int, letters: int = 0
    ) -> None:
        self.combiner, self._feeds, self._window = combiner, feeds, window
        self.letters = letters

    def process(self, before: Position, rows: Sequence[Row]) -> Outcome:
        """Return the outcome of the next rows; at least one."""
        out: list[bytes] = []
        dlq: list[DeadLetter] = []
        for i, row in enumerate(rows):
            message, problems = self._message(before.seq + i, row)
            out.append(message.payload())
            dlq += [self._letter(*problem) for problem in problems]
        ids = [row.first.entry for row in rows]
        links = ((OUT, *pair) for pair in zip(ids, out, strict=True))
        digest = chain(before.digest, links)
        after = Position(ids[-1], before.seq + len(ids), self.combiner.n, digest)
        return Outcome(before, after, ids, out, dlq, self.letters)

    def _message(self, seq: int, row: Row) -> tuple[Message, list[tuple[Answer, str, str]]]:
        """Return the answer to a row, and what has to be told besides."""
        problems = list(self._given_up(row))
        refusal = self._refusal(row)
        if refusal is not None:
            problems += [(a, *refusal) for a in row.answers if a is not None]
            code, reason = refusal
            n = self.combiner.n
            return RejectedMessage(
                id=row.first.id, seq=seq, n=n, code=code, reason=reason
            ), problems
        answers = [answer for answer in row.answers if answer is not None]
        labels = {answer.label for answer in answers} - {None}
        if len(labels) > 1:
            reason = f"the sources carry different labels: {', '.join(sorted(map(str, labels)))}"
            problems.append((row.first, "label", reason))
        label = labels.pop() if len(labels) == 1 else None
        return self._combined(seq, row.first.id, answers, label), problems

    def _given_up(self, row: Row) -> Iterator[tuple[Answer, str, str]]:
        for feed, answer in row.given_up:
            if answer.id is None:
                yield answer, "no_id", f"an answer of feed {self._feeds[feed]!r} has no own id"
            else:
                yield answer, "unmatched", self._missing(self._feeds[0], answer.id)

    def _refusal(self, row: Row) -> tuple[str, str] | None:
        """Return code and reason where a row cannot be answered."""
        if row.first.id is None:
            return "no_id", f"an answer of feed {self._feeds[0]!r} has no own id"
        for feed, answer in zip(self._feeds, row.answers, strict=True):
            if answer is None:
                return "unmatched", self._missing(feed, row.first.id)
        if all(answer is not None and answer.rejected for answer in row.answers):
            return "no_answer", "every source rejected the example"
        return None

    def _missing(self, feed: str, producer_id: str) -> str:
        return (
            f"feed {feed!r} has no answer to id {producer_id[:80]!r} within {self._window} places"
        )

    def _letter(self, answer: Answer, code: str, reason: str) -> DeadLetter:
        self.letters += 1
        size, head = len(answer.payload), answer.payload[:HEAD_BYTES]
        return DeadLetter(b"%d-0" % self.letters, code, reason, size, head)

    def _combined(
        self, seq: int, producer_id: str | None, answers: list[Answer], label: str | None
    ) -> CombinedMessage:
        rule = self.combiner.config.rule
        bounds = [answer.bounds for answer in answers]
        sources = {
            feed: None
            if interval is None
            else CombinedSource(belief=interval[0], plausibility=interval[1])
            for feed, interval in zip(self._feeds, bounds, strict=True)
        }
        if not any(bounds):
            return _warming(seq, producer_id, self.combiner, sources)
        given = np.array([VACUOUS if interval is None else interval for interval in bounds])
        found = self.combiner.step(from_bounds(given[:, 0], given[:, 1]), label)
        return _answered(seq, producer_id, self.combiner.config.classes, rule, found, sources)


Sources = dict[str, CombinedSource | None]


def _warming(
    seq: int, producer_id: str | None, combiner: Combiner, sources: Sources
) -> CombinedMessage:
    return CombinedMessage(
        status="warming", id=producer_id, seq=seq, n=combiner.n, label=None, lower=0.0, upper=1.0,
        probability=None, classes=list(combiner.config.classes), probabilities=[], intervals=[],
        maps={}, scores=[], svm_label=None, category=None, category_size=0, model=0, calibration=0,
        taxonomy=0, guarantee="none", reason=NO_EVIDENCE, rule=combiner.config.rule,
        sources=sources,
    )  # fmt: skip


def _answered(
    seq: int,
    producer_id: str | None,
    classes: tuple[str, str],
    rule: str,
    found: CombinedPrediction,
    sources: Sources,
) -> CombinedMessage:
    probabilities = [1.0 - found.probability, found.probability]
    intervals = [
        (1.0 - found.plausibility, 1.0 - found.belief),
        (found.belief, found.plausibility),
    ]
    chosen = int(probabilities[1] > probabilities[0])
    lower, upper = intervals[chosen]
    return CombinedMessage(
        status="ok", id=producer_id, seq=seq, n=found.n, label=classes[chosen], lower=lower,
        upper=upper, probability=probabilities[chosen], classes=list(classes),
        probabilities=probabilities, intervals=intervals,
        maps={"pignistic": [1.0 - found.pignistic, found.pignistic]}, scores=[found.score],
        svm_label=found.decision, category=None, category_size=found.fitted_on, model=0,
        calibration=found.calibration, taxonomy=0, guarantee="none",
        reason=REASON if found.fitted_on else UNCALIBRATED, rule=rule, sources=sources,
    )  # fmt: skip
