"""Several classes from two-class maps: one map a pair of classes, coupled (Price et al. 1994)."""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.argument_checks import check_fitted
from online_svm.calibration.labelled_columns import check_codes, check_columns
from online_svm.calibration.one_against_all import normalise_rows
from online_svm.calibration.score_map import ScoreMap
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.storage.arrays import nest, read_ints, under
from online_svm.types import Arrays, Floats, Ints


class OneAgainstOne:
    """Probabilities of K classes from one score map for each pair of classes.

    The map of the pair (i, j) is fitted on the examples of these two classes, with half the
    difference of their columns, (s_j - s_i) / 2, as the score and j as positive. With r_ij the
    probability of i against j, P(i) is 1 / (sum over j of 1 / r_ij - (K - 2)), divided by the sum
    over classes. The result is a point and carries no guarantee, even from Venn-Abers maps: the
    pairs are separate predictions, and their coupling is none of their multiprobabilities.

    Parameters
    ----------
    make_map : callable returning a ScoreMap
        Makes an unfitted map: a class such as `VennAbers`, or a function.

    Attributes
    ----------
    maps_ : list of ScoreMap
        One a pair, in the order (0, 1), (0, 2), ..., (K-2, K-1).
    n_classes_ : int

    References
    ----------
    D. Price, S. Knerr, L. Personnaz, G. Dreyfus (1994), Pairwise neural network classifiers with
    probabilistic outputs. V. Manokhin (2017), Multi-class probabilistic classification using
    inductive and cross Venn-Abers predictors.

    Examples
    --------
    >>> from online_svm.calibration.estimators import VennAbers
    >>> scores = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    >>> OneAgainstOne(VennAbers).fit(scores, [0, 1, 2]).predict([[5.0, 0.0, 0.0]])
    array([[0.5 , 0.25, 0.25]])
    """

    maps_: list[ScoreMap]
    n_classes_: int

    def __init__(self, make_map: Callable[[], ScoreMap]) -> None:
        self.make_map = make_map

    def fit(self, scores: ArrayLike, codes: ArrayLike) -> Self:
        """Fit one map a pair of classes.

        Parameters
        ----------
        scores : array-like of shape (n_samples, n_classes)
            One column a class, at least two.
        codes : array-like of int of shape (n_samples,)
            Class of each example, from 0.

        Returns
        -------
        OneAgainstOne
            Itself.

        Raises
        ------
        InvalidInput
            If a score is not finite, a code is out of range, or the shapes do not fit.

        Examples
        --------
        >>> from online_svm.calibration.estimators import PlattScaling
        >>> len(OneAgainstOne(PlattScaling).fit(np.eye(4), [0, 1, 2, 3]).maps_)
        6
        """
        columns = check_columns(scores)
        if columns.shape[1] < 2:
            raise InvalidInput("scores: pairs need one column a class, at least two")
        classes = check_codes(codes, *columns.shape)
        self.n_classes_ = columns.shape[1]
        self.maps_ = [self._fit_pair(columns, classes, i, j) for i, j in _pairs(self.n_classes_)]
        return self

    def predict(self, scores: ArrayLike) -> Floats:
        """Return the probability of every class for each row of scores.

        Parameters
        ----------
        scores : array-like of shape (n_samples, n_classes)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one.

        Raises
        ------
        InvalidInput
            If a score is not finite, the number of columns differs from that of `fit`, or nothing
            is fitted.

        Examples
        --------
        >>> from online_svm.calibration.estimators import PlattScaling
        >>> OneAgainstOne(PlattScaling).fit(np.eye(2), [0, 1]).predict([[0.0, 0.0]])
        array([[0.5, 0.5]])
        """
        check_fitted(hasattr(self, "maps_"), "OneAgainstOne")
        columns = check_columns(scores)
        if columns.shape[1] != self.n_classes_:
            raise InvalidInput(
                f"scores: expected {self.n_classes_} columns, as in fit, got {columns.shape[1]}"
            )
        inverse = np.full(columns.shape, 2.0 - self.n_classes_)
        with np.errstate(divide="ignore"):  # a pair lost for certain is a class of probability 0
            for (i, j), map_ in zip(_pairs(self.n_classes_), self.maps_, strict=True):
                second = map_.predict(_difference(columns, i, j))
                inverse[:, i] += 1.0 / (1.0 - second)
                inverse[:, j] += 1.0 / second
        return normalise_rows(1.0 / inverse)

    def state(self) -> Arrays:
        """Return the fitted maps as arrays; those of pair number p are named "p.name".

        Examples
        --------
        >>> from online_svm.calibration.estimators import PlattScaling
        >>> sorted(OneAgainstOne(PlattScaling).fit(np.eye(2), [0, 1]).state())
        ['0.options', '0.parameters', 'n_classes']
        """
        check_fitted(hasattr(self, "maps_"), "OneAgainstOne")
        state: Arrays = {"n_classes": np.array([self.n_classes_], dtype=np.int64)}
        for p, map_ in enumerate(self.maps_):
            state |= nest(str(p), map_.state())
        return state

    @classmethod
    def from_state(cls, state: Arrays, make_map: Callable[[], ScoreMap]) -> Self:
        """Return the fitted maps that `state` describes; `make_map` gives their class.

        Raises
        ------
        InvalidSnapshot
            If an array is absent or has another type or length.

        Examples
        --------
        >>> from online_svm.calibration.estimators import PlattScaling
        >>> fitted = OneAgainstOne(PlattScaling).fit(np.eye(2), [0, 1])
        >>> OneAgainstOne.from_state(fitted.state(), PlattScaling).predict([[0.0, 0.0]])
        array([[0.5, 0.5]])
        """
        restored = cls(make_map)
        n_classes = int(read_ints(state, "n_classes", 1)[0])
        n_pairs = n_classes * (n_classes - 1) // 2
        if n_classes < 2 or n_pairs > len(state):  # before anything of that size is made
            raise InvalidSnapshot(f"map state: no maps for the pairs of {n_classes} classes")
        kind = type(make_map())
        restored.n_classes_ = n_classes
        restored.maps_ = [kind.from_state(under(str(p), state)) for p in range(n_pairs)]
        return restored

    def _fit_pair(self, columns: Floats, classes: Ints, i: int, j: int) -> ScoreMap:
        here = (classes == i) | (classes == j)
        return self.make_map().fit(_difference(columns, i, j)[here], classes[here] == j)


def _pairs(n_classes: int) -> Iterator[tuple[int, int]]:
    return combinations(range(n_classes), 2)


def _difference(columns: Floats, i: int, j: int) -> Floats:
    return columns[:, j] * 0.5 - columns[:, i] * 0.5  # halves: huge scores stay finite
