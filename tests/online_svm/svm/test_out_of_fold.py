"""Coupling gives the minimum that it names; its map scales what it couples."""

import numpy as np
import pytest
from scipy.optimize import minimize

from online_svm import MatrixScaling, PlattScaling
from online_svm.svm import out_of_fold
from online_svm.svm.out_of_fold import CoupledPlatt, class_pairs, couple


def of_pairs(probabilities):
    """Return what each row says of the first class of every pair."""
    first, second = class_pairs(probabilities.shape[1])
    return probabilities[:, first] / (probabilities[:, first] + probabilities[:, second])


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_pairs_that_agree_give_the_probabilities_they_came_from(n_classes):
    known = np.random.default_rng(0).dirichlet(np.ones(n_classes), size=20)
    np.testing.assert_allclose(couple(of_pairs(known), n_classes), known, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [3, 5])
def test_pairs_that_disagree_give_the_least_sum_of_squares(n_classes):
    first, second = class_pairs(n_classes)
    pairwise = np.random.default_rng(1).uniform(0.05, 0.95, len(first))

    def squares(p):
        return float((((1 - pairwise) * p[first] - pairwise * p[second]) ** 2).sum())

    best = minimize(
        squares,
        np.full(n_classes, 1 / n_classes),
        method="SLSQP",
        bounds=[(0, 1)] * n_classes,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        options={"ftol": 1e-15},
    )
    found = couple(pairwise[np.newaxis], n_classes)[0]
    assert squares(found) <= best.fun
    np.testing.assert_allclose(found, best.x, atol=1e-5)


def test_sure_pairs_that_contradict_each_other_give_positive_probabilities():
    sure = 1 - out_of_fold.MIN_PAIR_PROBABILITY
    circle = couple(np.array([[sure, 1 - sure, sure]]), 3)  # 0 beats 1 beats 2 beats 0
    np.testing.assert_allclose(circle, [[1 / 3] * 3])
    order = couple(np.array([[sure, sure, sure]]), 3)
    assert (order > 0).all()


def test_a_row_does_not_depend_on_how_many_are_coupled_at_once(monkeypatch):
    pairwise = np.random.default_rng(2).uniform(0.05, 0.95, (50, 6))
    whole = couple(pairwise, 4)
    monkeypatch.setattr(out_of_fold, "_MAX_MATRIX_ELEMENTS", 75)  # three rows
    np.testing.assert_array_equal(couple(pairwise, 4), whole)


def test_two_classes_are_the_sigmoid_scaled_by_a_matrix():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2, 80)
    values = rng.normal(size=80) - codes
    found = CoupledPlatt().fit(values[:, np.newaxis], codes).predict(values[:, np.newaxis])
    first = PlattScaling().fit(values, codes == 0).predict(values)
    logs = np.log(np.column_stack([first, 1 - first]))
    expected = MatrixScaling(10.0).fit(logs, codes).predict(logs)
    np.testing.assert_allclose(found, expected, rtol=1e-6)  # where its iteration stops
