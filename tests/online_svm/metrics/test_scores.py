"""Scores of finished runs against scikit-learn, scipy and their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import accuracy_score, brier_score_loss, roc_auc_score
from sklearn.metrics import log_loss as sk_log_loss

from online_svm.errors import InvalidInput
from online_svm.metrics import scores
from online_svm.metrics.reliability import debiased_square, sorted_events
from online_svm.metrics.scores import (
    accuracy,
    auc,
    brier,
    clipped,
    interval_coverage,
    log_loss,
    macro_auc,
    squared_calibration_error,
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


def test_the_log_loss_clips_probabilities_at_one_in_a_million():
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


def test_the_macro_auc_is_scikit_learns_one_against_the_rest():
    rows, codes = random_rows(400, 5)
    ours = macro_auc(rows, codes)
    assert ours == pytest.approx(roc_auc_score(codes, rows, multi_class="ovr"), rel=1e-12)


def test_a_class_without_examples_takes_no_part_in_the_macro_auc():
    rows, codes = random_rows(400, 4)
    wider = np.column_stack((rows * 0.5, np.full(len(rows), 0.5)))
    assert macro_auc(wider, codes) == macro_auc(rows, codes)


def literal(p, y, n_bins):
    """The definition in a loop, for distinct probabilities: rank r of n is in bin n_bins r / n."""
    ranked = sorted(zip(p, y, strict=True))
    total, used = 0.0, 0
    for b in range(n_bins):
        inside = [pair for r, pair in enumerate(ranked) if n_bins * r // len(ranked) == b]
        if len(inside) < 2:
            continue
        residuals = [happened - said for said, happened in inside]
        mean, variance = np.mean(residuals), np.var(residuals, ddof=1)
        total += len(inside) * (mean**2 - variance / len(inside))
        used += len(inside)
    return total / used


def test_the_debiased_error_is_its_definition():
    rng = np.random.default_rng(0)
    p = rng.random(101)
    y = rng.random(101) < p**2
    assert squared_calibration_error(p, y) == pytest.approx(literal(p, y, 15), rel=1e-12)


def test_a_bin_with_a_single_example_is_left_out():
    p, y = [0.2, 0.2, 0.2, 0.9], [0, 0, 0, 0]
    assert debiased_square(*sorted_events(p, y), 2) == pytest.approx(0.04, rel=1e-12)


def test_the_coverage_counts_examples_in_bins_whose_frequency_lies_in_the_interval():
    p = np.repeat([0.2, 0.8], [4, 4])
    y = [0, 0, 0, 1, 0, 0, 0, 1]  # frequencies .25 and .25
    found = interval_coverage(p, np.transpose([p - 0.1, p + 0.1]), y)
    assert found.coverage == 0.5
    assert found.width == pytest.approx(0.2)


def test_a_perfect_forecaster_has_the_coverage_of_the_binomial(monkeypatch):
    monkeypatch.setattr(scores, "N_SIMULATIONS", 20_000)
    p = np.full(60, 0.3)
    counts = np.arange(61)
    inside = (counts / 60 >= 0.22) & (counts / 60 <= 0.41)
    exact = stats.binom.pmf(counts, 60, 0.3)[inside].sum()
    found = interval_coverage(p, np.transpose([p - 0.08, p + 0.11]), np.zeros(60))
    assert found.coverage == 0.0
    assert abs(found.of_perfect - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000)
