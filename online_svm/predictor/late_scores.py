"""Score examples that are learned late by the answers they were given."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from online_svm.predictor.learning_order import LateRows
from online_svm.predictor.pending_examples import PendingExample, answer_runs
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats, Ints


class ScoredAnswers(NamedTuple):
    """Original answers beside the labels that came for them.

    Attributes
    ----------
    begin : int
        Place of the first among the examples that were asked for.
    block : PredictionBlock
    columns : ndarray of shape (m,)
        Index of the true label in the classes of the block; -1 for a probability.
    slices : ndarray of shape (m, n_slices)
        Codes of the values of their slices.
    X : ndarray of shape (m, n_features)
    """

    begin: int
    block: PredictionBlock
    columns: Ints
    slices: Ints
    X: Floats


def scored_answers(examples: Sequence[PendingExample]) -> Iterator[ScoredAnswers]:
    """Yield the answers of examples that are learned, in order; those of a model, not of warm-up.

    A label that the model did not know is in the slot of such labels.
    """
    for block, begin, stop in answer_runs(examples):
        if block.status != "ok":
            continue
        place = {label: column for column, label in enumerate(block.classes)}
        unseen = place.get(None, -1)
        learned = examples[begin:stop]
        columns = [-1 if e.label is None else place.get(e.label, unseen) for e in learned]
        X = np.array([example.x for example in learned])
        slices = np.array([example.slices for example in learned], dtype=np.int64)
        yield ScoredAnswers(begin, block, np.array(columns, dtype=np.int64), slices, X)


def open_terms(late: LateRows) -> Ints:
    """Return what rows add to the sums of `OpenAnswers`, as answers open and close."""
    terms = np.zeros(5, dtype=np.int64)
    for row in np.flatnonzero(late.opens).tolist():
        terms += late.opens[row] * waiting_terms(late.examples[row])
    return terms


def waiting_terms(example: PendingExample) -> Ints:
    """Return the terms of the answer of an example."""
    assert example.answer is not None
    terms: Ints = example.answer.terms[example.answer.row]
    return terms
