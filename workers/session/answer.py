"""Answer a batch of entries: the one place where payloads are made. No I/O.

The worker commits what `process` returns. A replay keeps only the digest. `verify` compares the
payloads with the committed ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from online_svm.errors import InvalidExample
from online_svm.predictor.batch_result import AnsweredRows, BatchResult, Waits, finished
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.alarm import Alarm
from online_svm.stream.prediction import ValidityReport
from workers.config.settings import Limits, Payload
from workers.feed.commit import HEAD_BYTES, RejectedEntry
from workers.feed.digest import ALARMS, MET, OUT, chain
from workers.feed.position import Position
from workers.feed.recent_ids import RecentIds
from workers.message import entry_decode
from workers.message.compact.encode import encode_answers
from workers.message.decode import Decoded, Fields, decode
from workers.message.encode import (
    encode_alarms,
    encode_duplicate,
    encode_label,
    encode_rejected,
    encode_report,
)


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
    dlq : list of RejectedEntry
    reports : list of ValidityReport
        The reports themselves, for progress lines.
    """

    before: Position
    after: Position
    ids: list[bytes]
    out: list[bytes]
    met: list[tuple[bytes, bytes]]
    alarms: list[tuple[bytes, bytes]]
    dlq: list[RejectedEntry]
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
    """Do what `process` does in steps, as `OnlinePredictor.processing` does.

    An entry may complete several reports. The last of them is published: it covers the others.
    """
    decoded, result = yield from answering(predictor, limits, before.seq, entries, recent)
    rejected = sorted((decoded.rejected | result.rejected).items())
    out = _answer_others(decoded, result, before, rejected)
    for answered in result.answers:
        _place(answered, decoded, before.seq, out, limits.payload)
    reports = dict(result.reports)
    raised: dict[int, list[Alarm]] = {}
    for index, alarm in result.alarms:
        raised.setdefault(index, []).append(alarm)
    dead_letters = [_dead_letter(entries[i], error) for i, error in rejected]
    return _outcome(predictor.n, before, entries, out, reports, raised, dead_letters)


class AnsweredBatch(NamedTuple):
    """The answers to a batch, before payloads are made of them."""

    decoded: Decoded
    result: BatchResult


def answering(
    predictor: OnlinePredictor,
    limits: Limits,
    seq: int,
    entries: Sequence[tuple[bytes, Fields]],
    recent: RecentIds | None = None,
) -> Waits[AnsweredBatch]:
    """Decode a batch, answer it and learn it; `seq` entries came before."""
    decoded = decode(entries, predictor.schema, limits)
    batch = decoded.batch(entries, seq)
    result = yield from predictor.processing(batch, recent, limits.max_classes)
    return AnsweredBatch(decoded, result)


def _outcome(
    n: int,
    before: Position,
    entries: Sequence[tuple[bytes, Fields]],
    out: list[bytes],
    reports: Mapping[int, ValidityReport],
    raised: Mapping[int, Sequence[Alarm]],
    dead_letters: list[RejectedEntry],
) -> Outcome:
    """Return the payloads and the position after a batch, after which n examples are learned."""
    ids = [entry[0] for entry in entries]
    met = [(ids[i], encode_report(report, before.seq + i)) for i, report in reports.items()]
    alarms = [(ids[i], encode_alarms(found, before.seq + i)) for i, found in raised.items()]
    digest = chain(before.digest, _links(ids, out, dict(met), dict(alarms)))
    after = Position(ids[-1], before.seq + len(ids), n, digest)
    told = list(reports.values())
    return Outcome(before, after, ids, out, met, alarms, dead_letters, told)


def _place(
    answered: AnsweredRows, decoded: Decoded, seq: int, out: list[bytes], form: Payload
) -> None:
    """Put the payloads of a block at the positions of its entries in the batch."""
    rows, block = answered
    seqs, ids = [seq + i for i in rows], [decoded.ids[i] for i in rows]
    payloads = encode_answers(block, seqs, ids, form)
    for i, payload in zip(rows, payloads, strict=True):
        out[i] = payload


def _answer_others(
    decoded: Decoded,
    result: BatchResult,
    before: Position,
    rejected: Sequence[tuple[int, InvalidExample]],
) -> list[bytes]:
    """Return a payload for each entry.

    Labels and entries that were rejected or repeated have theirs; those of the others are empty.
    """
    out, seq, n = [b""] * len(decoded.ids), before.seq, result.learned_before
    for i, first in result.repeats.items():
        out[i] = encode_duplicate(seq + i, n(i), decoded.ids[i], first)
    for i, (late, done) in result.taken.items():
        out[i] = encode_label(seq + i, n(i), decoded.ids[i], *late, done)
    for i, error in rejected:
        out[i] = encode_rejected(error, seq + i, n(i), decoded.ids[i])
    return out


def _dead_letter(entry: tuple[bytes, Fields], error: InvalidExample) -> RejectedEntry:
    head = b""
    for name, value in entry_decode.pairs(entry[1]):
        head += name[:HEAD_BYTES] + b"=" + value[:HEAD_BYTES] + b"\n"
        if len(head) >= HEAD_BYTES:
            break
    return RejectedEntry(
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
