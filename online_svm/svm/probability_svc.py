"""Provide scikit-learn's SVC with calibrated probabilities and intervals."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.svm import SVC
from sklearn.utils import _safe_indexing, check_array, check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted

from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.calibration.venn_abers import VennAbers
from online_svm.compiled.elementary import logistics
from online_svm.svm.out_of_fold import (
    MIN_PAIR_PROBABILITY,
    CoupledPlatt,
    FoldMachine,
    Labelled,
    couple,
    fold_machines,
    pair_values,
)
from online_svm.svm.validation import class_codes, refuse_missing_labels
from online_svm.types import Floats

STEEPNESS = 2.0
"""Slope of the sigmoid in the scores for intervals: it maps the margins -1 and 1 to .12 and .88."""


class ProbabilitySVC(SVC):
    """`sklearn.svm.SVC` with probabilities and intervals, to replace `probability=True`.

    Labels, decision values and attributes equal those of `SVC` with the same parameters. Five more
    machines, each fitted without one fold, give out-of-fold decision values for the calibrators, so
    `fit` takes about as long as `SVC(probability=True).fit`.

    Parameters
    ----------
    C, kernel, degree, gamma, coef0, shrinking, tol, cache_size, class_weight, verbose, max_iter
        As in `SVC`. Also `decision_function_shape` and `break_ties`. There is no `probability`.
    random_state : int, RandomState instance or None
        Draws the folds. None means a fixed seed: the same rows give the same probabilities.

    Attributes
    ----------
    classes_, support_, support_vectors_, dual_coef_, intercept_, ...
        As in `SVC`.

    Notes
    -----
    `predict` gives the label of `SVC`: by the sign of the decision value, or by the votes of the
    pairs. It may differ from the most probable class if the two best classes are close, and differs
    more often with `class_weight`, which changes the label but not the probability. With known
    costs, decide by `predict_proba`.

    `predict_proba` couples a sigmoid for each pair of classes, and applies matrix scaling to the
    result. It has no guarantee. With `sample_weight` each row with a positive weight counts once
    for the calibrators, as in `SVC`; other rows are left out.

    `predict_interval` is the hull of this probability and the two of an inductive Venn-Abers
    predictor for the class against the rest, from the machine without the first fold and from that
    fold. If the examples are independent and identically distributed, then for each class the
    probability that assumes the true outcome is calibrated: among the examples for which it is p,
    averaged over draws of all examples, the frequency of the class is p. The interval is not a
    confidence interval. The statement does not hold for the class given the features, for the
    classes jointly, or for one set of examples, and is void if parameters were chosen by the same
    examples. Smaller folds give wider intervals.

    References
    ----------
    J. Platt (1999), Probabilistic outputs for support vector machines. T.-F. Wu, C.-J. Lin,
    R. C. Weng (2004), Probability estimates for multi-class classification by pairwise coupling.
    V. Vovk, I. Petej, V. Fedorova (2015), Large-scale probabilistic predictors with and without
    guarantees of validity.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProbabilitySVC().fit(X, y)
    >>> model.predict(X[[0, 77]])
    array([0, 2])
    >>> model.predict_proba(X[[0, 77]]).round(2)
    array([[0.99, 0.01, 0.  ],
           [0.01, 0.33, 0.66]])
    >>> model.predict_interval(X[[0, 77]]).shape
    (2, 3, 2)
    """

    random_state: int | np.random.RandomState | None
    _map: CoupledPlatt
    _first: FoldMachine
    _bounds: OneAgainstAll

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: Literal["ovo", "ovr"] = "ovr",
        break_ties: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            C=C,
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            shrinking=shrinking,
            tol=tol,
            cache_size=cache_size,
            class_weight=class_weight,
            verbose=verbose,
            max_iter=max_iter,
            decision_function_shape=decision_function_shape,
            break_ties=break_ties,
            random_state=random_state,
        )

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the machine, and the calibrators on its out-of-fold decision values.

        Parameters and errors are as in `SVC`; y has at least two classes, and no missing label.
        """
        refuse_missing_labels(y)
        self._validate_params()
        given, rng = self.random_state, check_random_state(self.random_state or 0)
        self.random_state = rng  # with None, SVC would draw from the global random state
        try:
            super().fit(X, y, sample_weight)
        finally:
            self.random_state = given
        return self._fit_maps(self._labelled(X, y, sample_weight), rng)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probability of each class, shape (n_samples, n_classes).

        Columns are in the order of `classes_`. Rows sum to one.
        """
        check_is_fitted(self)
        return self._map.predict(pair_values(self, X))

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def predict_interval(self, X: ArrayLike) -> Floats:
        """Return a lower and an upper probability of each class, (n_samples, n_classes, 2).

        They enclose `predict_proba`. The notes of the class state the guarantee.
        """
        point = self.predict_proba(X)
        values = self._first.values(self._rows(X))
        interval = self._bounds.predict_interval(_scores(values, len(self.classes_)))
        interval[:, :, 0] = np.minimum(interval[:, :, 0], point)
        interval[:, :, 1] = np.maximum(interval[:, :, 1], point)
        return interval

    def _labelled(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Labelled:
        codes = class_codes(self.classes_, column_or_1d(y))
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return Labelled(self._rows(X), codes, len(self.classes_), weights)

    def _rows(self, X: Any) -> Any:
        """Return rows as an array without column names, or unchanged for a kernel function."""
        if callable(self.kernel):
            return X
        return check_array(X, dtype=np.float64, order="C", accept_sparse="csr")

    def _fit_maps(self, rows: Labelled, rng: np.random.RandomState) -> Self:
        folds = list(fold_machines(self, rows, rng))
        held = [fold.values(_safe_indexing(rows.X, fold.held_out)) for fold in folds]
        order = np.concatenate([fold.held_out for fold in folds])
        self._map = CoupledPlatt().fit(np.concatenate(held), rows.codes[order])
        self._first = folds[0]
        scores = _scores(held[0], rows.n_classes)
        self._bounds = OneAgainstAll(VennAbers).fit(scores, rows.codes[folds[0].held_out])
        return self


def _scores(values: Floats, n_classes: int) -> Floats:
    """Return a score for each class; for two classes only for the second.

    Scores depend on the decision values alone. A calibrator fitted to other folds would depend on
    labels of the first fold, because the machines of those folds were trained on it.
    """
    if n_classes == 2:
        return -values
    return couple(
        np.clip(logistics(STEEPNESS * values), MIN_PAIR_PROBABILITY, 1.0 - MIN_PAIR_PROBABILITY),
        n_classes,
    )
