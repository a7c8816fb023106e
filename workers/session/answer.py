"""Answer a batch of entries: the only place where payloads are made. No I/O.

The worker commits the outcome. A replay keeps only its digest. `verify` compares its payloads with
the committed ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
from workers.message.decode import Decoded, decode
from workers.message.encode import (
    dumps,
    encode_alarms,
    encode_block,
    encode_duplicate,
    encode_label,
    encode_rejected,
    encode_report,
)
from workers.message.entry_decode import EntryFields, traced


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of one batch."""

    before: Position
    after: Position
    ids: list[bytes]  # IDs of the input entries, and of their answers
    out: list[bytes]  # one payload for each input entry
    met: list[tuple[bytes, bytes]]  # of each report: ID of the entry that completed it, payload
    alarms: list[tuple[bytes, bytes]]  # likewise; all alarms of an entry share a payload
    dlq: list[RejectedEntry]
    reports: list[ValidityReport]  # the reports of `met`, for progress lines
    traces: dict[int, str] = field(default_factory=dict)  # trace contexts by index in the batch
    answered_ids: dict[str, bytes] = field(default_factory=dict)  # see `RecentIds.changes`


def process(
    predictor: OnlinePredictor,
    limits: Limits,
    before: Position,
    entries: Sequence[tuple[bytes, EntryFields]],
    recent: RecentIds | None = None,
) -> Outcome:
    """Answer at least one entry and learn it; `predictor` must be at the position `before`.

    Payloads and digest do not depend on how the stream is cut into batches. `recent` must be at
    the same position as `predictor`; without it, no entry counts as a duplicate.
    """
    return finished(processing(predictor, limits, before, entries, recent))


def processing(
    predictor: OnlinePredictor,
    limits: Limits,
    before: Position,
    entries: Sequence[tuple[bytes, EntryFields]],
    recent: RecentIds | None = None,
) -> Waits[Outcome]:
    """Do `process` in steps; see `OnlinePredictor.processing`.

    Of several reports that one entry completes, only the last is published: it covers the others.
    """
    decoded, result = yield from answering(predictor, limits, before.seq, entries, recent)
    rejected = sorted((decoded.rejected | result.rejected).items())
    out = _other_payloads(decoded, result, before, rejected)
    for rows, block in result.answers:
        seqs, sent = [before.seq + i for i in rows], [decoded.ids[i] for i in rows]
        payloads = encode_block(block, seqs, sent)
        for i, payload in zip(rows, payloads, strict=True):
            out[i] = payload
    for i, trace in decoded.traces.items():
        out[i] = traced(out[i], trace)
    reports = dict(result.reports)
    raised: dict[int, list[Alarm]] = {}
    for index, alarm in result.alarms:
        raised.setdefault(index, []).append(alarm)
    dead_letters = [_dead_letter_of(entries[i], error) for i, error in rejected]
    ids = [entry[0] for entry in entries]
    met = [(ids[i], encode_report(report, before.seq + i)) for i, report in reports.items()]
    alarms = [(ids[i], encode_alarms(found, before.seq + i)) for i, found in raised.items()]
    digest = chain(before.digest, _links(ids, out, dict(met), dict(alarms)))
    after = Position(ids[-1], before.seq + len(ids), predictor.n, digest)
    changes = {} if recent is None else recent.changes()
    return Outcome(
        before,
        after,
        ids,
        out,
        met,
        alarms,
        dead_letters,
        [*reports.values()],
        decoded.traces,
        changes,
    )


class AnsweredBatch(NamedTuple):
    """The answers to a batch, before they are encoded."""

    decoded: Decoded
    result: BatchResult


def answering(
    predictor: OnlinePredictor,
    limits: Limits,
    seq: int,
    entries: Sequence[tuple[bytes, EntryFields]],
    recent: RecentIds | None = None,
) -> Waits[AnsweredBatch]:
    """Decode, answer and learn a batch that `seq` entries precede."""
    decoded = decode(entries, predictor.schema, limits)
    batch = decoded.batch(entries, seq)
    if recent is not None:
        recent.begin(seq, [entry[0] for entry in entries])
    result = yield from predictor.processing(batch, recent, limits.max_classes)
    if recent is not None:
        recent.duplicates += len(result.repeats)
    return AnsweredBatch(decoded, result)


def _other_payloads(
    decoded: Decoded,
    result: BatchResult,
    before: Position,
    rejected: Sequence[tuple[int, InvalidExample]],
) -> list[bytes]:
    """Return the payloads of labels, rejected and duplicate entries; b"" for other entries."""
    out, seq, n = [b""] * len(decoded.ids), before.seq, result.learned_before
    for i, first in result.repeats.items():
        out[i] = encode_duplicate(seq + i, n(i), decoded.ids[i], first)
    for i, (label, done) in result.taken.items():
        out[i] = encode_label(seq + i, n(i), decoded.ids[i], *label, done)
    for i, error in rejected:
        out[i] = encode_rejected(error, seq + i, n(i), decoded.ids[i])
    return out


def _dead_letter_of(entry: tuple[bytes, EntryFields], error: InvalidExample) -> RejectedEntry:
    head = b""
    for name, value in entry_decode.pairs(entry[1]):
        head += name[:HEAD_BYTES] + b"=" + value[:HEAD_BYTES] + b"\n"
        if len(head) >= HEAD_BYTES:
            break
    size = entry_decode.size(entry[1])
    about = dumps(error.about).decode()
    return RejectedEntry(entry[0], error.code, about, size, head[:HEAD_BYTES])


def _links(
    ids: list[bytes], out: list[bytes], met: dict[bytes, bytes], alarms: dict[bytes, bytes]
) -> Iterator[tuple[bytes, bytes, bytes]]:
    for entry_id, payload in zip(ids, out, strict=True):
        yield OUT, entry_id, payload
        if entry_id in met:
            yield MET, entry_id, met[entry_id]
        if entry_id in alarms:
            yield ALARMS, entry_id, alarms[entry_id]
