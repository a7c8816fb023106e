"""Answered examples that wait to be learned, with their original answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from typing import Any, NamedTuple, Self

import numpy as np

from online_svm.metrics.cumulative import possible_terms
from online_svm.storage.state import Header, State, nest, require, under
from online_svm.storage.state_schema import StateSchema, floats
from online_svm.stream.cells import stacked, widened
from online_svm.stream.guarantee_reason import GuaranteeReason
from online_svm.stream.input_batch import InputBatch
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Arrays, Bools, Floats, Ints

_OUTPUT_AXES = {"odds": "m i s", "experts": "m e c", "forecasts": "m w c"}
"""Axes of member outputs; others have shape (m, n_classes, n_stored), and an expert stores them."""


class AnswerTimeOutputs(NamedTuple):
    """Answer-time outputs of m rows with delayed labels."""

    learns: Bools  # shape (m,); whether a row is learned; the call answers the other rows
    rows: Ints  # shape (m,); for a learned row, the row of the same call that answered it; else -1
    answers: list[dict[str, Floats] | None]
    # For the other learned rows, `PredictionBlock.member_outputs` of their answers; None if absent.
    ages: Floats  # shape (m,); examples learned since the answer of a row that is learned; else 0

    def sources(self, shapes: Mapping[str, tuple[int, ...]]) -> Ints:
        """Return for each row the one that has its outputs, shape (m,); -1: it is answered now.

        A learned row has those of its answer: of an earlier row, or its own if they were stored.
        Without stored outputs of these shapes, by name, it is learned with those of now.
        """
        rows = self.rows.copy()
        for row in np.flatnonzero(self.learns & (rows < 0)).tolist():
            found = self.answers[row] or {}
            if all(name in found and found[name].shape == shapes[name] for name in shapes):
                rows[row] = row
        return rows

    def fill(self, name: str, values: Floats, sources: Ints) -> None:
        """Write the stored outputs to `values`, shape (m, ...), for rows that are their source."""
        for row in np.flatnonzero(sources == np.arange(len(sources))).tolist():
            values[row] = (self.answers[row] or {})[name]


def member_outputs_from_state(state: Arrays) -> dict[str, Floats]:
    """Return the stored member outputs of waiting examples."""
    schema = StateSchema(
        *(
            floats(name, _OUTPUT_AXES.get(name, f"m c {name}"), optional=name == "experts")
            for name in state
        )
    )
    outputs = schema.values("waiting answers", None, state)
    for pair in (("experts", "forecasts"), ("experts", "history")):
        require(len(outputs.keys() & set(pair)) != 1, f"{pair[0]} without {pair[1]}")
    for name in outputs.keys() & {"experts", "forecasts"}:
        parts = outputs[name]
        asleep = np.isnan(parts).all(axis=-1, keepdims=True) & (name == "experts")
        require(bool((((parts >= 0.0) & (parts <= 1.0 + 1e-9)) | asleep).all()), name)
        require(not asleep.all(axis=1).any(), name)
    return outputs


_MAPS = {"maps": "maps", "map_intervals": "map_intervals", "member_outputs": "said"}
"""Attributes that hold arrays by name, and their names in stored states."""

_SCHEMA = tuple(f.name for f in fields(PredictionBlock))
_ARRAYS = tuple(f.name for f in fields(PredictionBlock) if f.type in (Floats, Ints))
_DECIDED = ("actions", "action", "expected_cost", "sets", "notices")  # not needed once published
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
    header["reason"] = None if block.reason is None else block.reason.about
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
    about = header["reason"]
    values["reason"] = None if about is None else GuaranteeReason.of(about)
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

    @classmethod
    def of(cls, batch: InputBatch, row: int, index: int) -> Self:
        """Return the example in a row of a batch, which has this index."""
        example = cls(
            batch.X[row].copy(),
            id=batch.id_of(row),
            label=batch.labels[row],
            time=0 if batch.times is None else batch.times[row],
            seq=batch.first + index,
        )
        if batch.probabilities is not None:
            example.probability = float(batch.probabilities[row])
        return example

    def has_features(self, x: Floats) -> bool:
        """Return whether its features equal `x`; missing values are equal."""
        width = max(len(x), len(self.x))
        return np.array_equal(widened(x, width), widened(self.x, width), equal_nan=True)

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


def answer_time_outputs(
    examples: Sequence[PendingExample], learns: Bools, answers: Bools, before: Ints
) -> AnswerTimeOutputs | None:
    """Return the answer-time outputs of rows; None if no row learns an example of `examples`.

    `learns`, `answers`, shape (m,): whether each row is learned, or asks for an answer.
    `before`, shape (m,): examples learned before each row.
    """
    if not examples or not learns.any():
        return None
    rows = np.full(len(examples), -1, dtype=np.int64)
    stored: list[dict[str, Floats] | None] = [None] * len(examples)
    then = np.zeros(len(examples), dtype=np.int64)
    here = {examples[i].number: i for i in np.flatnonzero(answers).tolist()}
    for i in np.flatnonzero(learns).tolist():
        example = examples[i]
        if example.number in here:
            rows[i] = here[example.number]
            then[i] = before[rows[i]]
        elif example.answer is not None and example.answer.block.member_outputs is not None:
            outputs, row = example.answer.block.member_outputs, example.answer.row
            stored[i] = {name: values[row] for name, values in outputs.items()}
            then[i] = example.answer.block.n[row]
    known = (rows >= 0) | np.array([one is not None for one in stored])
    ages = np.where(known, before - then, 0).astype(np.float64)
    return AnswerTimeOutputs(learns, rows, stored, ages)


def answer_runs(examples: Sequence[PendingExample]) -> Iterator[AnswerRun]:
    """Yield the original answers of examples in order, in as few blocks as possible."""
    begin = 0
    for i in range(1, len(examples) + 1):
        first, last = examples[begin].original, examples[i - 1].original
        then = None if i == len(examples) else examples[i].original
        if then is None or then.block is not last.block or then.row != last.row + 1:
            yield AnswerRun(first.block.part(first.row, last.row + 1), begin, i)
            begin = i


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
