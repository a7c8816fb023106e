"""Turn joined rows into answers and dead letters. No I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import orjson

from online_svm.calibration.evidential.masses import from_bounds
from online_svm.errors import InvalidExample
from online_svm.predictor.combiner import CombinedPrediction, Combiner, CombinerConfig
from online_svm.predictor.warm_up import warming_block
from online_svm.stream.prediction import PredictionBlock
from workers.feed.commit import HEAD_BYTES, RejectedEntry
from workers.feed.digest import OUT, chain
from workers.feed.position import Position
from workers.message.encode import encode_block, encode_rejected
from workers.message.json_columns import dumps
from workers.session.answer import Outcome
from workers.session.join.rows import Answer, JoinedRow

REASON = (
    "sources that learned from the same labels are not independent evidence; the probability is "
    "recalibrated, and nothing is promised of it"
)
UNCALIBRATED = "no recalibration yet: the probability is the pignistic one"
NO_EVIDENCE = "every source is still warming up"

VACUOUS = (0.0, 1.0)
"""Bel and Pl of a source that knows nothing: it changes no combination."""


class Answering:
    """Answers rows in order, and counts what could not be joined.

    Parameters
    ----------
    combiner : Combiner
    feeds : sequence of str
    window : int
    letters : int
        Dead letters before.

    Attributes
    ----------
    letters : int
        Dead letters so far; the number is part of their entry IDs.
    """

    def __init__(
        self, combiner: Combiner, feeds: Sequence[str], window: int, letters: int = 0
    ) -> None:
        self.combiner, self._feeds, self._window = combiner, feeds, window
        self.letters = letters

    def process(self, before: Position, rows: Sequence[JoinedRow]) -> Outcome:
        """Return the outcome of the next rows; at least one."""
        out: list[bytes] = []
        dlq: list[RejectedEntry] = []
        for i, row in enumerate(rows):
            payload, problems = self._answered(before.seq + i, row)
            out.append(payload)
            dlq += [self._letter(*problem) for problem in problems]
        ids = [row.first.entry for row in rows]
        links = ((OUT, *pair) for pair in zip(ids, out, strict=True))
        digest = chain(before.digest, links)
        after = Position(ids[-1], before.seq + len(ids), self.combiner.n, digest)
        return Outcome(before, after, ids, out, [], [], dlq, [])

    def _answered(self, seq: int, row: JoinedRow) -> tuple[bytes, list[tuple[Answer, str, str]]]:
        """Return the payload for a row, and its problems for the dead letters."""
        problems = list(self._given_up(row))
        refusal = self._refusal(row)
        if refusal is not None:
            problems += [(a, *refusal) for a in row.answers if a is not None]
            error = InvalidExample(*refusal)
            return encode_rejected(error, seq, self.combiner.n, row.first.id), problems
        answers = [answer for answer in row.answers if answer is not None]
        labels = {answer.label for answer in answers} - {None}
        if len(labels) > 1:
            reason = f"the sources carry different labels: {', '.join(sorted(map(str, labels)))}"
            problems.append((row.first, "label", reason))
        label = labels.pop() if len(labels) == 1 else None
        return self._combined(seq, row.first.id, answers, label), problems

    def _given_up(self, row: JoinedRow) -> Iterator[tuple[Answer, str, str]]:
        for feed, answer in row.given_up:
            if answer.id is None:
                yield answer, "no_id", f"an answer of feed {self._feeds[feed]!r} has no own id"
            else:
                yield answer, "unmatched", self._missing(self._feeds[0], answer.id)

    def _refusal(self, row: JoinedRow) -> tuple[str, str] | None:
        """Return the code and reason if a row cannot be answered."""
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

    def _letter(self, answer: Answer, code: str, reason: str) -> RejectedEntry:
        self.letters += 1
        size, head = len(answer.payload), answer.payload[:HEAD_BYTES]
        return RejectedEntry(b"%d-0" % self.letters, code, reason, size, head)

    def _combined(
        self, seq: int, producer_id: str | None, answers: list[Answer], label: str | None
    ) -> bytes:
        """Return the payload of one decision; its label is learned."""
        config = self.combiner.config
        bounds = [answer.bounds for answer in answers]
        beside = {
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
        return encode_block(block, [seq], [producer_id], beside)[0]


def _sources(
    feeds: Sequence[str], bounds: Sequence[tuple[float, float] | None]
) -> dict[str, dict[str, float] | None]:
    """Return what each source said of the last class, as `CombinedSource` describes it."""
    return {
        feed: None if known is None else {"belief": known[0], "plausibility": known[1]}
        for feed, known in zip(feeds, bounds, strict=True)
    }


def _block(config: CombinerConfig, found: CombinedPrediction) -> PredictionBlock:
    """Return a decision as the one row of a block."""
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
