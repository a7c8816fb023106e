"""The estimators keep scikit-learn's conventions, and refuse by one set of rules and words."""

import copy
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

from online_svm import errors
from online_svm.errors import InvalidInput
from online_svm.svm.implied_posterior import ImpliedPosterior
from online_svm.svm.online_svc import OnlineSVC
from online_svm.svm.probabilistic_svc import ProbabilisticSVC
from online_svm.venn.classifier import InductiveVennClassifier

X = np.array([[0.0], [1.0], [2.0], [3.0]])
STREAMS = [OnlineSVC, InductiveVennClassifier]
REST = [*STREAMS, ProbabilisticSVC]
ALL = [*REST, ImpliedPosterior]


CHECKS = [
    pytest.param(check, id=f"{estimator.__name__}-{check[1].func.__name__}")
    for estimator, small in [(ImpliedPosterior, {"n_models": 9}), *((each, {}) for each in REST)]
    for check in estimator_checks_generator(estimator(**small))
    # That one needs SCIPY_ARRAY_API=1 before scipy is imported.
    if check[1].func.__name__ != "check_array_api_input"
]


@pytest.mark.parametrize("check", CHECKS)
def test_an_estimator_keeps_the_conventions_of_scikit_learn(check):
    estimator, function = check
    function(estimator)


@pytest.mark.parametrize("estimator", [ImpliedPosterior, ProbabilisticSVC])
def test_reaching_the_limit_on_steps_raises_a_warning(estimator):
    rng = np.random.default_rng(0)
    with pytest.warns(ConvergenceWarning, match="max_steps=1 reached") as caught:
        model = estimator(max_steps=1).fit(rng.normal(size=(50, 2)), rng.choice([-1, 1], 50))
    assert model.n_iter_ == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("estimator", ALL)
def test_one_class_is_refused_and_named(estimator):
    way = r", or name all that will come: partial_fit\(X, y, classes=\[\.\.\.\]\)"
    way = way if hasattr(estimator, "partial_fit") else ""
    told = f"^y: one class only, 'a'; give rows of two or more{way}$"
    with pytest.raises(InvalidInput, match=told):
        estimator().fit(X, ["a", "a", "a", "a"])


@pytest.mark.parametrize("estimator", STREAMS)
def test_no_declared_class_is_refused(estimator):
    with pytest.raises(InvalidInput, match=r"^y: no class; give rows of two or more, or name"):
        estimator().partial_fit(X, [0, 1, 0, 1], classes=[])


@pytest.mark.parametrize("estimator", STREAMS)
def test_a_later_label_that_is_no_class_is_refused_and_nothing_changes(estimator):
    model = estimator().partial_fit(X, [0, 1, 0, 1])
    before = model.predict(X)
    with pytest.raises(InvalidInput, match=r"^y: label 7 is not one of \[0 1\]"):
        model.partial_fit(X, [0, 7, 1, 0])
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("estimator", STREAMS)
def test_other_classes_in_a_later_call_are_refused(estimator):
    model = estimator().partial_fit(X, [0, 1, 0, 1])
    assert model.partial_fit(X, [0, 1, 0, 1], classes=[1, 0]) is model
    with pytest.raises(InvalidInput, match=r"^classes: they are \[0 1\] since the first call"):
        model.partial_fit(X, [0, 1, 0, 1], classes=[0, 1, 2])


@pytest.mark.parametrize(
    "estimator",
    [
        OnlineSVC(cache_mb=np.int64(9), tol=np.float32(1e-3)),
        InductiveVennClassifier(window=np.int64(12)),
    ],
    ids=repr,
)
def test_one_whose_parameters_are_numbers_of_numpy_can_be_copied(estimator):
    """As those of a grid of parameters are."""
    rows, labels = np.arange(30.0)[:, None], [0, 1] * 15
    model = clone(estimator).partial_fit(rows, labels)
    copied = copy.deepcopy(model)
    for each in (model, copied):
        each.partial_fit(rows[::-1], labels)
    np.testing.assert_array_equal(copied.predict(rows), model.predict(rows))


def test_a_warning_names_a_file_whose_folder_begins_like_the_package():
    folder = Path(errors.__file__).parent
    own = str(folder.with_name(f"{folder.name}_examples") / "own.py")
    called = compile("def call():\n    warn('told')\n", own, "exec")
    names = {"warn": errors.warn}
    exec(called, names)
    with pytest.warns(UserWarning, match="told") as caught:
        names["call"]()
    assert caught[0].filename == own
