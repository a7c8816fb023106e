import numpy as np
import pytest

from online_svm.errors import InvalidInput
from online_svm.metrics.bias import class_bias


def test_the_bias_is_the_mean_gap_with_its_standard_error():
    rng = np.random.default_rng(0)
    rows, codes = rng.dirichlet(np.ones(3), size=400), rng.integers(0, 3, size=400)
    bias = class_bias(rows, codes)
    for j in range(3):
        gaps = (codes == j) - rows[:, j]
        assert bias.mean[j] == pytest.approx(gaps.mean(), abs=1e-12)
        assert bias.standard_error[j] == pytest.approx(gaps.std(ddof=1) / 20)


def test_labels_drawn_from_the_probabilities_show_no_bias_and_shifted_ones_do():
    rng = np.random.default_rng(1)
    p = rng.random(20_000)
    codes = (rng.random(20_000) < p).astype(int)
    honest = class_bias(np.column_stack((1 - p, p)), codes)
    assert (np.abs(honest.mean) < 4 * honest.standard_error).all()
    shifted = class_bias(np.column_stack((0.97 - p, p + 0.03)), codes)
    assert (np.abs(shifted.mean) > 4 * shifted.standard_error).all()


def test_a_single_row_is_refused():
    with pytest.raises(InvalidInput, match="at least two rows"):
        class_bias([[0.5, 0.5]], [0])
