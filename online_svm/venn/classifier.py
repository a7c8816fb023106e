"""Provide multiprobabilities for any scoring classifier of scikit-learn, batch or online."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from online_svm.errors import InvalidInput, warn
from online_svm.stream.split import Parts, is_refit_due, parts, training_mask
from online_svm.svm.validation import (
    check_same_classes,
    checked_examples,
    checked_rows,
    class_codes,
    declared_classes,
)
from online_svm.types import Floats, Ints
from online_svm.venn.counted_set import VennAnswers, multiprobabilities
from online_svm.venn.scheme import LatestSet, VennScheme
from online_svm.venn.scorers import make_scorer


@dataclass(eq=False, repr=False)
class InductiveVennClassifier(ClassifierMixin, BaseEstimator):
    """Inductive Venn predictor (Lambrou et al. 2012).

    The examples are split into a proper training set, on which `estimator` is fitted, and a
    calibration set, whose labels are counted by category. For i.i.d. examples the distribution in
    the multiprobability that assumes the true label is calibrated, averaged over draws of the
    calibration set.

    Parameters
    ----------
    estimator : classifier with a decision function, optional
        Default `OnlineSVC()`. An `OnlineSVC` is warm-started at each refit; any other estimator is
        cloned and refitted. Features are not scaled: put a scaler in front.
    taxonomy : {"class", "class-quantile", "class-rank", "margin", "venn-abers"}
        Assigns examples to categories; see `VennScheme`. "class", as in the paper, is the class by
        the estimator. "venn-abers" with more than two classes gives points without a guarantee, and
        `predict_multiproba` raises ValueError.
    split : {"interleaved", "oldest"}
        Assigns examples to the two parts; see `training_mask`. "interleaved" suits rows in any
        order. "oldest" is the paper's protocol: if rows are sorted by class, the proper training
        set lacks the last classes.
    train_fraction : float
        Share of the proper training set, in (0, 1).
    window : int, optional
        Number of newest examples kept; default all.
    refit_every : int
        Learned examples between two refits in `partial_fit`; early ones are at 10, 20, 40, ...
    taxonomy_bins : int
        Number of parts into which "class-quantile", "class-rank" and "margin" divide each class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    References
    ----------
    Lambrou, Papadopoulos, Nouretdinov, Gammerman, "Reliable probability estimates based on support
    vector machines for large multiclass datasets", AIAI 2012.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 2.0 * y[:, None]
    >>> venn = InductiveVennClassifier().fit(X, y)
    >>> venn.predict([[3.0, 3.0]])
    array([1])
    """

    estimator: Any = None
    taxonomy: str = "class"
    split: str = "interleaved"
    train_fraction: float = 0.7
    window: int | None = None
    refit_every: int = 1
    taxonomy_bins: int = 4

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Split, fit the estimator on the proper training set, and count the calibration labels.

        A `UserWarning` names the classes that are missing from either part. Raises ValueError if
        `X`, shape (n_samples, n_features), or `y`, shape (n_samples,), cannot be used, or a
        parameter is out of its range.
        """
        self._check_parameters()
        rows, labels = checked_examples(self, X, y)
        self._begin(declared_classes(labels, may_declare=True))
        codes = class_codes(self.classes_, labels)
        self._hold(rows, codes)
        self._n = len(rows)
        self._warn_of_missing(self._refit())
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn rows one by one, refitting on schedule.

        The first call fixes the classes: `classes`, or the labels in `y`. Raises ValueError if a
        later label is not among them.
        """
        self.progressive_interval(X, y, classes)
        return self

    def progressive_interval(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None
    ) -> Floats:
        """Return the intervals of each row before the row is learned; learn all rows.

        Classes are declared as in `partial_fit`. The shape is (n_samples, n_classes, 2): lower and
        upper probabilities, [0, 1] until a proper training set has two classes.
        """
        is_first = not hasattr(self, "classes_")
        self._check_parameters()
        rows, labels = checked_examples(self, X, y, reset=is_first)
        if is_first:
            self._begin(declared_classes(labels, classes, may_declare=True))
        else:
            check_same_classes(self.classes_, classes)
        codes = class_codes(self.classes_, labels)
        bounds = np.tile([0.0, 1.0], (len(rows), len(self.classes_), 1))
        for i in range(len(rows)):
            self._step(rows[i : i + 1], codes[i : i + 1], bounds[i])
        return bounds

    def predict_multiproba(self, X: ArrayLike) -> Floats:
        """Return p^j(y) at [row, j, y], shape (n_samples, n_classes, n_classes).

        Raises ValueError for the taxonomy "venn-abers" with more than two classes.
        """
        rows = self._queries(X)
        if self._latest is None:
            return multiprobabilities(np.zeros((len(rows), len(self.classes_)), dtype=np.int64))
        return self._latest.venn.multiprobabilities(self._scorer.score(rows))

    def predict_interval(self, X: ArrayLike) -> Floats:
        """Return lower and upper probabilities, shape (n_samples, n_classes, 2)."""
        answers = self._answers(X)
        return np.stack([answers.lower, answers.upper], axis=2)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the mean over the multiprobability, shape (n_samples, n_classes)."""
        return self._answers(X).point

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label with the largest mean probability for each row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        chosen: NDArray[Any] = self.classes_[best]
        return chosen

    def _check_parameters(self) -> None:
        if not 0.0 < self.train_fraction < 1.0:
            raise InvalidInput(f"train_fraction: {self.train_fraction} is not between 0 and 1")
        if self.refit_every < 1:
            raise InvalidInput(f"refit_every: {self.refit_every} is not at least 1")
        if self.window is not None and self.window < 2:
            raise InvalidInput(f"window: {self.window} is not at least 2; None keeps all")

    def _begin(self, classes: NDArray[Any]) -> None:
        self.classes_ = classes
        k = len(classes)
        self._scheme = VennScheme(self.taxonomy, self.taxonomy_bins, k, k, self.window)
        self._scorer = make_scorer(self.estimator, classes, self.window)
        self._n = 0
        self._latest: LatestSet | None = None

    def _step(self, row: Floats, code: Ints, bounds: Floats) -> None:
        """Write the interval of one row to `bounds`, which is [0, 1] before; then learn the row."""
        scores, latest = self._hold(row, code), self._latest
        is_due = is_refit_due(self._n + 1, self.refit_every)
        if scores is not None and latest is not None:
            if is_due:  # not added, because the refit counts all examples again
                latest.answer_last(scores, bounds)
            else:
                answers = latest.venn.answer(scores, code)
                bounds[:, 0], bounds[:, 1] = answers.lower[0], answers.upper[0]
        self._n += 1
        if is_due:
            self._refit()

    def _hold(self, rows: Floats, codes: Ints) -> Floats | None:
        """Hold the next rows; return their scores, or None before the first machine."""
        trains = None
        if self.split != "oldest":
            stop = self._n + len(codes)
            trains = training_mask(self.split, self._n, stop, self.train_fraction)
        return self._scorer.extend(rows, codes, trains)

    def _refit(self) -> Parts:
        """Train on the proper training set of the newest examples, and score the others."""
        start = 0 if self.window is None else max(0, self._n - self.window)
        too_old = len(self._scorer.codes) - (self._n - start)
        if too_old > 0:
            self._scorer.forget(too_old)
        split = parts(self.split, start, self._n, self.train_fraction)
        codes = self._scorer.codes
        # Decided without calibration labels: otherwise the answers would not be calibrated.
        if self._latest is None and len(np.unique(codes[split.training])) < 2:
            return split
        scores = self._scorer.train(split)
        fitted = self._scorer.training_scores() if self._scheme.uses_training else scores[:0]
        self._latest = LatestSet(self._scheme, fitted, scores, codes[split.calibration])
        return split

    def _warn_of_missing(self, split: Parts) -> None:
        """Warn of classes that one of the parts lacks."""
        codes = self._scorer.codes
        for part, index, effect in (
            ("proper training set", split.training, "it will hardly be predicted"),
            ("calibration set", split.calibration, "its probability rests on no example of it"),
        ):
            missing = np.setdiff1d(np.arange(len(self.classes_)), codes[index])
            if len(missing):
                others = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
                label = self.classes_[missing].tolist()[0]
                warn(f"y: class {label!r}{others} is not in the {part}: {effect}; {self._remedy}")

    @property
    def _remedy(self) -> str:
        if self.split == "oldest":
            return "shuffle the rows, or use split='interleaved'"
        return "give more examples of it"

    def _queries(self, X: ArrayLike) -> Floats:
        check_is_fitted(self, "classes_")
        return checked_rows(self, X)

    def _answers(self, X: ArrayLike) -> VennAnswers:
        rows = self._queries(X)
        if self._latest is None:
            return VennAnswers.vacuous(len(rows), len(self.classes_))
        return self._latest.venn.answer(self._scorer.score(rows), np.full(len(rows), -1))
