"""Scores that another model gives: checked, and turned into the first columns of a row.

With the setting `scores`, an example may carry a score, and the version of the model that gave it.
They are the first columns of its row of cells: for two classes the log-odds of the second, for more
one logarithm a class; then the version, a category. A probability is clipped at 1e-9 before its
logarithm is taken, a margin is its own logarithm, clipped at 1e6. An absent score is a gap.

So a score is held, stored, delayed and replayed like any feature.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from online_svm.compiled.elementary import exps, logistics, logs
from online_svm.config import SCORE, SCORE_VERSION, PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.stream.cells import GAP, MIN_FEATURE_SIZE, cell
from online_svm.stream.labels import sorted_labels
from online_svm.types import Floats

Score = float | Sequence[float] | Mapping[str, float] | Floats
"""A number for two classes; or one a class, in the order of the sorted classes or by name."""

MIN_PROBABILITY, MAX_MARGIN = 1e-9, 1e6
MAX_ROUNDING = 1e-5 + 1e-15
"""A probability beyond 0 or 1 by at most 1e-5, as 1.00001 is in binary, is taken for 0 or 1."""
MAX_VERSION = 64  # maximum length of a version in characters


class ScoreColumns:
    """The columns of a row that hold the score and its version.

    `names`: their names, which no feature may have.
    `is_alone`: whether features are ignored.
    `n_scores`: number of columns before the version.

    Examples
    --------
    >>> config = PredictorConfig(classes=["no", "yes"], scores="probability")
    >>> columns = ScoreColumns.of(config)
    >>> columns.names, columns.read(0.5), columns.read({"no": 0.75, "yes": 0.25}).round(3)
    (('score', 'score_version'), array([0.]), array([-1.099]))
    >>> columns.probabilities(np.array([[0.0, 1.0], [np.nan, np.nan]]))
    array([[0.5, 0.5],
           [nan, nan]])
    >>> columns.read(1.5)
    Traceback (most recent call last):
    online_svm.errors.InvalidExample: score is 1.5; send a probability from 0 to 1
    """

    def __init__(self, classes: Sequence[str], *, are_margins: bool, is_alone: bool) -> None:
        self.classes, self._are_margins = sorted_labels(classes), are_margins
        self.is_alone = is_alone
        scores = (SCORE,) if len(classes) == 2 else tuple(f"{SCORE}.{k}" for k in self.classes)
        self.names = (*scores, SCORE_VERSION)
        self.n_scores = len(scores)

    @classmethod
    def of(cls, config: PredictorConfig) -> Self | None:
        """Return the columns under a configuration; None if examples carry no scores."""
        if config.scores is None or config.classes is None:
            return None
        are_margins, is_alone = config.scores == "margin", config.score_role == "alone"
        return cls(config.classes, are_margins=are_margins, is_alone=is_alone)

    def cells(self, x: object, score: object, version: object) -> dict[str, object]:
        """Return the features of an example with its score and version, by name.

        The features of an array are named x0, x1, ... If only the score is used, there are none.

        Raises InvalidExample if score or version cannot be used, or a feature has a name of the
        score's columns.
        """
        found: dict[str, object] = dict.fromkeys(self.names)
        if score is not None:
            found |= zip(self.names, self.read(score).tolist(), strict=False)
        found[SCORE_VERSION] = self.version(version)
        if self.is_alone or x is None:
            return found
        if isinstance(x, np.ndarray | Sequence) and not isinstance(x, str | bytes):
            x = {f"x{i}": value for i, value in enumerate(x)}
        if not isinstance(x, Mapping):
            raise InvalidExample("x_of_type", type=type(x).__name__)
        for name in self.names:
            if name in x:
                raise InvalidExample("feature_of_score", feature=name)
        return found | dict(x.items())

    def version(self, version: object) -> str | None:
        """Return the version as a text that is read as a category.

        Raises InvalidExample unless it is an integer, or a text of at most 64 characters.
        """
        if version is None or version == "":
            return None
        if isinstance(version, bool) or not isinstance(version, int | str | np.integer):
            raise InvalidExample("score_version_of_type", most=MAX_VERSION)
        text = str(version)
        if len(text) > MAX_VERSION:
            raise InvalidExample("score_version_of_type", most=MAX_VERSION)
        return text

    def read(self, score: object) -> Floats:
        """Return one score as log-odds, shape (n_scores,). Raises InvalidExample."""
        if isinstance(score, Mapping):
            if score.keys() != set(self.classes):
                raise InvalidExample("score_of_classes", declared=list(self.classes))
            score = [score[label] for label in self.classes]
        if isinstance(score, str | bytes | bool):
            raise InvalidExample("score_of_classes", declared=list(self.classes))
        values = score if isinstance(score, np.ndarray | Sequence) else [score]
        for value in values:
            is_number = isinstance(value, int | float | np.integer | np.floating)
            if isinstance(value, bool) or not is_number:
                raise InvalidExample("score_of_classes", declared=list(self.classes))
        try:
            row = np.array([values], dtype=np.float64)
        except OverflowError:
            raise InvalidExample("score_not_finite") from None
        odds: Floats = self.log_odds(row)[0]
        return odds

    def log_odds(self, scores: Floats) -> Floats:
        """Return scores as log-odds, shape (m, n_scores); a row with NaN is a row of gaps.

        `scores`, shape (m, 1), or (m, n_classes) in the order of the sorted classes.

        Raises InvalidExample for the first score that cannot be used.
        """
        n_classes = len(self.classes)
        if scores.ndim != 2 or scores.shape[1] not in {n_classes, self.n_scores}:
            raise InvalidExample("score_of_classes", declared=list(self.classes))
        if np.isinf(scores).any():
            raise InvalidExample("score_not_finite")
        if self._are_margins:
            found = np.clip(scores, -MAX_MARGIN, MAX_MARGIN)
        else:
            found = self._logarithms(scores)
        if found.shape[1] > self.n_scores:
            found = found[:, 1:] - found[:, :1]
        found[np.isnan(found).any(axis=1)] = GAP
        found[np.abs(found) < MIN_FEATURE_SIZE] = 0.0
        return found

    def _logarithms(self, scores: Floats) -> Floats:
        """Return the logarithm of the probability of each class, shape (m, n_classes)."""
        wrong = (scores < -MAX_ROUNDING) | (scores > 1.0 + MAX_ROUNDING)
        if wrong.any():
            raise InvalidExample("score_out_of_range", p=float(scores[wrong][0]))
        scores = np.clip(scores, 0.0, 1.0)
        if scores.shape[1] == 1:
            scores = np.column_stack((1.0 - scores, scores))
        total = np.zeros((len(scores), 1))
        for k in range(scores.shape[1]):  # in order: the bits do not depend on the number of rows
            total[:, 0] += scores[:, k]
        if (total == 0.0).any():
            raise InvalidExample("score_of_zeros")
        return logs(np.maximum(scores / total, MIN_PROBABILITY))

    def given(self, X: Floats) -> Floats:
        """Return the log-odds of the scores in rows of cells, shape (m, n_scores); gaps are NaN."""
        return np.ascontiguousarray(X[:, : self.n_scores])

    def versions(self, X: Floats) -> Floats:
        """Return the cell of the version in each row, shape (m,)."""
        versions: Floats = X[:, self.n_scores]
        return versions

    def probabilities(self, X: Floats) -> Floats:
        """Return the probabilities that the scores state, shape (m, n_classes); NaN for gaps."""
        odds = self.given(X)
        if self.n_scores == 1:
            p = np.where(np.isnan(odds[:, 0]), GAP, logistics(odds[:, 0]))
            return np.column_stack((1.0 - p, p))
        weights = exps(odds - odds.max(axis=1, keepdims=True))
        total = np.zeros(len(weights))
        for k in range(weights.shape[1]):
            total += weights[:, k]
        weights[np.isnan(odds[:, 0])] = GAP
        return np.asarray(weights / total[:, None])

    def rows(self, scores: Floats, versions: Sequence[Any] | None = None) -> Floats:
        """Return rows of scores without features, shape (m, n_scores + 1).

        `scores`: as in `log_odds`; `versions`, length m: None for no version.
        """
        odds = self.log_odds(scores)
        column = [GAP] * len(odds)
        if versions is not None:
            column = [cell(self.version(version)) for version in versions]
        return np.column_stack((odds, column))
