"""Answer a batch of entries: the one place where payloads are made. No I/O.

The worker commits what `process` returns. A replay keeps only the digest. `verify` compares the
payloads with the committed ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from online_svm.errors import InvalidExample
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.pending_examples import PendingExample
from online_svm.predictor.waits import Waits, finished
from online_svm.stream.alarm import Alarm
from online_svm.stream.prediction import PredictionBlock, ValidityReport
from workers.config.settings import Limits, Payload
from workers.feed.commit import HEAD_BYTES, DeadLetter
from workers.feed.position import ALARMS, MET, OUT, Position, chain
from workers.feed.recent_ids import RecentIds
from workers.message import entry_decode
from workers.message.decode import Decoded, Fields, decode
from workers.message.encode import (
    encode_alarms,
    encode_duplicate,
    encode_label,
    encode_rejected,
    encode_report,
)
from workers.message.forms import encode_answers
from workers.session.admission import admit
from workers.session.late_admission import LateAdmission, admit_late


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of one batch.

    Attributes
    ----------
    before, after : Position
    ids : list of bytes
        IDs of the input entries, and of their answers.
    out : list of bytes
        One payload an input entry.
    met : list of (bytes, bytes)
        Of each validity report: the ID of the entry that completed it, and the payload.
    alarms : list of (bytes, bytes)
        The same of the alarms; those of one entry share a payload.
    dlq : list of DeadLetter
    reports : list of ValidityReport
        The reports themselves, for progress lines.
    """

    before: Position
    after: Position
    ids: list[bytes]
    out: list[bytes]
    met: list[tuple[bytes, bytes]]
    alarms: list[tuple[bytes, bytes]]
    dlq: list[DeadLetter]
    reports: list[ValidityReport]


def process(
    predictor: OnlinePredictor,
    limits: Limits,
    before: Position,
    entries: Sequence[tuple[bytes, Fields]],
    recent: RecentIds | None = None,
) -> Outcome:
    """Answer a batch and learn it; `predictor` must be at the position `before`.

    The payloads and the digest do not depend on how the stream is cut into batches.

    Parameters
    ----------
    predictor : OnlinePredictor
    limits : Limits
    before : Position
    entries : sequence of (bytes, fields)
        Entry ID and fields, in stream order; at least one.
    recent : RecentIds, optional
        Must be at the same position as `predictor`. Without it, no entry counts as a repeat.
    """
    return finished(processing(predictor, limits, before, entries, recent))


def processing(
    predictor: OnlinePredictor,
    limits: Limits,
    before: Position,
    entries: Sequence[tuple[bytes, Fields]],
    recent: RecentIds | None = None,
) -> Waits[Outcome]:
    """Do what `process` does in steps, as `OnlinePredictor.steps_of_many` does."""
    recent = recent or RecentIds(0)
    answered = yield from answering(predictor, limits, before.seq, entries, recent)
    return _encoded(answered, predictor.n, before, entries, limits.payload)


@dataclass(frozen=True, slots=True)
class AnsweredBatch:
    """The answers to a batch, before payloads are made of them.

    Attributes
    ----------
    decoded : Decoded
        With the answered examples alone as accepted entries.
    results : sequence of (PredictionBlock, ValidityReport or Alarm)
        A report and an alarm follow the block of the example that completed or raised it.
    repeats : mapping of int to int
        Position of each repeat, and the `seq` that it repeats.
    late : LateAdmission or None
        What became of the entries, where labels may come late.
    learned : sequence of PendingExample
        There, the examples that were learned, with the answers they had.
    """

    decoded: Decoded
    results: Sequence[PredictionBlock | ValidityReport | Alarm]
    repeats: Mapping[int, int]
    late: LateAdmission | None = None
    learned: Sequence[PendingExample] = ()

    def causes(self) -> Iterator[tuple[int, ValidityReport | Alarm]]:
        """Yield the position of the entry that completed each report, and raised each alarm."""
        done = 0
        for result in self.results:
            if isinstance(result, PredictionBlock):
                done += len(result)
            elif self.late is None:
                yield self.decoded.accepted[done - 1], result
            else:
                yield self.late.position(result.n), result


def answering(
    predictor: OnlinePredictor,
    limits: Limits,
    seq: int,
    entries: Sequence[tuple[bytes, Fields]],
    recent: RecentIds,
) -> Waits[AnsweredBatch]:
    """Decode a batch, answer it and learn it; `seq` entries came before."""
    decoded = decode(entries, predictor.schema, limits)
    if predictor.late is not None:
        ids = [entry[0] for entry in entries]
        admitted = admit_late(decoded, ids, seq, recent, predictor, limits)
        learned = predictor.late.to_learn()
        results = yield from predictor.steps_of_accepted(admitted.decoded.schema)
        return AnsweredBatch(admitted.decoded, results, admitted.repeats, admitted, learned)
    decoded, repeats = admit(decoded, seq, recent, predictor.labels, limits.max_classes)
    results = yield from predictor.steps_of_many(
        decoded.X,
        decoded.labels,
        decoded.probability_column(),
        decoded.schema,
        slices=decoded.slice_column(),
        given=decoded.answer_column(),
    )
    return AnsweredBatch(decoded, results, repeats)


def _encoded(
    answered: AnsweredBatch,
    n: int,
    before: Position,
    entries: Sequence[tuple[bytes, Fields]],
    form: Payload,
) -> Outcome:
    """Return the payloads and the position after a batch, after which n examples are learned.

    Where labels come late, an entry may complete several reports. The last of them is published: it
    covers the others.
    """
    ids = [entry[0] for entry in entries]
    out, dead_letters = _answer_others(answered, before, entries)
    done = 0
    for block in answered.results:
        if isinstance(block, PredictionBlock):
            _place(block, answered.decoded, done, before.seq, out, form)
            done += len(block)
    reports: dict[int, ValidityReport] = {}
    raised: dict[int, list[Alarm]] = {}
    for i, result in answered.causes():
        if isinstance(result, ValidityReport):
            reports[i] = result
        else:
            raised.setdefault(i, []).append(result)
    met = [(ids[i], encode_report(report, before.seq + i)) for i, report in reports.items()]
    alarms = [(ids[i], encode_alarms(found, before.seq + i)) for i, found in raised.items()]
    digest = chain(before.digest, _links(ids, out, dict(met), dict(alarms)))
    after = Position(ids[-1], before.seq + len(ids), n, digest)
    return Outcome(before, after, ids, out, met, alarms, dead_letters, list(reports.values()))


def _place(
    block: PredictionBlock, decoded: Decoded, done: int, seq: int, out: list[bytes], form: Payload
) -> None:
    """Put the payloads of a block at the positions of its entries in the batch."""
    rows = decoded.accepted[done : done + len(block)]
    seqs, ids = [seq + i for i in rows], [decoded.ids[i] for i in rows]
    payloads = encode_answers(block, seqs, ids, form)
    for i, payload in zip(rows, payloads, strict=True):
        out[i] = payload


def _answer_others(
    answered: AnsweredBatch, before: Position, entries: Sequence[tuple[bytes, Fields]]
) -> tuple[list[bytes], list[DeadLetter]]:
    """Return a payload for each entry, and the dead letters.

    Rejected and repeated entries and labels have theirs; those of the examples are still empty.
    """
    out = [b""] * len(entries)
    dead_letters: list[DeadLetter] = []
    decoded, taken = answered.decoded, {} if answered.late is None else answered.late.taken
    if not (decoded.rejected or answered.repeats or taken):
        return out, dead_letters
    learned = _learned_before(answered, before.n, len(entries))
    for i, first in answered.repeats.items():
        out[i] = encode_duplicate(before.seq + i, learned[i], decoded.ids[i], first)
    for i, label in taken.items():
        out[i] = encode_label(before.seq + i, learned[i], decoded.ids[i], *label.late, label.done)
    for i, error in sorted(decoded.rejected.items()):
        out[i] = encode_rejected(error, before.seq + i, learned[i], decoded.ids[i])
        dead_letters.append(_dead_letter(entries[i], error))
    return out, dead_letters


def _learned_before(answered: AnsweredBatch, n: int, count: int) -> Sequence[int]:
    """Return how many examples are learned before each entry; n are before the first."""
    if answered.late is not None:
        return answered.late.learned
    learns = [0] * count
    for i, is_learned in zip(answered.decoded.accepted, answered.decoded.learned(), strict=True):
        learns[i] = int(is_learned)
    return list(accumulate(learns, initial=n))


def _dead_letter(entry: tuple[bytes, Fields], error: InvalidExample) -> DeadLetter:
    head = b""
    for name, value in entry_decode.pairs(entry[1]):
        head += name[:HEAD_BYTES] + b"=" + value[:HEAD_BYTES] + b"\n"
        if len(head) >= HEAD_BYTES:
            break
    return DeadLetter(
        entry[0], error.code, error.reason, entry_decode.size(entry[1]), head[:HEAD_BYTES]
    )


def _links(
    ids: list[bytes],
    out: list[bytes],
    met: dict[bytes, bytes],
    alarms: dict[bytes, bytes],
) -> Iterator[tuple[bytes, bytes, bytes]]:
    for entry_id, payload in zip(ids, out, strict=True):
        yield OUT, entry_id, payload
        if entry_id in met:
            yield MET, entry_id, met[entry_id]
        if entry_id in alarms:
            yield ALARMS, entry_id, alarms[entry_id]
