"""The logistic function, against the formula."""

import numpy as np
import pytest

from online_svm.compiled.logistic import logistic


def test_the_logistic_function_agrees_with_the_formula_and_never_overflows() -> None:
    for value in (-30.0, -1.5, 0.0, 2.0, 30.0):
        assert logistic(value) == pytest.approx(1.0 / (1.0 + np.exp(-value)), rel=1e-14)
    assert (logistic(-1e308), logistic(1e308)) == (0.0, 1.0)
