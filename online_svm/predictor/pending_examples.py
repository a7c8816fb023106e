"""Answered examples that wait to be learned, with their original answers.

While labels are missing, they bound accuracy and Brier score from below and above. The expectation
of each score under the announced probabilities is the estimate that NannyML calls confidence-based
performance estimation.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from online_svm.metrics.promised_error import SettledAnswers
from online_svm.storage.state import Header, State, nest, require, under
from online_svm.storage.state_schema import StateSchema, floats
from online_svm.stream.cells import stacked
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import MeanBounds, MethodReport
from online_svm.types import Arrays, Bools, Floats, Ints

_OUTPUT_AXES = {"odds": "m i s", "parts": "m k c", "experts": "m e c"}
"""Of member outputs; the others, shape (m, n_classes, n_stored), are what an expert stores."""


class AnswerTimeOutputs(NamedTuple):
    """Answer-time outputs of m rows with delayed labels."""

    learns: Bools  # shape (m,); whether a row is learned; the call answers the other rows
    rows: Ints  # shape (m,); for a learned row, the row of the same call that answered it; else -1
    answers: list[dict[str, Floats] | None]
    # For the other learned rows, the outputs by `RecentEnsemble.answer`; None without a model.


def member_outputs_from_state(state: Arrays) -> dict[str, Floats]:
    """Return the stored member outputs of waiting examples."""
    schema = StateSchema(*(floats(name, _OUTPUT_AXES.get(name, f"m c {name}")) for name in state))
    outputs = schema.values("waiting answers", None, state)
    for pair in (("odds", "parts"), ("experts", "history")):
        require(len(outputs.keys() & set(pair)) != 1, f"{pair[0]} without {pair[1]}")
    for name in outputs.keys() & {"parts", "experts"}:
        parts = outputs[name]
        require(bool(((parts >= 0.0) & (parts <= 1.0 + 1e-9)).all()), name)
    return outputs


_UNIT = 1 << 32
"""Fixed-point unit of the terms: integer sums are exact, so terms can be subtracted again."""

COUNT, TOP, BEST, WORST, EXPECTED = range(5)


def possible_terms(block: PredictionBlock) -> Ints:
    """Return the terms of each row of a block for the sums of `OpenAnswers`, shape (m, 5).

    Warm-up rows are never scored: their terms are zero.
    """
    terms = np.zeros((len(block), 5), dtype=np.int64)
    if block.status != "ok":
        return terms
    scores = _brier_by_outcome(block.point)
    expected = _sum_of_columns(block.point * scores)
    own = block.point[np.arange(len(block)), block.label]
    columns = (own, scores.min(axis=1), scores.max(axis=1), expected)
    terms[:, COUNT] = 1
    terms[:, TOP:] = np.rint(np.column_stack(columns) * _UNIT).astype(np.int64)
    return terms


class OpenAnswers:
    """Sums over the answers of a model whose labels are missing."""

    def __init__(self) -> None:
        self._sums = np.zeros(5, dtype=np.int64)

    @property
    def count(self) -> int:
        """Number of answers without a label."""
        return int(self._sums[COUNT])

    def add(self, terms: Ints) -> None:
        """Add terms of answers; negated terms remove an answer."""
        self._sums += terms

    def accuracy(self, scored: int, report: MethodReport) -> MeanBounds | None:
        """Return the lowest, expected and highest accuracy of scored and open answers."""
        found = 0.0 if report.predicted.accuracy is None else report.predicted.accuracy
        return self._bounds(scored, found, 0.0, self._value(TOP), float(self.count))

    def brier(self, scored: int, report: MethodReport) -> MeanBounds | None:
        """Return the best, expected and worst Brier score of scored and open answers."""
        found = 0.0 if report.brier is None else report.brier
        values = (self._value(BEST), self._value(EXPECTED), self._value(WORST))
        return self._bounds(scored, found, *values)

    def _bounds(
        self, scored: int, found: float, least: float, expected: float, most: float
    ) -> MeanBounds | None:
        total = scored + self.count
        if not total:
            return None
        known = found * scored
        return MeanBounds(
            (known + least) / total, (known + expected) / total, (known + most) / total
        )

    def _value(self, place: int) -> float:
        return int(self._sums[place]) / _UNIT


def _brier_by_outcome(probabilities: Floats) -> Floats:
    """Return the Brier score of each row for each possible label."""
    if probabilities.shape[1] == 2:
        second = probabilities[:, 1:]
        first = 1.0 - second
        return np.concatenate([second * second, first * first], axis=1)
    squares = _sum_of_columns(probabilities * probabilities)
    scores: Floats = squares[:, None] - 2.0 * probabilities + 1.0
    return scores


def _sum_of_columns(values: Floats) -> Floats:
    """Return row sums, added in column order: the bits do not depend on the number of rows."""
    total = np.zeros(len(values))
    for k in range(values.shape[1]):
        total += values[:, k]
    return total


_MAPS = {"maps": "maps", "map_intervals": "map_intervals", "member_outputs": "said"}
"""Attributes that hold arrays by name, and their names in stored states."""

_SCHEMA = tuple(f.name for f in fields(PredictionBlock))
_ARRAYS = tuple(f.name for f in fields(PredictionBlock) if f.type in (Floats, Ints))
_DECIDED = ("actions", "action", "expected_cost")  # not needed once published
_BUDGETED = ("label_probability", "label_draw")  # only with a label budget
_CONSTANTS = tuple(
    name for name in _SCHEMA if name not in {*_ARRAYS, *_MAPS, *_DECIDED, *_BUDGETED}
)


def joined(blocks: Sequence[PredictionBlock]) -> PredictionBlock:
    """Concatenate blocks that agree in everything but their rows."""
    first = blocks[0]
    if len(blocks) == 1:
        return first
    changes: dict[str, Any] = {
        name: np.concatenate([getattr(block, name) for block in blocks])
        for name in (*_ARRAYS, *_BUDGETED)
        if getattr(first, name) is not None
    }
    for name in _MAPS:
        if getattr(first, name) is not None:
            changes[name] = {
                key: np.concatenate([getattr(block, name)[key] for block in blocks])
                for key in getattr(first, name)
            }
    return replace(first, **changes)


def block_state(block: PredictionBlock) -> State:
    """Return a block as a state that `block_from_state` reads."""
    header: dict[str, Any] = {name: getattr(block, name) for name in _CONSTANTS}
    arrays: Arrays = {
        name: values
        for name in (*_ARRAYS, *_BUDGETED)
        if (values := getattr(block, name)) is not None
    }
    for name, stored in _MAPS.items():
        values = getattr(block, name)
        header[stored] = None if values is None else list(values)
        arrays |= nest(stored, values or {})
    return State(header, arrays)


def block_from_state(state: State) -> PredictionBlock:
    """Return the block described by `state`."""
    header, arrays = state
    values: dict[str, Any] = {name: header[name] for name in _CONSTANTS}
    values["classes"] = tuple(header["classes"])
    values |= {name: arrays[name] for name in _ARRAYS}
    values |= {name: arrays[name] for name in _BUDGETED if name in arrays}
    for name, stored in _MAPS.items():
        keys, held = header[stored], under(stored, arrays)
        values[name] = None if keys is None else {key: held[key] for key in keys}
    if values["member_outputs"] is not None:
        values["member_outputs"] = member_outputs_from_state(values["member_outputs"])
    size = len(arrays["n"])
    require(all(len(array) == size for array in arrays.values()), "an answer")
    return PredictionBlock(**values)


def _common(block: PredictionBlock) -> tuple[object, ...]:
    constants = tuple(getattr(block, name) for name in _CONSTANTS)
    shapes = tuple(getattr(block, name).shape[1:] for name in _ARRAYS)
    maps = tuple(None if (m := getattr(block, name)) is None else tuple(m) for name in _MAPS)
    return constants + shapes + maps


class OriginalAnswer(NamedTuple):
    """One row of an answered block, with its possible score terms (`possible_terms`)."""

    block: PredictionBlock
    terms: Ints
    row: int


@dataclass(slots=True, eq=False)
class PendingExample:
    """An accepted example that waits to be learned, with its answer and target."""

    x: Floats  # shape (n_features,)
    id: str | None = None  # the producer's id
    label: str | None = None
    probability: float = float("nan")  # an annotator's probability instead of a label
    time: int = 0  # milliseconds
    seq: int = 0  # sequence number of its entry
    slices: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # shape (n_slices,)
    number: int = -1  # position in the stream: examples accepted before it
    answer: OriginalAnswer | None = None  # the original answer, once given

    @property
    def has_target(self) -> bool:
        """Whether it has a label or a probability to learn."""
        return self.label is not None or not np.isnan(self.probability)

    @property
    def original(self) -> OriginalAnswer:
        """The original answer, which must have been given."""
        assert self.answer is not None
        return self.answer

    @property
    def terms(self) -> Ints:
        """Terms of the original answer for the sums of `OpenAnswers`, shape (5,)."""
        terms: Ints = self.original.terms[self.original.row]
        return terms


class AnswerRun(NamedTuple):
    """Examples whose answers are consecutive rows of one block."""

    block: PredictionBlock  # their answers
    begin: int  # index of the first example given to `answer_runs`
    stop: int  # index after the last one


def give(examples: Iterable[PendingExample], block: PredictionBlock) -> None:
    """Store the rows of a block as the answers of `examples`, in order."""
    terms = possible_terms(block)
    for row, example in enumerate(examples):
        example.answer = OriginalAnswer(block, terms, row)


def answer_time_outputs(examples: Sequence[PendingExample], learns: Bools) -> AnswerTimeOutputs:
    """Return the answer-time outputs of rows; `learns`, shape (m,): whether each is learned."""
    rows = np.full(len(examples), -1, dtype=np.int64)
    answers: list[dict[str, Floats] | None] = [None] * len(examples)
    here = {e.number: i for i, e in enumerate(examples) if not learns[i]}
    for i in np.flatnonzero(learns).tolist():
        example = examples[i]
        if example.number in here:
            rows[i] = here[example.number]
        elif example.answer is not None and example.answer.block.member_outputs is not None:
            outputs, row = example.answer.block.member_outputs, example.answer.row
            answers[i] = {name: values[row] for name, values in outputs.items()}
    return AnswerTimeOutputs(learns, rows, answers)


def answer_runs(examples: Sequence[PendingExample]) -> Iterator[AnswerRun]:
    """Yield the original answers of examples in order, in as few blocks as possible."""
    begin = 0
    for i in range(1, len(examples) + 1):
        first, last = examples[begin].original, examples[i - 1].original
        then = None if i == len(examples) else examples[i].original
        if then is None or then.block is not last.block or then.row != last.row + 1:
            yield AnswerRun(first.block.part(first.row, last.row + 1), begin, i)
            begin = i


class ScoredAnswers(NamedTuple):
    """Answers with the labels that came for them."""

    block: PredictionBlock
    # Shape (m,); column of the true label in the classes of the block; -1 for a probability.
    columns: Ints
    slices: Ints  # shape (m, n_slices); codes of the slice values
    X: Floats  # shape (m, n_features)
    learned: Ints  # shape (m,); examples learned up to and including each row


def scored_answers(examples: Sequence[PendingExample], learned: Ints) -> Iterator[ScoredAnswers]:
    """Yield the original answers of learned examples, in order, except for warm-up answers.

    A label unknown to the model gets the column of unseen labels.
    """
    for block, begin, stop in answer_runs(examples):
        if block.status != "ok":
            continue
        place = {label: column for column, label in enumerate(block.classes)}
        unseen = place.get(None, -1)
        of_run = examples[begin:stop]
        columns = [-1 if e.label is None else place.get(e.label, unseen) for e in of_run]
        yield ScoredAnswers(
            block,
            np.array(columns, dtype=np.int64),
            np.array([example.slices for example in of_run], dtype=np.int64),
            stacked([example.x for example in of_run]),
            learned[begin:stop],
        )


def settled_answers(
    examples: Sequence[PendingExample], learns: Bools, before: Ints, most: int = 1
) -> SettledAnswers:
    """Return the original answers of learned and dropped examples, in order.

    `learns`, shape (m,): whether an example is learned; the others never get a label.
    `before`, shape (m,): examples learned before each.
    `most`: the largest number of examples for which a label may stand, with a label budget.
    """
    none = np.empty(0, dtype=np.int64)
    parts = [SettledAnswers(none, np.empty(0), none, none, none)]
    for block, begin, stop in answer_runs(examples):
        place = {label: column for column, label in enumerate(block.classes) if label is not None}
        truth = [place.get(e.label or "", -1) for e in examples[begin:stop]]
        found = np.where(learns[begin:stop], np.array(truth, dtype=np.int64), -1)
        parts.append(SettledAnswers.of(block, found, before[begin:stop], most))
    return SettledAnswers(*map(np.concatenate, zip(*parts, strict=True)))


def pending_state(examples: Sequence[PendingExample]) -> State:
    """Return examples with their answers; equal examples give equal states for any batching.

    Side effect: consecutive answers of the same model are joined into one block, which the
    examples then share. One block for each example takes several times the memory.
    """
    header: Header = {
        "ids": [example.id for example in examples],
        "labels": [example.label for example in examples],
        "answers": [],
    }
    arrays: Arrays = {
        f"{name}s": np.array([getattr(example, name) for example in examples], dtype=np.int64)
        for name in ("number", "time", "seq")
    }
    arrays["probs"] = np.array([example.probability for example in examples])
    if examples:
        arrays["X"] = stacked([example.x for example in examples])
        arrays["slices"] = np.array([example.slices for example in examples], dtype=np.int64)
    done = 0
    runs = groupby((run.block for run in answer_runs(examples)), _common)
    blocks = [joined(list(of_model)) for _, of_model in runs]
    for k, block in enumerate(blocks):
        state = block_state(block)
        header["answers"].append(state.header)
        arrays |= nest(f"answer.{k}", state.arrays)
        give(examples[done : done + len(block)], block)
        done += len(block)
    return State(header, arrays)


def pending_from_state(state: State) -> list[PendingExample]:
    """Return the examples described by `state`."""
    header, arrays = state
    ids, labels = header["ids"], header["labels"]
    columns: list[list[Any]] = [arrays[name].tolist() for name in ("numbers", "times", "seqs")]
    probs = arrays["probs"].tolist()
    X, slices = (arrays[name] if ids else () for name in ("X", "slices"))
    rows = (labels, *columns, probs, X, slices)
    require(all(len(column) == len(ids) for column in rows), "pending")
    examples = [
        PendingExample(x, sent, label, p, time, seq, codes, number)
        for sent, label, number, time, seq, p, x, codes in zip(ids, *rows, strict=True)
    ]
    done = 0
    for k, constants in enumerate(header["answers"]):
        block = block_from_state(State(constants, under(f"answer.{k}", arrays)))
        give(examples[done : done + len(block)], block)
        done += len(block)
    require(done == len(examples), "pending answers")
    return examples
