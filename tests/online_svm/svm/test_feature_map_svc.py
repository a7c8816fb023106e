"""FeatureMapSVC keeps scikit-learn's conventions, and learns a stream at a constant cost."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator

from online_svm import FeatureMapSVC
from online_svm.errors import InvalidConfig, InvalidInput


def problem(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] + X[:, 1] ** 2 + 0.4 * rng.normal(size=n)
    return X, np.where(score > 0.8, "yes", "no")


@pytest.mark.parametrize(
    "check",
    [pytest.param(c, id=c[1].func.__name__) for c in estimator_checks_generator(FeatureMapSVC())],
)
def test_it_keeps_the_conventions_of_scikit_learn(check):
    estimator, function = check
    if function.func.__name__ == "check_array_api_input":
        pytest.skip("needs SCIPY_ARRAY_API=1 before scipy is imported")
    function(estimator)


@pytest.mark.parametrize(
    ("feature_map", "peer"),
    [
        ("nystroem", Nystroem(gamma=0.4, n_components=60, random_state=3)),
        ("fourier", RBFSampler(gamma=0.4, n_components=60, random_state=3)),
    ],
)
def test_fitted_at_once_it_is_the_linear_machine_on_the_transformer(feature_map, peer):
    X, y = problem(300)
    ours = FeatureMapSVC(
        2.0, feature_map, 60, gamma=0.4, tol=1e-8, max_rounds=20_000, random_state=3
    ).fit(X, y)
    theirs = LinearSVC(C=2.0, loss="hinge", tol=1e-8, max_iter=1_000_000)
    theirs.fit(peer.fit_transform(X), y)
    expected = theirs.decision_function(peer.transform(X))
    np.testing.assert_allclose(ours.decision_function(X), expected, atol=1e-3)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)


def test_with_all_rows_as_landmarks_it_is_nearly_the_kernel_machine():
    X, y = problem(250)
    ours = FeatureMapSVC(gamma=0.4, n_components=250, tol=1e-8, max_rounds=20_000).fit(X, y)
    kernel = SVC(gamma=0.4, tol=1e-8).fit(X, y)  # its intercept is not regularised
    values = kernel.decision_function(X)
    assert np.corrcoef(ours.decision_function(X), values)[0, 1] > 0.999
    assert np.mean(ours.predict(X) == kernel.predict(X)) > 0.98


def test_a_stream_in_parts_is_learned_as_well_as_all_at_once():
    X, y = problem(4000)
    stream = FeatureMapSVC(n_components=100, window=200)
    for first in range(0, 3000, 50):
        stream.partial_fit(X[first : first + 50], y[first : first + 50])
        assert stream.n_held_ <= 200
    whole = FeatureMapSVC(n_components=100).fit(X[:3000], y[:3000])
    assert stream.score(X[3000:], y[3000:]) > whole.score(X[3000:], y[3000:]) - 0.02


def test_a_stream_that_turns_is_followed_where_the_past_fades():
    X, y = problem(2000)
    turned = np.where(y[1000:] == "yes", "no", "yes")
    for fading, follows in ((0.99, True), (1.0, False)):
        svc = FeatureMapSVC(n_components=50, window=20, fading=fading, C=0.1)
        svc.partial_fit(X[:1000], y[:1000])
        svc.partial_fit(X[1000:1500], turned[:500])
        assert (svc.score(X[1500:], turned[500:]) > 0.8) == follows


def test_a_call_of_many_rows_is_learned_window_by_window():
    X, y = problem()
    whole, parts = (FeatureMapSVC(n_components=30, window=100) for _ in range(2))
    whole.partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    for first in range(0, 600, 100):
        parts.partial_fit(X[first : first + 100], y[first : first + 100])
    np.testing.assert_array_equal(whole.decision_function(X), parts.decision_function(X))


def test_more_classes_are_taken_one_against_all():
    X, _ = problem()
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    svc = FeatureMapSVC(n_components=80, C=10.0).fit(X, y)
    assert svc.decision_function(X).shape == (600, 3)
    assert svc.score(X, y) > 0.95
    svc = FeatureMapSVC(n_components=80, C=10.0).partial_fit(X[:200], y[:200], classes=[0, 1, 2, 3])
    assert (svc.decision_function(X)[:, 3] == -1.0).all()  # not one example yet


def test_heavier_classes_are_preferred():
    X, y = problem()
    shares = [
        np.mean(FeatureMapSVC(C=0.1, n_components=40, class_weight=w).fit(X, y).predict(X) == "yes")
        for w in ({"yes": 0.1}, None, {"yes": 10.0})
    ]
    assert shares == sorted(set(shares))
    weights = {"yes": 600 / (2 * np.sum(y == "yes")), "no": 600 / (2 * np.sum(y == "no"))}
    balanced, given = (
        FeatureMapSVC(n_components=40, class_weight=w).fit(X, y) for w in ("balanced", weights)
    )
    np.testing.assert_allclose(balanced.decision_function(X), given.decision_function(X))


def test_a_row_scores_the_same_alone():
    X, y = problem()
    svc = FeatureMapSVC(n_components=70).fit(X, y)
    values = svc.decision_function(X)
    assert all(svc.decision_function(X[i : i + 1])[0] == values[i] for i in range(0, 600, 37))
    assert not hasattr(clone(svc), "classes_")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda X, y: FeatureMapSVC(C=0.0).fit(X, y), InvalidConfig, "^C: must"),
        (lambda X, y: FeatureMapSVC(fading=1.5).fit(X, y), InvalidConfig, "^fading: must be at"),
        (lambda X, y: FeatureMapSVC(random_state=None).fit(X, y), InvalidConfig, "^random_state"),
        (lambda X, y: FeatureMapSVC(window=0).fit(X, y), InvalidConfig, "^window: must"),
        (lambda X, y: FeatureMapSVC(feature_map="x").fit(X, y), InvalidConfig, "^feature_map: 'x'"),
        (
            lambda X, y: FeatureMapSVC(feature_map="fourier", kernel="poly").fit(X, y),
            InvalidConfig,
            "needs kernel='rbf'",
        ),
        (lambda X, _: FeatureMapSVC().fit(X, np.zeros(len(X))), InvalidInput, "one class"),
        (
            lambda X, y: FeatureMapSVC().fit(X, y).partial_fit(X[:1], ["maybe"]),
            InvalidInput,
            "^y: label 'maybe'",
        ),
        (
            lambda X, y: FeatureMapSVC().fit(X, y).partial_fit(X, y, classes=["a", "b"]),
            InvalidInput,
            "^classes: they",
        ),
        (lambda X, y: FeatureMapSVC().fit(X, y).partial_fit(X[:, :2], y), InvalidInput, "features"),
    ],
)
def test_what_cannot_be_used_is_named(call, error, message):
    X, y = problem(60)
    with pytest.raises(error, match=message):
        call(X, y)
