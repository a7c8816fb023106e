"""ScoredRows: which class the scores name."""

import numpy as np

from online_svm.stream.prediction import ScoredRows


def rows_of(classes, scores, point):
    m, columns = len(point), np.zeros(len(point), dtype=np.int64)
    return ScoredRows(
        np.arange(m), classes, columns, *[np.array(point)] * 4, np.array(scores), columns, model=1
    )


def test_of_two_classes_the_sign_of_the_score_names_one():
    rows = rows_of(("a", "b"), [[0.5], [-0.5], [0.0]], [[0.9, 0.1]] * 3)
    assert rows.own.tolist() == [1, 0, 0]
    unseen = rows_of(("a", "b", None), [[0.5]], [[0.8, 0.1, 0.1]])
    assert unseen.own.tolist() == [1]


def test_of_more_classes_the_largest_score_names_one():
    rows = rows_of(("a", "b", "c", None), [[-1.0, 2.0, 0.0]], [[0.7, 0.1, 0.1, 0.1]])
    assert rows.own.tolist() == [1]


def test_without_a_machine_for_each_class_it_is_the_most_probable_one():
    rows = rows_of(("a", "b", "c"), [[-1.0, 2.0]], [[0.7, 0.1, 0.2]])
    assert rows.own.tolist() == [0]
