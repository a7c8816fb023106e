"""The logistic function, against the formula."""

import numpy as np
import pytest

from online_svm.compiled.logistic import logistic, logistic_of


def test_the_logistic_function_agrees_with_the_formula_and_never_overflows() -> None:
    for value in (-30.0, -1.5, 0.0, 2.0, 30.0):
        assert logistic(value) == pytest.approx(1.0 / (1.0 + np.exp(-value)), rel=1e-14)
    assert (logistic(-1e308), logistic(1e308)) == (0.0, 1.0)


def test_a_value_has_the_same_bits_in_an_array_of_any_length() -> None:
    values = np.random.default_rng(0).normal(scale=5.0, size=50)
    whole = logistic_of(values)
    assert whole.tolist() == [logistic(value) for value in values]
    for size in (1, 3, 8, 17):
        assert logistic_of(values[:size]).tolist() == whole[:size].tolist()
