"""Answer a batch of entries: the one place where payloads are made. No I/O.

The worker commits what `process` returns. A replay keeps only the digest. `verify` compares the
payloads with the committed ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from online_svm.errors import InvalidExample
from online_svm.predictor.online_predictor import OnlinePredictor
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
from workers.session.late_admission import admit_late


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
    recent, decoded = recent or RecentIds(0), decode(entries, predictor.schema, limits)
    if predictor.late is not None:
        return (yield from _processing_late(predictor, limits, before, entries, recent, decoded))
    decoded, repeats = admit(decoded, before.seq, recent, predictor.labels, limits.max_classes)
    out, dead_letters = _answer_others(decoded, repeats, before, entries)
    met: list[tuple[bytes, bytes]] = []
    reports: list[ValidityReport] = []
    raised: dict[int, list[Alarm]] = {}  # by the position of their entry
    done = 0
    probabilities = decoded.probability_column()
    answers = yield from predictor.steps_of_many(
        decoded.X,
        decoded.labels,
        probabilities,
        decoded.schema,
        slices=decoded.slice_column(),
        given=decoded.answer_column(),
    )
    for answer in answers:
        if isinstance(answer, ValidityReport):
            last = decoded.accepted[done - 1]
            met.append((entries[last][0], encode_report(answer, before.seq + last)))
            reports.append(answer)
        elif isinstance(answer, Alarm):
            raised.setdefault(decoded.accepted[done - 1], []).append(answer)
        else:
            _place(answer, decoded, done, before.seq, out, limits.payload)
            done += len(answer)
    return _outcome(predictor.n, before, entries, out, met, raised, dead_letters, reports)


def _processing_late(
    predictor: OnlinePredictor,
    limits: Limits,
    before: Position,
    entries: Sequence[tuple[bytes, Fields]],
    recent: RecentIds,
    decoded: Decoded,
) -> Waits[Outcome]:
    """Do what `process` does where labels may come late.

    An entry may complete several reports. The last of them is published: it covers the others.
    """
    assert predictor.late is not None
    count = len(entries)
    ids = [entry[0] for entry in entries]
    admitted = admit_late(decoded, ids, before.seq, recent, predictor, limits)
    decoded = admitted.decoded
    out, dead_letters = [b""] * count, []
    for i, first in admitted.repeats.items():
        out[i] = encode_duplicate(before.seq + i, admitted.learned[i], decoded.ids[i], first)
    for i, taken in admitted.taken.items():
        out[i] = encode_label(
            before.seq + i, admitted.learned[i], decoded.ids[i], *taken.late, taken.done
        )
    for i, error in sorted(decoded.rejected.items()):
        out[i] = encode_rejected(error, before.seq + i, admitted.learned[i], decoded.ids[i])
        dead_letters.append(_dead_letter(entries[i], error))
    reports: dict[int, ValidityReport] = {}
    raised: dict[int, list[Alarm]] = {}
    done = 0
    for answer in (yield from predictor.steps_of_accepted(decoded.schema)):
        if isinstance(answer, ValidityReport):
            reports[admitted.position(answer.n)] = answer
        elif isinstance(answer, Alarm):
            raised.setdefault(admitted.position(answer.n), []).append(answer)
        else:
            _place(answer, decoded, done, before.seq, out, limits.payload)
            done += len(answer)
    met = [(entries[i][0], encode_report(report, before.seq + i)) for i, report in reports.items()]
    told = list(reports.values())
    return _outcome(predictor.n, before, entries, out, met, raised, dead_letters, told)


def _outcome(
    n: int,
    before: Position,
    entries: Sequence[tuple[bytes, Fields]],
    out: list[bytes],
    met: list[tuple[bytes, bytes]],
    raised: Mapping[int, Sequence[Alarm]],
    dead_letters: list[DeadLetter],
    reports: list[ValidityReport],
) -> Outcome:
    """Return the results of a batch after which n examples are learned."""
    ids = [entry[0] for entry in entries]
    alarms = [(ids[i], encode_alarms(found, before.seq + i)) for i, found in raised.items()]
    digest = chain(before.digest, _links(ids, out, dict(met), dict(alarms)))
    after = Position(ids[-1], before.seq + len(ids), n, digest)
    return Outcome(before, after, ids, out, met, alarms, dead_letters, reports)


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
    decoded: Decoded,
    repeats: dict[int, int],
    before: Position,
    entries: Sequence[tuple[bytes, Fields]],
) -> tuple[list[bytes], list[DeadLetter]]:
    """Return a payload for each entry, and the dead letters.

    Rejected and repeated entries have theirs; the payloads of the others are still empty.
    """
    out = [b""] * len(entries)
    dead_letters: list[DeadLetter] = []
    if not decoded.rejected and not repeats:
        return out, dead_letters
    learns = [0] * len(entries)
    for i, is_learned in zip(decoded.accepted, decoded.learned(), strict=True):
        learns[i] = int(is_learned)
    learned = list(accumulate(learns, initial=before.n))
    for i, first in repeats.items():
        out[i] = encode_duplicate(before.seq + i, learned[i], decoded.ids[i], first)
    for i, error in sorted(decoded.rejected.items()):
        out[i] = encode_rejected(error, before.seq + i, learned[i], decoded.ids[i])
        dead_letters.append(_dead_letter(entries[i], error))
    return out, dead_letters


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
