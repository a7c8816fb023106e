"""Take the entries of a batch where labels may come late: examples, labels, repeats."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from online_svm.errors import InvalidExample
from online_svm.predictor.late_labels import LateLabels
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.label_counts import Done
from online_svm.types import Floats
from workers.config.settings import Limits
from workers.feed.position import parse_id
from workers.feed.recent_ids import RecentIds
from workers.feed.state_fields import MAX_COUNT
from workers.message.decode import Decoded
from workers.message.label_entry import LateLabel
from workers.session.admission import one_too_many


@dataclass(frozen=True, slots=True)
class TakenLabel:
    """A label that was taken, and what was done with it."""

    late: LateLabel
    done: Done


@dataclass(slots=True)
class LateAdmission:
    """What became of the entries of a batch, but for their answers.

    Attributes
    ----------
    decoded : Decoded
        With the examples alone as accepted entries.
    repeats : dict of int to int
        Position of each repeat, and the `seq` that it repeats.
    taken : dict of int to TakenLabel
        Position of each label that was taken.
    learned : list of int
        Examples learned before each entry, and after the last.
    """

    decoded: Decoded
    repeats: dict[int, int] = field(default_factory=dict)
    taken: dict[int, TakenLabel] = field(default_factory=dict)
    learned: list[int] = field(default_factory=list)

    def position(self, n: int) -> int:
        """Return the position of the entry with which the n-th example was learned."""
        return bisect_left(self.learned, n) - 1


def admit_late(
    decoded: Decoded,
    entry_ids: Sequence[bytes],
    seq: int,
    recent: RecentIds,
    predictor: OnlinePredictor,
    limits: Limits,
) -> LateAdmission:
    """Give the examples and labels of a batch to the predictor one by one, in stream order.

    An example that waits, sent again with its label and the same features, is a label; with other
    features it is rejected; without a label it is a repeat. The result is that of batches of one.

    Parameters
    ----------
    decoded : Decoded
    entry_ids : sequence of bytes
        Of the batch.
    seq : int
        Input entries before it.
    recent : RecentIds
        The ids answered before the batch; those of the batch are added.
    predictor : OnlinePredictor
        With late labels; it answers nothing yet.
    limits : Limits
    """
    late = predictor.late
    assert late is not None
    taking = _Taking(decoded, entry_ids, seq, recent, predictor, late, limits)
    rows = {position: row for row, position in enumerate(decoded.accepted)}
    for position in range(len(entry_ids)):
        taking.found.learned.append(late.learned)
        try:
            if position in decoded.late:
                taking.take_label(position, decoded.late[position])
            elif position in rows:
                taking.take_row(position, rows[position])
        except InvalidExample as error:
            taking.rejected[position] = InvalidExample(error.code, error.reason)
    taking.found.learned.append(late.learned)
    return taking.finished()


class _Taking:
    """One batch while it is taken."""

    def __init__(
        self,
        decoded: Decoded,
        entry_ids: Sequence[bytes],
        seq: int,
        recent: RecentIds,
        predictor: OnlinePredictor,
        late: LateLabels,
        limits: Limits,
    ) -> None:
        self._decoded, self._entry_ids = decoded, entry_ids
        self._seq, self._recent = seq, recent
        self._predictor, self._late = predictor, late
        self._most = None if decoded.schema.declares_labels else limits.max_classes
        self.found = LateAdmission(decoded)
        self.rejected: dict[int, InvalidExample] = {}

    def take_label(self, position: int, label: LateLabel) -> None:
        """Take a label entry.

        Raises
        ------
        InvalidExample
            If it cannot be used.
        """
        self._check_classes(label.label)
        self.found.taken[position] = TakenLabel(label, self._late.label(*label))

    def take_row(self, position: int, row: int) -> None:
        """Take an entry with features.

        Raises
        ------
        InvalidExample
            If its id waits, with other features, or its label is one class too many.
        """
        decoded, sent = self._decoded, self._decoded.ids[position]
        label, p, at = decoded.labels[row], decoded.probabilities[row], decoded.times[row]
        waiting = None if sent is None else self._late.waiting(sent)
        if waiting is not None and sent is not None and label is not None:
            if not _are_same(decoded.X[row], waiting.x):
                raise InvalidExample(
                    "conflict",
                    f"the example with id {sent[:40]!r} waits for its label and had other features",
                )
            self.take_label(position, LateLabel(sent, label))
            return
        first = None if sent is None else self._recent.first(sent)
        first = first if waiting is None else waiting.seq
        if first is not None:
            self.found.repeats[position] = first
            return
        if label is not None:
            self._check_classes(label)
        self._late.accept(
            decoded.X[row],
            id=sent,
            label=label,
            probability=float("nan") if p is None else p,
            time=_sent(self._entry_ids[position]) if at is None else at,
            seq=self._seq + position,
            slices=self._predictor.slice_codes([decoded.slices[row]], 1)[0],
        )
        if sent is not None:
            self._recent.add(sent, self._seq + position)

    def finished(self) -> LateAdmission:
        """Return what became of the batch."""
        found = self.found
        found.decoded = self._decoded.without({*found.repeats, *found.taken}, self.rejected)
        return found

    def _check_classes(self, label: str) -> None:
        met = self._late.met
        if self._most is not None and label not in met and len(met) >= self._most:
            raise one_too_many(label, self._most)


def _sent(entry_id: bytes) -> int:
    """Return the milliseconds of an entry ID; 0 without one, as a row of a file."""
    return min(parse_id(entry_id)[0], MAX_COUNT) if entry_id else 0


def _are_same(x: Floats, y: Floats) -> bool:
    """Return whether two rows have the same values; a missing value is the same as another."""
    return np.array_equal(x, y, equal_nan=True)
