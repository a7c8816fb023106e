"""Answers of a method of the quality benchmark, and the steps that all methods share."""

from collections.abc import Callable

import numpy as np

from online_svm.types import Floats, Ints
from workers.history.backtest.prequential import Published

Answers = dict[str, Published]
"""The published probabilities of a run by the name of their row, of each example."""

Method = Callable[[Floats, Ints, int], Answers]
"""Answers each row before it learns its code, one of 0 ... n_classes - 1."""

EVERY = 250
"""Examples between two fits; the first as many are answered, but not scored, of any method."""

WINDOW = 2000
"""Examples that a fit may use: the last ones."""


def unknown(n: int, n_classes: int) -> Floats:
    """Return what a method says while it knows nothing: all classes alike.

    Examples
    --------
    >>> unknown(1, 4)
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    return np.full((n, n_classes), 1.0 / n_classes)
