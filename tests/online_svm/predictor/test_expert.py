"""Whose outputs a late label is learned with, and first examples."""

import numpy as np
import pytest

from online_svm.predictor.pending_examples import AnswerTimeOutputs
from online_svm.predictor.simple_experts import MAX_FIRST_EXAMPLES, MAX_FIT_CELLS, FirstExamples

SHAPES = {"p": (2,), "q": (3, 1)}
STORED = {"p": np.array([8.0, 9.0]), "q": np.full((3, 1), 7.0)}


def late(learns, earlier, stored):
    return AnswerTimeOutputs(np.array(learns), np.array(earlier), stored, np.zeros(len(learns)))


def test_a_row_has_its_stored_outputs_those_of_an_earlier_row_or_its_own():
    rows = late([False, True, True, False, True], [-1, 0, -1, -1, -1], [None, None, STORED] * 2)
    sources = rows.sources(SHAPES)
    assert sources.tolist() == [-1, 0, 2, -1, -1]
    for name in SHAPES:
        values = np.zeros((5, *SHAPES[name]))
        rows.fill(name, values, sources)
        np.testing.assert_array_equal(values[2], STORED[name])
        assert not values[[0, 1, 3, 4]].any()


@pytest.mark.parametrize(
    "other", [{}, {"p": STORED["p"]}, STORED | {"p": np.zeros(3)}, STORED | {"q": np.zeros((3, 2))}]
)
def test_stored_outputs_of_other_experts_or_classes_are_not_used(other):
    rows = late([True] * 5, [-1] * 5, [STORED, other, None, STORED, other])
    assert rows.sources(SHAPES).tolist() == [0, -1, -1, 3, -1]


def test_the_newest_labelled_rows_are_kept_and_narrow_ones_end_in_gaps():
    first, rng = FirstExamples(), np.random.default_rng(0)
    expected = []
    for width, size in ((2, 3), (4, 5), (3, 700), (3, 1)):
        X, columns = rng.normal(size=(size, width)), rng.integers(-1, 3, size)
        first.keep(X, columns, 0)
        pairs = zip(X, columns, strict=True)
        expected += [(np.append(x, [np.nan] * (4 - width)), c) for x, c in pairs if c >= 0]
        if width == 2:
            assert first.joined()[0].shape[1] == 2
    X, columns = first.joined()
    assert len(X) == MAX_FIRST_EXAMPLES
    np.testing.assert_array_equal(X, [x for x, _ in expected[-MAX_FIRST_EXAMPLES:]])
    np.testing.assert_array_equal(columns, [c for _, c in expected[-MAX_FIRST_EXAMPLES:]])
    again = FirstExamples()
    again.restore(first.state())
    for one, other in zip(again.joined(), first.joined(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_wide_rows_are_kept_as_far_as_a_fit_takes_them():
    first = FirstExamples()
    first.keep(np.zeros((400, 1)), np.zeros(400, dtype=np.int64), 0)
    first.keep(np.zeros((1, 300)), np.zeros(1, dtype=np.int64), 0)
    assert first.joined()[0].shape == (MAX_FIT_CELLS // 300, 300)


def test_nothing_is_kept_once_the_recent_stacks_have_enough():
    first = FirstExamples()
    first.keep(np.zeros((4, 2)), np.array([0, -1, 1, 1]), 499)
    first.move(np.array([2, 0]))
    assert first.state()["columns"].tolist() == [2, 0, 0]
    first.keep(np.zeros((4, 2)), np.array([0, 1, 1, 1]), 500)
    assert first.state()["columns"].size == 0
    assert first.joined()[0].shape == (0, 0)
