import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC, LinearSVC

from online_svm.calibration.platt_data import (
    cross_validated_scores,
    holdout_scores,
    training_scores,
)
from online_svm.errors import InvalidInput


def two_classes(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    return rng.normal(size=(n, 5)) + 0.5 * y[:, None], np.where(y, "spam", "ham")


class Memory(ClassifierMixin, BaseEstimator):
    """Scores a row by whether it was trained on."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.rows_ = set(map(bytes, X))
        return self

    def decision_function(self, X):
        return np.array([bytes(row) in self.rows_ for row in X], dtype=float)

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0.5).astype(int)]


def test_held_out_scores_come_from_a_model_that_never_saw_the_row():
    X, y = two_classes()
    data = holdout_scores(Memory(), X, y)
    assert data.scores.tolist() == [0.0] * 36
    assert data.labels.sum() == round(0.3 * (y == "spam").sum())


@pytest.mark.parametrize("n_splits", [2, 3, 10])
def test_cross_validated_scores_come_from_models_that_never_saw_the_row(n_splits):
    X, y = two_classes()
    data = cross_validated_scores(Memory(), X, y, n_splits=n_splits)
    assert data.scores.tolist() == [0.0] * 120
    assert data.labels.tolist() == (y == "spam").tolist()


def test_training_scores_come_from_a_model_that_saw_every_row():
    X, y = two_classes()
    assert training_scores(Memory(), X, y).scores.tolist() == [1.0] * 120


@pytest.mark.parametrize("scores_of", [holdout_scores, cross_validated_scores])
def test_the_same_seed_gives_the_same_scores_and_leaves_the_estimator_alone(scores_of):
    X, y = two_classes()
    estimator = SVC()
    first, second = (scores_of(estimator, X, y, seed=3) for _ in range(2))
    assert first.scores.tobytes() == second.scores.tobytes()
    assert scores_of(estimator, X, y, seed=4).scores.tobytes() != first.scores.tobytes()
    assert not hasattr(estimator, "support_")


def test_sparse_rows_are_taken():
    X, y = two_classes()
    dense = cross_validated_scores(LinearSVC(dual=False), X, y)
    sparse = cross_validated_scores(LinearSVC(dual=False), csr_matrix(X), y)
    assert sparse.scores == pytest.approx(dense.scores, abs=1e-6)


@pytest.mark.parametrize("y", [["a"] * 6, list("aabbcc")])
@pytest.mark.parametrize("scores_of", [holdout_scores, cross_validated_scores, training_scores])
def test_other_than_two_classes_are_refused(scores_of, y):
    with pytest.raises(InvalidInput, match="y: a sigmoid needs two classes"):
        scores_of(SVC(), np.arange(6.0)[:, None], y)


def test_splits_that_leave_a_part_without_a_class_are_refused():
    X, y = np.arange(6.0)[:, None], [0, 0, 0, 0, 1, 1]
    with pytest.raises(InvalidInput, match=r"n_splits: must lie in 2\.\.2"):
        cross_validated_scores(SVC(), X, y, n_splits=3)
    with pytest.raises(InvalidInput, match="fraction: must lie between 0 and 1"):
        holdout_scores(SVC(), X, y, fraction=1.0)
    with pytest.raises(InvalidInput, match="cannot split this sample"):
        holdout_scores(SVC(), X, y, fraction=0.01)
