"""Columns of label codes against the rule taken literally."""

import numpy as np
import pytest

from online_svm.stream.labels import ClassView


def literally(labels, classes, declared, code):
    if code < 0:
        return -1
    if code < len(labels):
        return classes.index(labels[code])
    assert not declared
    return classes.index(None)


@pytest.mark.parametrize("labels", [["b", "a"], ["10", "9", "7"], ["x"]])
@pytest.mark.parametrize("declared", [True, False])
def test_each_code_has_the_column_of_its_class(labels, declared):
    view = ClassView(labels, declared)
    codes = np.arange(-1, len(labels) + (0 if declared else 3))
    expected = [literally(labels, view.classes, declared, code) for code in codes]
    assert view.columns(codes).tolist() == expected
    assert view.columns(codes[:0]).tolist() == []
