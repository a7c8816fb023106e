import numpy as np
import pytest
from sklearn.svm import SVC

from online_svm.compiled.kernels import Kernel
from online_svm.svm.online_svc import OnlineSVC


def problem(n, seed=0, d=4, share=0.5, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + noise * rng.normal(size=n)
    y = (score > np.quantile(score, 1 - share)).astype(int)
    return X, y


def objective(svc, K):
    alpha = svc.dual_coef_[0]
    return np.abs(alpha).sum() - 0.5 * alpha @ K[np.ix_(svc.support_, svc.support_)] @ alpha


def assert_same_optimum(online, X, y, evaluated, class_weight=None):
    """Compare the objective with SVC at the same tolerance, the values with a tighter SVC.

    At a tolerance of 1e-3 the decision values of SVC itself can be off by more than 5e-3.
    """
    settings = {name: getattr(online, name) for name in ("C", "kernel", "degree", "coef0")}
    settings |= {"gamma": online.gamma_, "class_weight": class_weight}
    kernel = Kernel(online.kernel, online.gamma_, online.degree, online.coef0)
    equal = objective(SVC(tol=online.tol, **settings).fit(X, y), kernel(X, X))
    assert online.dual_objective_[0] == pytest.approx(equal, rel=1e-5)
    tighter = SVC(tol=1e-5, **settings).fit(X, y)
    np.testing.assert_allclose(
        online.decision_function(evaluated), tighter.decision_function(evaluated), atol=5e-3
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "rbf"},
        {"kernel": "rbf", "C": 10.0, "gamma": 0.5},
        {"kernel": "linear", "C": 0.1},
        {"kernel": "poly", "degree": 2, "coef0": 1.0, "C": 0.5},
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_it_is_at_the_optimum_of_svc(settings, seed):
    X, y = problem(400, seed)
    online = OnlineSVC(**settings).fit(X[:300], y[:300])
    assert_same_optimum(online, X[:300], y[:300], X[300:])


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.1, 1: 3.0}])
def test_heavy_imbalance_ends_at_the_optimum(class_weight):
    X, y = problem(1000, share=0.01)
    online = OnlineSVC(gamma=0.3, class_weight=class_weight)
    for first in range(0, 800, 100):
        online.partial_fit(X[first : first + 100], y[first : first + 100], classes=[0, 1])
    assert_same_optimum(online, X[:800], y[:800], X[800:], class_weight)


def test_more_classes_are_taken_one_against_all():
    X, _ = problem(300)
    labels = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    online = OnlineSVC(gamma=0.3).fit(X, labels)
    assert online.classes_.tolist() == ["high", "low", "middle"]
    values = online.decision_function(X)
    for k, label in enumerate(online.classes_):
        svc = SVC(gamma=0.3).fit(X, labels == label)
        np.testing.assert_allclose(values[:, k], svc.decision_function(X), atol=5e-3)
    np.testing.assert_array_equal(online.predict(X), online.classes_[values.argmax(axis=1)])


def test_dual_coefficients_support_vectors_and_intercept_give_the_decision_function():
    X, y = problem(200)
    online = OnlineSVC(gamma=0.3).partial_fit(X, y).forget(50)
    np.testing.assert_array_equal(online.support_vectors_, X[50:][online.support_])
    K = Kernel("rbf", gamma=0.3)(X, online.support_vectors_)
    expected = K @ online.dual_coef_[0] + online.intercept_[0]
    np.testing.assert_allclose(online.decision_function(X), expected, atol=1e-12)


def test_gamma_scale_is_that_of_svc_and_stays_that_of_the_first_examples():
    X, y = problem(200)
    online = OnlineSVC().partial_fit(X[:100], y[:100])
    first = online.gamma_
    assert first == pytest.approx(SVC().fit(X[:100], y[:100])._gamma)
    assert online.partial_fit(10 * X[100:], y[100:]).gamma_ == first
    assert online.fit(10 * X, y).gamma_ < first
    assert online.fit(np.ones((200, 4)), y).gamma_ == 1.0
    assert np.isfinite(online.decision_function(X)).all()
