"""Answered examples that wait to be learned, with their original answers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from online_svm.predictor.earlier import Earlier, said_from_state
from online_svm.predictor.open_answers import possible_terms
from online_svm.storage.arrays import nest, require, under
from online_svm.storage.state import Header, State
from online_svm.stream.cells import stacked
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Arrays, Bools, Floats, Ints

_MAPS = ("maps", "map_intervals", "said")
_FIELDS = tuple(f.name for f in fields(PredictionBlock))
_ARRAYS = tuple(f.name for f in fields(PredictionBlock) if f.type in (Floats, Ints))
_DECIDED = ("actions", "action", "expected_cost")  # they follow from the rest
_CONSTANTS = tuple(name for name in _FIELDS if name not in _ARRAYS + _MAPS + _DECIDED)


def can_join(one: PredictionBlock, other: PredictionBlock) -> bool:
    """Return whether two blocks differ in their rows alone."""
    return _common(one) == _common(other)


def joined(blocks: Sequence[PredictionBlock]) -> PredictionBlock:
    """Return blocks that can be joined as one."""
    first = blocks[0]
    if len(blocks) == 1:
        return first
    changes: dict[str, Any] = {
        name: np.concatenate([getattr(block, name) for block in blocks]) for name in _ARRAYS
    }
    for name in _MAPS:
        if getattr(first, name) is not None:
            changes[name] = {
                key: np.concatenate([getattr(block, name)[key] for block in blocks])
                for key in getattr(first, name)
            }
    return replace(first, **changes)


def block_state(block: PredictionBlock) -> State:
    """Return a block as a state; `block_from_state` gives it back.

    Examples
    --------
    >>> from online_svm.predictor.warm_up import warming_block
    >>> block = warming_block(("a", "b"), np.array([3, 4]))
    >>> block_from_state(block_state(block)).n, block_state(block).header["classes"]
    (array([3, 4]), ('a', 'b'))
    """
    header: dict[str, Any] = {name: getattr(block, name) for name in _CONSTANTS}
    arrays: Arrays = {name: getattr(block, name) for name in _ARRAYS}
    for name in _MAPS:
        values = getattr(block, name)
        header[name] = None if values is None else list(values)
        arrays |= nest(name, values or {})
    return State(header, arrays)


def block_from_state(state: State) -> PredictionBlock:
    """Return the block that `state` describes.

    Raises
    ------
    InvalidSnapshot, LookupError, TypeError, ValueError
        If a part is missing, or has another number of rows, or one that is learned another range.
    """
    header, arrays = state
    values: dict[str, Any] = {name: header[name] for name in _CONSTANTS}
    values["classes"] = tuple(header["classes"])
    values |= {name: arrays[name] for name in _ARRAYS}
    for name in _MAPS:
        held = under(name, arrays)
        values[name] = None if header[name] is None else {key: held[key] for key in header[name]}
    if values["said"] is not None:
        values["said"] = said_from_state(values["said"])
    size = len(arrays["n"])
    require(all(len(array) == size for array in arrays.values()), "an answer")
    return PredictionBlock(**values)


def _common(block: PredictionBlock) -> tuple[object, ...]:
    """Return what all rows of a block have in common."""
    constants = tuple(getattr(block, name) for name in _CONSTANTS)
    shapes = tuple(getattr(block, name).shape[1:] for name in _ARRAYS)
    maps = tuple(None if (m := getattr(block, name)) is None else tuple(m) for name in _MAPS)
    return constants + shapes + maps


class OriginalAnswer(NamedTuple):
    """One answer: a row of the block it was given in, and of what that may come to."""

    block: PredictionBlock
    terms: Ints
    row: int


@dataclass(slots=True, eq=False)
class PendingExample:
    """An accepted example, and what came of it so far.

    Attributes
    ----------
    number : int
        Examples accepted before it.
    id : str or None
        The producer's.
    x : ndarray of shape (n_features,)
    time : int
        Milliseconds; 0 where none was given.
    seq : int
        Of its entry.
    label : str or None
    probability : float
        In the place of a label; NaN where there is none.
    slices : ndarray of shape (n_slices,)
        Codes of the values of its slices.
    answer : OriginalAnswer or None
        The original answer, once it is given.
    """

    number: int
    id: str | None
    x: Floats
    time: int
    seq: int
    label: str | None
    probability: float
    slices: Ints
    answer: OriginalAnswer | None = None

    @property
    def has_target(self) -> bool:
        """Whether it can be learned."""
        return self.label is not None or not np.isnan(self.probability)


class AnswerRun(NamedTuple):
    """Examples whose answers follow one another in one block.

    Attributes
    ----------
    block : PredictionBlock
        Their answers.
    begin, stop : int
        The examples, of those that were asked for.
    """

    block: PredictionBlock
    begin: int
    stop: int


def give(examples: Iterable[PendingExample], block: PredictionBlock) -> None:
    """Keep the rows of a block as the answers of examples, in order."""
    terms = possible_terms(block)
    for row, example in enumerate(examples):
        example.answer = OriginalAnswer(block, terms, row)


def earlier_of(examples: Sequence[PendingExample], learns: Bools) -> Earlier:
    """Return what was said of the rows that are learned, when they were answered.

    Parameters
    ----------
    examples : sequence of m PendingExample
    learns : ndarray of shape (m,)
        The others are answered here.
    """
    rows = np.full(len(examples), -1, dtype=np.int64)
    answers: list[dict[str, Floats] | None] = [None] * len(examples)
    here = {e.number: i for i, e in enumerate(examples) if not learns[i]}
    for i in np.flatnonzero(learns).tolist():
        example = examples[i]
        if example.number in here:
            rows[i] = here[example.number]
        elif example.answer is not None and example.answer.block.said is not None:
            said, row = example.answer.block.said, example.answer.row
            answers[i] = {name: values[row] for name, values in said.items()}
    return Earlier(learns, rows, answers)


def answer_runs(examples: Sequence[PendingExample]) -> Iterator[AnswerRun]:
    """Yield the original answers of examples in order, as few blocks as possible."""
    begin = 0
    for i in range(1, len(examples) + 1):
        first, last = _answer(examples[begin]), _answer(examples[i - 1])
        if i == len(examples) or not _follows(last, _answer(examples[i])):
            yield AnswerRun(first.block.part(first.row, last.row + 1), begin, i)
            begin = i


def pending_state(examples: Sequence[PendingExample]) -> State:
    """Return examples with their answers; equal ones give equal states, in whatever calls.

    From now on the examples hold answers that one model gave alike in one block: a block for each
    takes several times the memory.
    """
    header: Header = {
        "ids": [example.id for example in examples],
        "labels": [example.label for example in examples],
        "answers": [],
    }
    arrays: Arrays = {
        "numbers": np.array([example.number for example in examples], dtype=np.int64),
        "times": np.array([example.time for example in examples], dtype=np.int64),
        "seqs": np.array([example.seq for example in examples], dtype=np.int64),
        "probs": np.array([example.probability for example in examples]),
    }
    if examples:
        arrays["X"] = stacked([example.x for example in examples])
        arrays["slices"] = np.array([example.slices for example in examples], dtype=np.int64)
    done = 0
    for k, block in enumerate(_joined_runs(answer_runs(examples))):
        state = block_state(block)
        header["answers"].append(state.header)
        arrays |= nest(f"answer.{k}", state.arrays)
        give(examples[done : done + len(block)], block)
        done += len(block)
    return State(header, arrays)


def pending_from_state(state: State) -> list[PendingExample]:
    """Return the examples that `state` describes.

    Raises
    ------
    LookupError, TypeError, ValueError
        If a part is missing, or they do not fit one another.
    """
    header, arrays = state
    ids, labels = header["ids"], header["labels"]
    columns: list[list[Any]] = [arrays[name].tolist() for name in ("numbers", "times", "seqs")]
    probs = arrays["probs"].tolist()
    X, slices = (arrays[name] if ids else () for name in ("X", "slices"))
    rows = (labels, *columns, probs, X, slices)
    require(all(len(column) == len(ids) for column in rows), "pending")
    examples = [
        PendingExample(number, sent, x, time, seq, label, p, codes)
        for sent, label, number, time, seq, p, x, codes in zip(ids, *rows, strict=True)
    ]
    done = 0
    for k, constants in enumerate(header["answers"]):
        block = block_from_state(State(constants, under(f"answer.{k}", arrays)))
        give(examples[done : done + len(block)], block)
        done += len(block)
    require(done == len(examples), "pending answers")
    return examples


def _answer(example: PendingExample) -> OriginalAnswer:
    assert example.answer is not None
    return example.answer


def _follows(one: OriginalAnswer, other: OriginalAnswer) -> bool:
    return other.block is one.block and other.row == one.row + 1


def _joined_runs(runs: Iterable[AnswerRun]) -> list[PredictionBlock]:
    """Return the blocks of runs, those that one model answered alike joined."""
    groups: list[list[PredictionBlock]] = []
    for run in runs:
        if groups and can_join(groups[-1][0], run.block):
            groups[-1].append(run.block)
        else:
            groups.append([run.block])
    return [joined(group) for group in groups]
