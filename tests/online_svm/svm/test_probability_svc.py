"""ProbabilitySVC is SVC with probabilities from rows that a machine was not fitted to."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import KFold
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from online_svm import ProbabilitySVC, VennAbers
from online_svm.svm.out_of_fold import CoupledPlatt, Labelled, fold_machines

ITS_OWN = ["check_sample_weight_equivalence_on_dense_data"]
ITS_OWN += ["check_sample_weight_equivalence_on_sparse_data"]
"""Failures of `SVC()`, for the rounding of LIBSVM; scikit-learn expects them of it."""

OF_PROBABILITIES = ["check_classifiers_train", "check_decision_proba_consistency"]
"""Failures of `SVC(kernel="precomputed", probability=True)`.

The first wants the label of `predict` to have the largest probability, where two of 300 rows are
between classes; the second fits rows that are no square matrix.
"""

PARAMETERS = [
    {},
    {"kernel": "linear", "C": 0.3},
    {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": "auto"},
    {"class_weight": "balanced", "decision_function_shape": "ovo"},
    {"class_weight": {2: 5.0}, "break_ties": True},
]


def data(n_classes, n=120):
    return make_classification(
        n, 6, n_informative=4, n_classes=n_classes, n_clusters_per_class=1, flip_y=0.1,
        random_state=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [(ProbabilitySVC(), ITS_OWN), (ProbabilitySVC(kernel="precomputed"), OF_PROBABILITIES)],
    ids=repr,
)
def test_it_passes_the_checks_of_scikit_learn_but_for_those_that_svc_fails(estimator, expected):
    why = dict.fromkeys(expected, "that of SVC")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they warn of each check that is expected to fail
        results = check_estimator(estimator, expected_failed_checks=why)
    found = {one["check_name"] for one in results if one["status"] == "xfail"}
    assert found == set(expected)
    assert sum(one["status"] == "passed" for one in results) > 50


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_labels_and_decision_values_are_those_of_svc_to_the_bit(parameters, weighted):
    X, y = data(3)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X)) if weighted else None
    ours = ProbabilitySVC(**parameters).fit(X, y, weights)
    svc = SVC(**parameters).fit(X, y, weights)
    np.testing.assert_array_equal(ours.predict(X), svc.predict(X))
    np.testing.assert_array_equal(ours.decision_function(X), svc.decision_function(X))
    np.testing.assert_array_equal(ours.dual_coef_, svc.dual_coef_)


def test_parameters_are_those_of_svc_but_for_probability():
    assert set(SVC().get_params()) - set(ProbabilitySVC().get_params()) == {"probability"}
    given = SVC().get_params() | {"probability": None}
    assert ProbabilitySVC().get_params() | {"probability": None} == given


def out_of_fold(X, y, seed):
    """Return values of each pair by hand, positive for the first, and the first fold."""
    classes = np.unique(y)
    values = np.zeros((len(X), len(classes) * (len(classes) - 1) // 2))
    folds = list(KFold(5, shuffle=True, random_state=seed).split(X))
    for fitted_to, held_out in folds:
        machine = SVC(gamma=0.3, decision_function_shape="ovo").fit(X[fitted_to], y[fitted_to])
        found = machine.decision_function(X[held_out])
        values[held_out] = -found[:, None] if found.ndim == 1 else found
    return values, folds[0]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_a_map_of_the_values_of_rows_that_were_held_out(n_classes):
    X, y = data(n_classes)
    svc = SVC(gamma=0.3, decision_function_shape="ovo").fit(X, y)
    asked = svc.decision_function(X)
    asked = -asked[:, None] if n_classes == 2 else asked
    state = np.random.RandomState(7)
    svc.set_params(random_state=state).fit(X, y)  # draws a seed, as the estimator's machine does
    values, _ = out_of_fold(X, y, seed=state)
    model = ProbabilitySVC(gamma=0.3, random_state=7).fit(X, y)
    expected = CoupledPlatt().fit(values, y).predict(asked)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-6)
    np.testing.assert_array_equal(model.predict_log_proba(X), np.log(model.predict_proba(X)))


def test_the_interval_holds_the_point_and_the_first_folds_venn_abers():
    X, y = data(2)
    state = np.random.RandomState(0)
    SVC(random_state=state).fit(X, y)
    values, (_, held_out) = out_of_fold(X, y, state)
    fitted_to = np.setdiff1d(np.arange(len(X)), held_out)
    machine = SVC(gamma=0.3).fit(X[fitted_to], y[fitted_to])
    scores = machine.decision_function(X)
    pair = VennAbers().fit(-values[held_out, 0], y[held_out]).predict_interval(scores)
    model = ProbabilitySVC(gamma=0.3).fit(X, y)
    point = model.predict_proba(X)[:, 1]
    found = model.predict_interval(X)
    np.testing.assert_array_equal(found[:, 1, 0], np.minimum(pair[:, 0], point))
    np.testing.assert_array_equal(found[:, 1, 1], np.maximum(pair[:, 1], point))
    np.testing.assert_allclose(found[:, 0], 1 - found[:, 1, ::-1], rtol=1e-12, atol=1e-15)


def test_folds_are_drawn_without_a_look_at_rows_or_labels():
    X, y = data(3)
    other = Labelled(np.zeros((len(X), 1)), np.random.default_rng(0).permutation(y), 3, None)
    held_out = [
        [fold.held_out.tolist() for fold in fold_machines(SVC(), rows, np.random.RandomState(0))]
        for rows in (Labelled(X, y, 3, None), other)
    ]
    assert held_out[0] == held_out[1]
    assert sorted(row for fold in held_out[0] for row in fold) == list(range(len(X)))


@pytest.mark.parametrize("seed", [None, 3])
def test_fits_repeat_bit_for_bit_without_global_random_state(seed):
    X, y = data(3)
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the shared state is what is meant
    first = ProbabilitySVC(random_state=seed).fit(X, y)
    second = clone(first).fit(X, y)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(second.predict_proba(X), first.predict_proba(X))
    np.testing.assert_array_equal(second.predict_interval(X), first.predict_interval(X))
    assert first.random_state is seed


def test_a_row_without_weight_is_as_if_it_were_not_there():
    X, y = data(3)
    kept = np.arange(len(X)) % 3 > 0
    whole = ProbabilitySVC(gamma=0.3, tol=1e-8).fit(X, y, kept.astype(float))
    part = ProbabilitySVC(gamma=0.3, tol=1e-8).fit(X[kept], y[kept])
    np.testing.assert_allclose(whole.predict_proba(X), part.predict_proba(X), rtol=1e-6)
    np.testing.assert_allclose(whole.predict_interval(X), part.predict_interval(X), rtol=1e-6)


def answers(model, X):
    return np.concatenate([model.predict_proba(X)[..., None], model.predict_interval(X)], axis=2)


def test_the_same_kernel_by_another_route_gives_the_same_answers():
    X, y = data(3)
    gram = X @ X.T
    plain = answers(ProbabilitySVC(kernel="linear").fit(X, y), X)
    routes = [
        answers(ProbabilitySVC(kernel="precomputed").fit(gram, y), gram),
        answers(ProbabilitySVC(kernel=lambda A, B: A @ B.T).fit(X, y), X),
        answers(ProbabilitySVC(kernel="linear").fit(sp.csr_matrix(X), y), sp.csr_matrix(X)),
    ]
    for route in routes:
        np.testing.assert_allclose(route, plain, rtol=1e-6, atol=1e-9)


def test_a_table_with_names_is_answered_without_a_warning():
    X, y = data(2)
    table = pd.DataFrame(X, columns=list("abcdef"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ProbabilitySVC().fit(table, pd.Series(y))
        found = answers(model, table)
    assert list(model.feature_names_in_) == list("abcdef")
    np.testing.assert_array_equal(found, answers(ProbabilitySVC().fit(X, y), X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(table[list("fedcba")])


def test_a_class_that_some_folds_lack_gets_probabilities():
    X, y = data(2)
    y[0] = 7
    model = ProbabilitySVC(class_weight={7: 10.0}).fit(X, y)
    found = model.predict_proba(X)
    assert found.shape == (len(X), 3)
    assert (found > 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    interval = model.predict_interval(X)
    assert (interval[..., 0] <= found).all()
    assert (found <= interval[..., 1]).all()


def test_two_rows_are_enough_and_say_nothing():
    model = ProbabilitySVC().fit([[0.0], [1.0]], ["a", "b"])
    np.testing.assert_array_equal(model.predict([[0.0], [1.0]]), ["a", "b"])
    np.testing.assert_array_equal(model.predict_proba([[0.0], [1.0]]), np.full((2, 2), 0.5))
