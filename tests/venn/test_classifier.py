"""InductiveVennClassifier: scikit-learn's conventions, and the same answers by every route."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidInput
from online_svm.prediction import PredictionBlock
from online_svm.predictor import OnlinePredictor
from online_svm.svm.online import OnlineSVC
from online_svm.venn.classifier import InductiveVennClassifier


def data(n: int = 160, n_classes: int = 3) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 2)) + 2.0 * np.eye(n_classes, 2)[codes], np.array(list("abc"))[codes]


@parametrize_with_checks([InductiveVennClassifier()])
def test_scikit_learn_finds_its_conventions_kept(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


PROTOCOLS = [
    {"split": "oldest", "window": None, "refit_every": 1},
    {"split": "oldest", "window": 50, "refit_every": 1},
    {"split": "interleaved", "window": 50, "refit_every": 20},
    {"split": "interleaved", "window": None, "refit_every": 7},
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_progressive_intervals_are_those_of_the_online_predictor(
    protocol: dict[str, Any], n_classes: int
) -> None:
    X, y = data(n_classes=n_classes)
    venn = InductiveVennClassifier(OnlineSVC(gamma=0.5), **protocol)
    ours = venn.progressive_interval(X, y)
    config = PredictorConfig(
        classes=tuple(np.unique(y)), gamma=0.5, scale="none", refit_lag=0, maps=(), **protocol
    )
    blocks = OnlinePredictor(config).step_many(X, y.tolist())
    theirs = [
        np.stack([b.lower, b.upper], axis=2)
        if b.status == "ok"
        else np.tile([0.0, 1.0], (len(b), n_classes, 1))
        for b in blocks
        if isinstance(b, PredictionBlock)
    ]
    expected = np.concatenate(theirs)
    warm = np.array([len(set(y[:i])) > 1 for i in range(len(y))])
    np.testing.assert_array_equal(ours[warm], expected[warm])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_any_estimator_gives_the_intervals_of_the_warm_started_machine(n_classes: int) -> None:
    X, y = data(80, n_classes)
    fast = InductiveVennClassifier(OnlineSVC(gamma=0.5, tol=1e-6))
    slow = InductiveVennClassifier(Refitted(gamma=0.5))
    same = fast.progressive_interval(X, y) == slow.progressive_interval(X, y)
    assert same.all(axis=(1, 2)).mean() >= 0.98


class Refitted(OnlineSVC):
    """Another type, so that it takes the general route: one against all, fitted anew."""

    def fit(self, X: Any, y: Any) -> "Refitted":
        self.classes_ = np.unique(y)
        positive = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self._machines = [SVC(gamma=self.gamma, tol=1e-6).fit(X, y == c) for c in positive]
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        columns = np.stack([m.decision_function(X) for m in self._machines], axis=1)
        return columns[:, 0] if columns.shape[1] == 1 else columns


def test_fitting_at_once_ends_where_learning_row_by_row_does() -> None:
    X, y = data()
    at_once = InductiveVennClassifier().fit(X, y)
    by_rows = InductiveVennClassifier().partial_fit(X, y)
    np.testing.assert_array_equal(at_once.predict_interval(X), by_rows.predict_interval(X))


def test_a_pipeline_with_a_scaler_is_an_estimator_like_any_other() -> None:
    X, y = data()
    venn = InductiveVennClassifier(make_pipeline(StandardScaler(), LogisticRegression()))
    assert venn.fit(X[:120], y[:120]).score(X[120:], y[120:]) > 0.6


def test_interval_point_and_multiprobability_belong_together() -> None:
    X, y = data()
    venn = InductiveVennClassifier().fit(X, y)
    joined, bounds = venn.predict_multiproba(X), venn.predict_interval(X)
    assert joined.shape == (160, 3, 3)
    np.testing.assert_array_equal(joined.min(axis=1), bounds[:, :, 0])
    np.testing.assert_array_equal(joined.max(axis=1), bounds[:, :, 1])
    np.testing.assert_allclose(joined.mean(axis=1), venn.predict_proba(X), atol=1e-15)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"taxonomy": "colour"}, "taxonomy"),
        ({"split": "newest"}, "split"),
        ({"train_fraction": 1.0}, "train_fraction"),
        ({"refit_every": 0}, "refit_every"),
        ({"window": 1}, "window"),
    ],
)
def test_a_parameter_out_of_its_range_is_named(changes: dict[str, Any], message: str) -> None:
    X, y = data()
    with pytest.raises(ValueError, match=message):
        InductiveVennClassifier(**changes).fit(X, y)


def test_a_label_that_was_not_declared_is_named() -> None:
    X, y = data()
    venn = InductiveVennClassifier().partial_fit(X[:20], y[:20], classes=["a", "b", "c"])
    with pytest.raises(InvalidInput, match="'d'"):
        venn.partial_fit(X[:1], ["d"])
