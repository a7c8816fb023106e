"""ProbabilitySVC is SVC with probabilities from rows that a machine was not fitted to."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from online_svm import ProbabilitySVC, VennAbers
from online_svm.calibration.joint.coupling import CoupledPlatt
from online_svm.svm.out_of_fold import Labelled, fold_machines

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


def test_the_interval_is_the_hull_of_the_point_and_of_venn_abers_on_the_first_fold():
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


@pytest.mark.parametrize("n_classes", [2, 3])
def test_frequencies_lie_between_the_mean_bounds_over_many_draws(n_classes):
    """The calibrated number of each class is one of two that the interval holds."""
    rng = np.random.default_rng(5)
    lower, upper, came = [], [], []
    for _ in range(100):
        y = rng.integers(0, n_classes, 60)
        X = rng.normal(size=(60, 2)) + np.eye(3)[y, :2]
        found = ProbabilitySVC().fit(X[:50], y[:50]).predict_interval(X[50:])
        lower.append(found[..., 0])
        upper.append(found[..., 1])
        came.append(y[50:, None] == np.arange(n_classes))
    low, high, came = (np.concatenate(each) for each in (lower, upper, came))
    error = 3 * np.sqrt(0.25 / len(came))
    assert (low.mean(axis=0) <= came.mean(axis=0) + error).all()
    assert (came.mean(axis=0) <= high.mean(axis=0) + error).all()
    assert (low <= high).all()


@pytest.mark.parametrize("seed", [None, 3])
def test_the_same_rows_give_the_same_bits_and_the_shared_state_is_left_alone(seed):
    X, y = data(3)
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the shared state is what is meant
    first = ProbabilitySVC(random_state=seed).fit(X, y)
    second = clone(first).fit(X, y)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(second.predict_proba(X), first.predict_proba(X))
    np.testing.assert_array_equal(second.predict_interval(X), first.predict_interval(X))
    assert first.random_state is seed


def test_another_seed_draws_other_folds():
    X, y = data(2)
    first, second = (ProbabilitySVC(random_state=seed).fit(X, y) for seed in (0, 1))
    assert (first.predict_proba(X) != second.predict_proba(X)).any()
    assert (first.decision_function(X) == second.decision_function(X)).all()


def test_a_row_without_weight_is_as_if_it_were_not_there():
    X, y = data(3)
    kept = np.arange(len(X)) % 3 > 0
    whole = ProbabilitySVC(gamma=0.3, tol=1e-8).fit(X, y, kept.astype(float))
    part = ProbabilitySVC(gamma=0.3, tol=1e-8).fit(X[kept], y[kept])
    np.testing.assert_allclose(whole.predict_proba(X), part.predict_proba(X), rtol=1e-6)
    np.testing.assert_allclose(whole.predict_interval(X), part.predict_interval(X), rtol=1e-6)


@pytest.mark.parametrize(
    "labels",
    [["no", "yes", "maybe"], [2.0, -1.0, 0.0], [9, -4, 2], [True, False]],
    ids=str,
)
def test_labels_of_any_type_are_answered_in_their_own_type(labels):
    classes = np.unique(labels)
    X, codes = data(len(classes))
    model = ProbabilitySVC().fit(X, classes[codes])
    plain = ProbabilitySVC().fit(X, codes)
    assert model.predict(X).dtype == classes.dtype
    np.testing.assert_array_equal(model.classes_, classes)
    np.testing.assert_array_equal(model.predict(X), classes[plain.predict(X)])
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


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


def test_a_class_of_one_example_and_one_that_folds_have_not_met_are_answered():
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


def test_it_is_tuned_by_log_loss_in_a_pipeline_and_stored():
    X, y = load_iris(return_X_y=True)
    line = make_pipeline(StandardScaler(), ProbabilitySVC())
    grid = {"probabilitysvc__C": [0.1, 1.0]}
    tuned = GridSearchCV(line, grid, scoring="neg_log_loss", cv=3).fit(X, y)
    assert -0.4 < tuned.best_score_ < 0
    restored = pickle.loads(pickle.dumps(tuned.best_estimator_))
    np.testing.assert_array_equal(restored.predict_proba(X), tuned.predict_proba(X))
    interval = restored[-1].predict_interval(restored[:-1].transform(X))
    assert interval.shape == (150, 3, 2)


def test_what_svc_refuses_is_refused_in_its_words():
    X, y = data(2)
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        ProbabilitySVC().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="'C' parameter of ProbabilitySVC must be a float"):
        ProbabilitySVC(C=-1.0).fit(X, y)
    with pytest.raises(TypeError, match="unexpected keyword argument 'probability'"):
        ProbabilitySVC(probability=True)
