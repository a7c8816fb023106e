"""Answers that look at labels alone: what any method has to be better than."""

import numpy as np

from online_svm.types import Floats, Ints


def no_change(_: Floats, codes: Ints, n_classes: int) -> Floats:
    """Answer the class of the example before, with certainty.

    Examples
    --------
    >>> no_change(np.empty((3, 0)), np.array([1, 0, 1]), 2)[:, 1].tolist()
    [0.5, 1.0, 0.0]
    """
    return _certain(codes[:-1], n_classes)


def prior(_: Floats, codes: Ints, n_classes: int) -> Floats:
    """Answer the share of each class among the examples before, each counted once more.

    Examples
    --------
    >>> prior(np.empty((3, 0)), np.array([1, 1, 0]), 2)[:, 1].round(2).tolist()
    [0.5, 0.67, 0.75]
    """
    counts = 1.0 + _counts_before(codes, n_classes)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def majority(_: Floats, codes: Ints, n_classes: int) -> Floats:
    """Answer the most frequent class among the examples before, with certainty.

    Examples
    --------
    >>> majority(np.empty((4, 0)), np.array([1, 0, 0, 0]), 2)[:, 1].tolist()
    [0.5, 1.0, 0.0, 0.0]
    """
    return _certain(_counts_before(codes, n_classes)[1:].argmax(axis=1), n_classes)


def _counts_before(codes: Ints, n_classes: int) -> Floats:
    counts = np.zeros((len(codes), n_classes))
    counts[1:] = np.cumsum(codes[:-1, np.newaxis] == np.arange(n_classes), axis=0)
    return counts


def _certain(classes: Ints, n_classes: int) -> Floats:
    """Return rows that are sure of a class each, after a first that knows nothing."""
    return np.vstack([np.full(n_classes, 1.0 / n_classes), np.eye(n_classes)[classes]])
