"""InductiveVennClassifier: the same answers by every route."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from online_svm.errors import InvalidConfig, InvalidInput
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.split import training_mask
from online_svm.svm.online_svc import OnlineSVC
from online_svm.venn.classifier import InductiveVennClassifier
from online_svm.venn.scheme import TAXONOMIES


def data(n=160, n_classes=3):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 2)) + 2.0 * np.eye(n_classes, 2)[codes], np.array(list("abc"))[codes]


def test_rows_sorted_by_class_are_learned_like_any_others_without_a_warning():
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert InductiveVennClassifier().fit(X, y).score(X, y) > 0.9
        InductiveVennClassifier(split="oldest").fit(*data())


@pytest.mark.parametrize(
    ("split", "order", "part"),
    [
        ("oldest", [0] * 70 + [0, 1] * 15, "class 1 is not in the proper training set"),
        ("oldest", [0, 1] * 35 + [1] * 30, "class 0 is not in the calibration set"),
        ("interleaved", [0] * 99 + [1], "class 1 is not in the"),
    ],
)
def test_a_class_that_one_part_lacks_is_named_by_a_warning(split, order, part):
    X = np.random.default_rng(0).normal(size=(100, 2)) + np.array(order)[:, None]
    with pytest.warns(UserWarning, match=part) as caught:
        InductiveVennClassifier(split=split).fit(X, order)
    assert [warning.filename for warning in caught] == [__file__]


BAD_SETTINGS = [
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
def test_a_setting_is_refused_alone_and_inside_alike(settings, message):
    X, y = data()
    for estimator in (OnlineSVC(**settings), InductiveVennClassifier(OnlineSVC(**settings))):
        with pytest.raises(InvalidConfig, match=message):
            estimator.fit(X, y)
    venn = InductiveVennClassifier(OnlineSVC(**settings), refit_every=100)
    with pytest.raises(InvalidConfig, match=message):  # not first at the tenth example
        venn.partial_fit(X[:1], y[:1], classes=["a", "b", "c"])


@pytest.mark.parametrize("class_weight", [{"a": 5.0}, {}, {"a": 1.0, "b": 2.0, "c": 3.0, "d": 9.0}])
def test_a_class_without_a_weight_weighs_one_as_in_scikit_learn(class_weight):
    X, y = data()
    SVC(class_weight=class_weight).fit(X, y)  # scikit-learn takes it too
    full = {label: class_weight.get(label, 1.0) for label in "abc"}
    machines = [OnlineSVC(gamma=0.5, class_weight=weights) for weights in (class_weight, full)]
    answers = [
        InductiveVennClassifier(machine).fit(X, y).predict_interval(X) for machine in machines
    ]
    np.testing.assert_array_equal(*answers)
    np.testing.assert_array_equal(*[machine.fit(X, y).decision_function(X) for machine in machines])


@pytest.mark.parametrize("class_weight", ["balanced", {"a": 0.2, "b": 4.0}])
def test_class_weights_inside_are_those_of_the_same_machine_on_the_training_part(class_weight):
    X, y = data(n_classes=2)
    trains = training_mask("interleaved", 0, len(y), 0.7)
    plain, ours = (
        InductiveVennClassifier(OnlineSVC(gamma=0.5, tol=1e-8, class_weight=weights)).fit(X, y)
        for weights in (None, class_weight)
    )
    reference = SVC(gamma=0.5, tol=1e-8, class_weight=class_weight).fit(X[trains], y[trains])
    expected = reference.decision_function(X)
    np.testing.assert_allclose(ours._scorer.score(X)[:, 0], expected, atol=1e-4)  # in 24 bits
    assert np.abs(plain._scorer.score(X)[:, 0] - expected).max() > 0.01


PROTOCOLS = [
    {"split": "oldest", "window": None, "refit_every": 1},
    {"split": "oldest", "window": None, "refit_every": 1, "taxonomy": "venn-abers"},
    {"split": "oldest", "window": 50, "refit_every": 1},
    {"split": "interleaved", "window": 50, "refit_every": 20},
    {"split": "interleaved", "window": None, "refit_every": 7},
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_progressive_intervals_are_those_of_the_online_predictor(protocol, n_classes):
    X, y = data(n_classes=n_classes)
    venn = InductiveVennClassifier(OnlineSVC(gamma=0.5), **protocol)
    ours = venn.progressive_interval(X, y)
    config = ProtocolConfig(
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


class Refitted(OnlineSVC):
    """Another type, so that it takes the general route: one against all, fitted anew."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        positive = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self._machines = [SVC(gamma=self.gamma, tol=1e-6).fit(X, y == c) for c in positive]
        return self

    def decision_function(self, X):
        columns = np.stack([m.decision_function(X) for m in self._machines], axis=1)
        return columns[:, 0] if columns.shape[1] == 1 else columns


@pytest.mark.parametrize("n_classes", [2, 3])
def test_any_estimator_gives_the_intervals_of_the_warm_started_machine(n_classes):
    X, y = data(80, n_classes)
    fast = InductiveVennClassifier(OnlineSVC(gamma=0.5, tol=1e-6))
    slow = InductiveVennClassifier(Refitted(gamma=0.5))
    same = fast.progressive_interval(X, y) == slow.progressive_interval(X, y)
    assert same.all(axis=(1, 2)).mean() >= 0.98


@pytest.mark.parametrize(
    ("estimator", "refit_every", "taxonomy"),
    [(OnlineSVC(gamma=0.5), 1, "class"), *((SVC(gamma=0.5), 50, name) for name in TAXONOMIES)],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_learned_at_once_or_one_by_one_give_the_same_answers(
    estimator, refit_every, taxonomy, n_classes
):
    X, y = data(140, n_classes)
    settings = {"taxonomy": taxonomy, "taxonomy_bins": 2, "estimator": estimator}
    venn = InductiveVennClassifier(**settings).fit(X[:100], y[:100])
    online = InductiveVennClassifier(**settings, refit_every=refit_every).partial_fit(
        X[:100], y[:100]
    )
    bounds, points = venn.predict_interval(X), venn.predict_proba(X)
    np.testing.assert_array_equal(bounds, online.predict_interval(X))
    np.testing.assert_array_equal(points, online.predict_proba(X))
    assert ((bounds[:, :, 0] <= points) & (points <= bounds[:, :, 1])).all()
    if taxonomy == "venn-abers" and n_classes == 3:
        return  # it has no multiprobability
    # Interval and point are the extremes and the mean of the multiprobability.
    joined = venn.predict_multiproba(X)
    assert joined.shape == (140, n_classes, n_classes)
    np.testing.assert_allclose(joined.sum(axis=2), 1.0, atol=1e-15)
    np.testing.assert_array_equal(joined.min(axis=1), bounds[:, :, 0])
    np.testing.assert_array_equal(joined.max(axis=1), bounds[:, :, 1])
    np.testing.assert_allclose(joined.mean(axis=1), points, atol=1e-15)


def test_before_the_first_refit_nothing_is_claimed():
    classifier = InductiveVennClassifier(refit_every=100)
    classifier.partial_fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    np.testing.assert_array_equal(classifier.predict_interval([[0.0]]), [[[0.0, 1.0], [0.0, 1.0]]])


@pytest.mark.parametrize(
    "change",
    [
        {"taxonomy": "colour"}, {"split": "newest"}, {"train_fraction": 1.0}, {"refit_every": 0},
        {"window": 1},
    ],
)  # fmt: skip
def test_a_parameter_out_of_its_range_is_named(change):
    with pytest.raises(InvalidInput, match=next(iter(change))):
        InductiveVennClassifier(**change).fit(*data())
