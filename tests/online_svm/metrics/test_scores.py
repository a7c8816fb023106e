import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, brier_score_loss, roc_auc_score
from sklearn.metrics import log_loss as sk_log_loss

from online_svm.errors import InvalidInput
from online_svm.metrics.scores import (
    accuracy,
    auc,
    brier,
    clipped,
    expected_calibration_error,
    log_loss,
    macro_auc,
)


def random_rows(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(n_classes), size=n), rng.integers(0, n_classes, size=n)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_log_loss_is_scikit_learns(n_classes):
    rows, codes = random_rows(500, n_classes)
    rows = np.maximum(rows, 1e-3)
    rows /= rows.sum(axis=1, keepdims=True)
    assert log_loss(rows, codes) == pytest.approx(
        sk_log_loss(codes, rows, labels=range(n_classes)), rel=1e-12
    )


def test_the_log_loss_of_a_probability_of_zero_is_that_of_one_in_a_million():
    rows = [[0.0, 1.0], [1e-7, 1 - 1e-7], [1e-6, 1 - 1e-6]]
    assert log_loss(rows, [0, 0, 0]) == pytest.approx(6 * np.log(10))
    assert clipped(rows, [0, 0, 0]) == 2


def test_the_brier_score_of_two_classes_is_scikit_learns():
    rows, codes = random_rows(300, 2)
    assert brier(rows, codes) == pytest.approx(brier_score_loss(codes, rows[:, 1]), rel=1e-12)


def test_the_brier_score_of_more_classes_is_the_sum_over_classes():
    rows, codes = random_rows(300, 4)
    by_class = [((rows[:, j] - (codes == j)) ** 2).mean() for j in range(4)]
    assert brier(rows, codes) == pytest.approx(sum(by_class), rel=1e-12)


def test_accuracy_is_scikit_learns():
    rng = np.random.default_rng(0)
    predicted, codes = rng.integers(0, 3, size=(2, 100))
    assert accuracy(predicted, codes) == accuracy_score(codes, predicted)


@given(st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=40))
def test_the_area_under_the_curve_is_scikit_learns_with_ties(sample):
    scores, outcomes = map(np.array, zip(*sample, strict=True))
    if outcomes.all() or not outcomes.any():
        with pytest.raises(InvalidInput, match="needs both 0 and 1"):
            auc(scores, outcomes)
    else:
        assert auc(scores, outcomes) == pytest.approx(roc_auc_score(outcomes, scores), abs=1e-12)


def test_the_calibration_error_is_the_weighted_gap_of_sorted_fifteenths():
    rng = np.random.default_rng(0)
    p, outcomes = rng.random(1500), rng.random(1500) < 0.5
    order = np.argsort(p)
    gaps = p[order].reshape(15, 100).mean(axis=1) - outcomes[order].reshape(15, 100).mean(axis=1)
    assert expected_calibration_error(p, outcomes) == pytest.approx(np.abs(gaps).mean(), rel=1e-12)


def test_the_calibration_error_of_tied_probabilities_ignores_the_order():
    rng = np.random.default_rng(0)
    p, outcomes = rng.integers(0, 4, size=200) / 4, rng.random(200) < 0.5
    shuffled = rng.permutation(200)
    assert expected_calibration_error(p, outcomes) == pytest.approx(
        expected_calibration_error(p[shuffled], outcomes[shuffled]), rel=1e-12
    )


def test_one_constant_probability_has_the_gap_to_the_base_rate():
    assert expected_calibration_error([0.5] * 10, [1] * 8 + [0] * 2) == pytest.approx(0.3)


def test_the_macro_auc_is_scikit_learns_one_against_the_rest():
    rows, codes = random_rows(400, 5)
    ours = macro_auc(rows, codes)
    assert ours == pytest.approx(roc_auc_score(codes, rows, multi_class="ovr"), rel=1e-12)


def test_a_class_without_examples_takes_no_part_in_the_macro_auc():
    rows, codes = random_rows(400, 4)
    wider = np.column_stack((rows * 0.5, np.full(len(rows), 0.5)))
    assert macro_auc(wider, codes) == macro_auc(rows, codes)


def test_the_macro_auc_of_two_classes_is_the_auc_of_the_second():
    rows, codes = random_rows(400, 2)
    assert macro_auc(rows, codes) == auc(rows[:, 1], codes == 1)
