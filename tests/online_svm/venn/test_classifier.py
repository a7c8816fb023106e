"""InductiveVennClassifier: scikit-learn's conventions, and the same answers by every route."""

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.split import training_mask
from online_svm.svm.online_svc import OnlineSVC
from online_svm.venn.classifier import InductiveVennClassifier


def data(n: int = 160, n_classes: int = 3) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 2)) + 2.0 * np.eye(n_classes, 2)[codes], np.array(list("abc"))[codes]


@parametrize_with_checks([InductiveVennClassifier()])
def test_scikit_learn_finds_its_conventions_kept(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


def test_rows_sorted_by_class_are_learned_like_any_others() -> None:
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        venn = InductiveVennClassifier().fit(X, y)
    assert venn.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("split", "order", "part"),
    [
        ("oldest", [0] * 70 + [0, 1] * 15, "class 1 is not in the proper training set"),
        ("oldest", [0, 1] * 35 + [1] * 30, "class 0 is not in the calibration set"),
        ("interleaved", [0] * 99 + [1], "class 1 is not in the"),
    ],
)
def test_a_class_that_one_part_lacks_is_named_by_a_warning(
    split: str, order: list[int], part: str
) -> None:
    X = np.random.default_rng(0).normal(size=(100, 2)) + np.array(order)[:, None]
    with pytest.warns(UserWarning, match=part) as caught:
        InductiveVennClassifier(split=split).fit(X, order)
    assert [warning.filename for warning in caught] == [__file__]


def test_classes_in_both_parts_raise_no_warning() -> None:
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for split in ("oldest", "interleaved"):
            InductiveVennClassifier(split=split).fit(X, y)


BAD_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"gamma": "nonsense"}, "gamma: 'nonsense' is unknown"),
    ({"gamma": 0.0}, "gamma: must be a positive number"),
    ({"gamma": None}, "gamma: must be a positive number"),
    ({"C": -1.0}, "C: must be a positive number"),
    ({"tol": 0.0}, "tol: must be a positive number"),
    ({"kernel": "cubic"}, "kernel"),
    ({"class_weight": "even"}, "class_weight: 'even' is unknown"),
    ({"class_weight": {"a": 0.0}}, "class_weight: must be a positive number"),
    ({"class_weight": {"a": 2.0, "z": 1.0}}, "class_weight: 'z' is not one of the classes"),
]


@pytest.mark.parametrize(("settings", "message"), BAD_SETTINGS, ids=str)
def test_a_setting_is_refused_alone_and_inside_alike(
    settings: dict[str, Any], message: str
) -> None:
    X, y = data()
    for estimator in (OnlineSVC(**settings), InductiveVennClassifier(OnlineSVC(**settings))):
        with pytest.raises(InvalidConfig, match=message):
            estimator.fit(X, y)
    venn = InductiveVennClassifier(OnlineSVC(**settings), refit_every=100)
    with pytest.raises(InvalidConfig, match=message):  # not first at the tenth example
        venn.partial_fit(X[:1], y[:1], classes=["a", "b", "c"])


@pytest.mark.parametrize("class_weight", [{"a": 5.0}, {}, {"a": 1.0, "b": 2.0, "c": 3.0, "d": 9.0}])
def test_a_class_without_a_weight_weighs_one_as_in_scikit_learn(
    class_weight: dict[str, float],
) -> None:
    X, y = data()
    full = {label: class_weight.get(label, 1.0) for label in "abc"}
    SVC(class_weight=class_weight).fit(X, y)  # scikit-learn takes it too
    answers = [
        InductiveVennClassifier(OnlineSVC(gamma=0.5, class_weight=w)).fit(X, y).predict_interval(X)
        for w in (class_weight, full)
    ]
    np.testing.assert_array_equal(*answers)
    alone = [
        OnlineSVC(gamma=0.5, class_weight=w).fit(X, y).decision_function(X)
        for w in (class_weight, full)
    ]
    np.testing.assert_array_equal(*alone)


@pytest.mark.parametrize("class_weight", ["balanced", {"a": 0.2, "b": 4.0}])
def test_class_weights_inside_are_those_of_the_same_machine_on_the_training_part(
    class_weight: Any,
) -> None:
    X, y = data(n_classes=2)
    svc = OnlineSVC(gamma=0.5, tol=1e-8, class_weight=class_weight)
    trains = training_mask("interleaved", 0, len(y), 0.7)
    reference = SVC(gamma=0.5, tol=1e-8, class_weight=class_weight).fit(X[trains], y[trains])
    plain = InductiveVennClassifier(OnlineSVC(gamma=0.5, tol=1e-8)).fit(X, y)
    scores = InductiveVennClassifier(svc).fit(X, y)._scorer.score(X)[:, 0]
    expected = reference.decision_function(X)
    np.testing.assert_allclose(scores, expected, atol=1e-4)  # single precision inside
    assert np.abs(plain._scorer.score(X)[:, 0] - expected).max() > 0.01


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
        classes=tuple(np.unique(y)), gamma=0.5, scale="none", refit_lag=0, maps=(),
        committee="single", **protocol,
    )  # fmt: skip
    blocks = OnlinePredictor(config).step_many(X, y.tolist())
    theirs = [
        np.stack([b.venn_lower, b.venn_upper], axis=2)
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
