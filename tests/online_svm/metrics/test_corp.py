import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from online_svm.metrics.corp import corp_decomposition
from online_svm.metrics.scores import brier


def forecasts(kind, n=400):
    rng = np.random.default_rng(len(kind))
    p = {
        "distinct": rng.random(n),
        "tied": rng.integers(0, 7, n) / 6,
        "rare": rng.beta(0.2, 6.0, n),
        "constant": np.full(n, 0.3),
    }[kind]
    return p, rng.random(n) < np.clip(0.8 * p + 0.15, 0, 1)


@pytest.mark.parametrize("kind", ["distinct", "tied", "rare", "constant"])
def test_the_parts_are_those_of_scikit_learns_isotonic_regression(kind):
    p, y = forecasts(kind)
    recalibrated = IsotonicRegression().fit_transform(p, y.astype(float))
    parts = corp_decomposition(p, y)
    constant = np.mean((y.mean() - y) ** 2)
    after = np.mean((recalibrated - y) ** 2)
    expected = (
        np.mean((p - y) ** 2),
        np.mean((p - y) ** 2) - after,
        constant - after,
        constant,
        np.abs(p - recalibrated).mean(),
    )
    assert parts == pytest.approx(expected, abs=1e-12)
    total = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert total == pytest.approx(parts.brier, abs=1e-14)
    assert parts.brier == pytest.approx(brier(np.stack([1 - p, p], 1), y.astype(int)), abs=1e-14)
    assert min(parts) >= 0


def test_the_order_of_the_examples_changes_no_bit_even_among_ties():
    p, y = forecasts("tied")
    shuffled = np.random.default_rng(1).permutation(len(p))
    assert corp_decomposition(p, y) == corp_decomposition(p[shuffled], y[shuffled])


def test_where_isotonic_regression_changes_nothing_or_pools_all_a_part_is_zero():
    parts = corp_decomposition([0.25] * 4 + [0.75] * 4, [0, 0, 0, 1, 1, 1, 1, 0])
    assert parts.miscalibration == 0
    assert parts.calibration_index == 0
    assert corp_decomposition([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0]).discrimination == 0


def test_single_outcomes_and_extreme_probabilities_are_decomposed():
    assert corp_decomposition([1.0, -0.0], [1, 1]) == (0.5, 0.5, 0.0, 0.0, 0.5)
