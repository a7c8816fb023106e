"""Turn joined rows into answers and dead letters. No I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import orjson

from online_svm.calibration.evidential.masses import from_bounds
from online_svm.errors import InvalidExample
from online_svm.predictor.combiner import CombinedPrediction, Combiner, CombinerConfig
from online_svm.predictor.frozen_predictor import warming_block
from online_svm.stream.prediction import PredictionBlock
from workers.feed.position import OUT, Position, chain
from workers.feed.state import HEAD_BYTES, RejectedEntry
from workers.message.encode import dumps, encode_block, encode_rejected
from workers.session.answer import Outcome, dead_letter
from workers.session.join.rows import JoinedRow, SourceAnswer

REASON = (
    "sources that learned from the same labels are not independent evidence; the probability is "
    "recalibrated, and nothing is promised of it"
)
UNCALIBRATED = "no recalibration yet: the probability is the pignistic one"
NO_EVIDENCE = "every source is still warming up"

Problem = tuple[SourceAnswer, InvalidExample]
"""A source's answer that could not be joined, and the reason."""

VACUOUS = (0.0, 1.0)
"""Bel and Pl of a source without evidence, the neutral element of the combination."""


class RowAnswerer:
    """Answers rows in order, and counts the dead letters."""

    def __init__(
        self, combiner: Combiner, feeds: Sequence[str], window: int, letters: int = 0
    ) -> None:
        self.combiner, self._feeds, self._window = combiner, feeds, window
        self.letters = letters  # dead letters so far, which determines their entry IDs

    def process(self, before: Position, rows: Sequence[JoinedRow]) -> Outcome:
        """Return the outcome of at least one row."""
        out: list[bytes] = []
        dlq: list[RejectedEntry] = []
        for i, row in enumerate(rows):
            payload, problems = self._answer(before.seq + i, row)
            out.append(payload)
            dlq += [self._dead_letter_of(*problem) for problem in problems]
        ids = [row.first.entry for row in rows]
        links = ((OUT, *pair) for pair in zip(ids, out, strict=True))
        digest = chain(before.digest, links)
        after = Position(ids[-1], before.seq + len(ids), self.combiner.n, digest)
        return Outcome(before, after, ids, out, [], [], dlq, [])

    def _answer(self, seq: int, row: JoinedRow) -> tuple[bytes, list[Problem]]:
        """Return the payload for a row, and the problems for `dlq`."""
        problems = list(self._dropped(row))
        refusal = self._refusal(row)
        if refusal is not None:
            problems += [(a, refusal) for a in row.answers if a is not None]
            numbers = (seq, self.combiner.n)
            return encode_rejected(refusal, *numbers, row.first.id, self._semantics), problems
        answers = [answer for answer in row.answers if answer is not None]
        labels = {answer.label for answer in answers} - {None}
        if len(labels) > 1:
            differ = InvalidExample("labels_differ", labels=sorted(map(str, labels)))
            problems.append((row.first, differ))
        label = labels.pop() if len(labels) == 1 else None
        return self._combined(seq, row.first.id, answers, label), problems

    def _dropped(self, row: JoinedRow) -> Iterator[Problem]:
        for feed, answer in row.dropped:
            if answer.id is None:
                yield answer, InvalidExample("answer_without_id", feed=self._feeds[feed])
            else:
                yield answer, self._missing(self._feeds[0], answer.id)

    def _refusal(self, row: JoinedRow) -> InvalidExample | None:
        """Return why a row cannot be answered, if so."""
        if row.first.id is None:
            return InvalidExample("answer_without_id", feed=self._feeds[0])
        for feed, answer in zip(self._feeds, row.answers, strict=True):
            if answer is None:
                return self._missing(feed, row.first.id)
        if all(answer is not None and answer.rejected for answer in row.answers):
            return InvalidExample("sources_rejected")
        return None

    def _missing(self, feed: str, producer_id: str) -> InvalidExample:
        return InvalidExample("answer_missing", feed=feed, id=producer_id[:80], places=self._window)

    def _dead_letter_of(self, answer: SourceAnswer, error: InvalidExample) -> RejectedEntry:
        self.letters += 1
        size, head = len(answer.payload), answer.payload[:HEAD_BYTES]
        return dead_letter(b"%d-0" % self.letters, error, size, head, self._semantics)

    @property
    def _semantics(self) -> int:
        return self.combiner.config.semantics

    def _combined(
        self, seq: int, producer_id: str | None, answers: list[SourceAnswer], label: str | None
    ) -> bytes:
        """Return the payload of a combined answer; learn its label."""
        config = self.combiner.config
        bounds = [answer.bounds for answer in answers]
        others = {
            "rule": [orjson.dumps(config.rule)],
            "sources": [dumps(_sources(self._feeds, bounds))],
        }
        if any(bounds):
            given = np.array([VACUOUS if interval is None else interval for interval in bounds])
            found = self.combiner.step(from_bounds(given[:, 0], given[:, 1]), label)
            block = _block(config, found)
        else:
            block = replace(
                warming_block(config.classes, np.array([self.combiner.n])), reason=NO_EVIDENCE
            )
        return encode_block(block, [seq], [producer_id], others)[0]


def _sources(
    feeds: Sequence[str], bounds: Sequence[tuple[float, float] | None]
) -> dict[str, dict[str, float] | None]:
    """Return each source's Bel and Pl of the last class; see `CombinedSource`."""
    return {
        feed: None if known is None else {"belief": known[0], "plausibility": known[1]}
        for feed, known in zip(feeds, bounds, strict=True)
    }


def _block(config: CombinerConfig, found: CombinedPrediction) -> PredictionBlock:
    """Return a combined prediction as a block of one row."""
    point = np.array([[1.0 - found.probability, found.probability]])
    belief = np.array([[1.0 - found.plausibility, found.belief]])
    plausibility = np.array([[1.0 - found.belief, found.plausibility]])
    return PredictionBlock(
        status="ok",
        classes=config.classes,
        n=np.array([found.n]),
        label=np.array([int(found.probability > 1.0 - found.probability)]),
        svm_label=np.array([config.classes.index(found.decision)]),
        point=point,
        lower=np.minimum(belief, point),
        upper=np.maximum(plausibility, point),
        venn_point=point,
        venn_lower=belief,
        venn_upper=plausibility,
        maps={"pignistic": np.array([[1.0 - found.pignistic, found.pignistic]])},
        map_intervals=None,
        scores=np.array([[found.score]]),
        category=np.array([-1]),
        category_size=np.array([found.fitted_on]),
        imputed=np.array([-1]),
        model=0,
        calibration=found.calibration,
        taxonomy=0,
        guarantee="none",
        reason=REASON if found.fitted_on else UNCALIBRATED,
        method=config.recalibration if found.fitted_on else "pignistic",
        interval_level=None,
    )
