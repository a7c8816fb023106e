"""Answer a batch of entries: the one place where payloads are made. No I/O.

The worker commits what `process` returns. A replay keeps only the digest. `verify` compares the
payloads with the committed ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from online_svm.errors import InvalidExample
from online_svm.predictor.batch import BatchResult, Waits, finished
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.alarm import Alarm
from online_svm.stream.validity_report import ValidityReport
from workers.config.settings import Limits
from workers.feed.position import ALARMS, MET, OUT, Position, chain
from workers.feed.recent_ids import RecentIds
from workers.feed.state import HEAD_BYTES, RejectedEntry
from workers.message import entry_decode
from workers.message.compact_encode import encode_answers
from workers.message.decode import Decoded, decode
from workers.message.encode import (
    dumps,
    encode_alarms,
    encode_duplicate,
    encode_label,
    encode_rejected,
    encode_report,
    rejection,
)
from workers.message.entry_decode import EntryFields


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of one batch."""

    before: Position
    after: Position
    ids: list[bytes]  # IDs of the input entries, and of their answers
    out: list[bytes]  # one payload an input entry
    met: list[tuple[bytes, bytes]]  # a report: ID of the entry that completed it, and payload
    alarms: list[tuple[bytes, bytes]]  # the same for alarms; alarms of one entry share a payload
    dlq: list[RejectedEntry]
    reports: list[ValidityReport]  # the reports themselves, for progress lines


def process(
    predictor: OnlinePredictor,
    limits: Limits,
    before: Position,
    entries: Sequence[tuple[bytes, EntryFields]],
    recent: RecentIds | None = None,
) -> Outcome:
    """Answer a batch and learn it; `predictor` must be at the position `before`.

    The payloads and the digest do not depend on how the stream is cut into batches.

    Parameters
    ----------
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
    entries: Sequence[tuple[bytes, EntryFields]],
    recent: RecentIds | None = None,
) -> Waits[Outcome]:
    """Do what `process` does in steps, as `OnlinePredictor.processing` does.

    An entry may complete several reports. The last of them is published: it covers the others.
    """
    decoded, result = yield from answering(predictor, limits, before.seq, entries, recent)
    rejected = sorted((decoded.rejected | result.rejected).items())
    semantics = predictor.config.semantics
    out = _answer_others(decoded, result, before, rejected, semantics)
    for rows, block in result.answers:
        seqs, sent = [before.seq + i for i in rows], [decoded.ids[i] for i in rows]
        payloads = encode_answers(block, seqs, sent, limits.payload)
        for i, payload in zip(rows, payloads, strict=True):
            out[i] = payload
    reports = dict(result.reports)
    raised: dict[int, list[Alarm]] = {}
    for index, alarm in result.alarms:
        raised.setdefault(index, []).append(alarm)
    dead_letters = [_letter(entries[i], error, semantics) for i, error in rejected]
    ids = [entry[0] for entry in entries]
    met = [(ids[i], encode_report(report, before.seq + i)) for i, report in reports.items()]
    alarms = [(ids[i], encode_alarms(found, before.seq + i)) for i, found in raised.items()]
    digest = chain(before.digest, _links(ids, out, dict(met), dict(alarms)))
    after = Position(ids[-1], before.seq + len(ids), predictor.n, digest)
    return Outcome(before, after, ids, out, met, alarms, dead_letters, list(reports.values()))


class AnsweredBatch(NamedTuple):
    """The answers to a batch, before payloads are made of them."""

    decoded: Decoded
    result: BatchResult


def answering(
    predictor: OnlinePredictor,
    limits: Limits,
    seq: int,
    entries: Sequence[tuple[bytes, EntryFields]],
    recent: RecentIds | None = None,
) -> Waits[AnsweredBatch]:
    """Decode a batch, answer it and learn it; `seq` entries came before."""
    decoded = decode(entries, predictor.schema, limits)
    batch = decoded.batch(entries, seq)
    result = yield from predictor.processing(batch, recent, limits.max_classes)
    return AnsweredBatch(decoded, result)


def _answer_others(
    decoded: Decoded,
    result: BatchResult,
    before: Position,
    rejected: Sequence[tuple[int, InvalidExample]],
    semantics: int,
) -> list[bytes]:
    """Return payloads of labels, and of rejected and repeated entries; the others are empty."""
    out, seq, n = [b""] * len(decoded.ids), before.seq, result.learned_before
    for i, first in result.repeats.items():
        out[i] = encode_duplicate(seq + i, n(i), decoded.ids[i], first)
    for i, (label, done) in result.taken.items():
        out[i] = encode_label(seq + i, n(i), decoded.ids[i], *label, done)
    for i, error in rejected:
        out[i] = encode_rejected(error, seq + i, n(i), decoded.ids[i], semantics)
    return out


def _letter(
    entry: tuple[bytes, EntryFields], error: InvalidExample, semantics: int
) -> RejectedEntry:
    head = b""
    for name, value in entry_decode.pairs(entry[1]):
        head += name[:HEAD_BYTES] + b"=" + value[:HEAD_BYTES] + b"\n"
        if len(head) >= HEAD_BYTES:
            break
    size = entry_decode.size(entry[1])
    return dead_letter(entry[0], error, size, head[:HEAD_BYTES], semantics)


def dead_letter(
    id: bytes, error: InvalidExample, size: int, head: bytes, semantics: int
) -> RejectedEntry:
    """Return what `dlq` keeps of an entry that could not be used."""
    name, why = rejection(error, semantics)
    text = why if isinstance(why, str) else dumps(why).decode()
    return RejectedEntry(id, error.code, name, text, size, head)


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
