"""Which items of a batch are taken: no repeat, no class too many, no label of a stranger.

One item after the other is looked at, in order. So the result is that of batches of one.
"""

from collections.abc import Callable

import numpy as np

from online_svm.errors import InvalidExample
from online_svm.predictor.batch_result import BatchResult, TakenLabel
from online_svm.predictor.late_labels import LateLabels
from online_svm.stream.cells import widened
from online_svm.stream.input_batch import AnsweredIds, InputBatch, LateLabel
from online_svm.stream.labels import LabelIndex
from online_svm.types import Floats, Ints


def admit(
    batch: InputBatch, ids: AnsweredIds | None, classes: LabelIndex, max_classes: int | None
) -> tuple[InputBatch, BatchResult]:
    """Return what is left of a batch, and of the others why: repeats, and a class too many.

    A repeat is left out. Then a label that is new when there are `max_classes` already is rejected.
    The ids of the others are remembered; their labels are known once they are learned.

    Parameters
    ----------
    batch : InputBatch
    ids : AnsweredIds or None
        The ids answered before the batch; those of the batch are added.
    classes : LabelIndex
        The labels known before the batch.
    max_classes : int or None
        Bound on the labels where none are declared.
    """
    result = BatchResult()
    new = set() if classes.declared or max_classes is None else classes.unknown(batch.labels)
    room = (max_classes or 0) - len(classes.labels)
    # Without repeats there are no more labels, so these may all stay.
    is_full = len(new) > room
    window = 0 if ids is None else ids.window
    if window == 0 and not is_full:
        return batch, result
    added: set[str] = set()
    for row, (index, label) in enumerate(zip(batch.indices, batch.labels, strict=True)):
        sent = batch.id_of(row) if window else None
        first = None if sent is None or ids is None else ids.first(sent)
        if first is not None:
            result.repeats[index] = first
            continue
        if is_full and label in new and label not in added:
            if len(added) >= room:
                result.rejected[index] = _one_too_many(label, max_classes)
                continue
            added.add(label)
        if sent is not None and ids is not None:
            ids.add(sent, batch.first + index)
    left_out = result.repeats.keys() | result.rejected.keys()
    return batch.without(left_out) if left_out else batch, result


class LateAdmission:
    """Gives the examples and labels of a batch to the label queue, one by one.

    An example that waits, sent again with its label and the same features, is a label; with other
    features it is rejected; without a label it is a repeat.

    Parameters
    ----------
    batch : InputBatch
    late : LateLabels
    slice_codes : callable
        Returns the codes of the slices of one example; it is asked for those that are taken.
    ids : AnsweredIds or None
        The ids answered before the batch; those of the batch are added.
    max_classes : int or None
        Bound on the labels where none are declared.
    """

    def __init__(
        self,
        batch: InputBatch,
        late: LateLabels,
        slice_codes: Callable[[int], Ints],
        ids: AnsweredIds | None,
        max_classes: int | None,
    ) -> None:
        self._batch, self._late, self._slice_codes = batch, late, slice_codes
        self._ids, self._max_classes = ids, max_classes
        self._answered: list[int] = []
        self._result = BatchResult(late.learned)

    def result(self) -> BatchResult:
        """Take all items; return what became of them, but for answers."""
        rows = {index: row for row, index in enumerate(self._batch.indices)}
        learned_by: list[int] = []
        before = self._late.learned
        for index in sorted(rows.keys() | self._batch.late.keys()):
            try:
                self._take(index, rows.get(index))
            except InvalidExample as error:
                # A new error: the traceback of the raised one would keep all that was parsed.
                self._result.rejected[index] = InvalidExample(error.code, error.reason)
            learned_by += [index] * (self._late.learned - before)
            before = self._late.learned
        self._result.learned_by, self._result.answered = learned_by, self._answered
        return self._result

    def _take(self, index: int, row: int | None) -> None:
        if row is None:
            self._take_label(index, self._batch.late[index])
        else:
            self._take_row(index, row)

    def _take_label(self, index: int, label: LateLabel) -> None:
        self._check_classes(label.label)
        self._result.taken[index] = TakenLabel(label, self._late.label(*label))

    def _take_row(self, index: int, row: int) -> None:
        batch, sent = self._batch, self._batch.id_of(row)
        label = batch.labels[row]
        waiting = None if sent is None else self._late.waiting(sent)
        if waiting is not None and sent is not None and label is not None:
            if not _are_same(batch.X[row], waiting.x):
                raise InvalidExample(
                    "conflict",
                    f"the example with id {sent[:40]!r} waits for its label and had other features",
                )
            self._take_label(index, LateLabel(sent, label))
            return
        first = None if sent is None or self._ids is None else self._ids.first(sent)
        first = first if waiting is None else waiting.seq
        if first is not None:
            self._result.repeats[index] = first
            return
        if label is not None:
            self._check_classes(label)
        p = float("nan") if batch.probabilities is None else float(batch.probabilities[row])
        self._late.accept(
            batch.X[row],
            id=sent,
            label=label,
            probability=p,
            time=0 if batch.times is None else batch.times[row],
            seq=batch.first + index,
            slices=self._slice_codes(row),
        )
        self._answered.append(index)
        if sent is not None and self._ids is not None:
            self._ids.add(sent, batch.first + index)

    def _check_classes(self, label: str) -> None:
        met, most = self._late.met, self._max_classes
        if most is not None and label not in met and len(met) >= most:
            raise _one_too_many(label, most)


def _one_too_many(label: str, max_classes: int | None) -> InvalidExample:
    return InvalidExample(
        "too_many_classes",
        f"label {label[:40]!r} is not among the first {max_classes} of this feed, its limit",
    )


def _are_same(x: Floats, y: Floats) -> bool:
    """Return whether two rows have the same values; a missing value is the same as another."""
    width = max(len(x), len(y))
    return np.array_equal(widened(x, width), widened(y, width), equal_nan=True)
