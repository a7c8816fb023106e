"""How far features moved, against scipy."""

import numpy as np
from scipy.stats import ttest_ind

from online_svm.metrics.feature_shift import feature_shift


def test_the_shift_in_standard_errors_is_the_statistic_of_welch():
    rng = np.random.default_rng(1)
    before = rng.normal(size=(70, 3)) * [1.0, 5.0, 0.1]
    after = rng.normal(loc=[0.0, 2.0, -0.1], size=(40, 3))
    before[rng.random(before.shape) < 0.1] = np.nan
    found = feature_shift(before, after)
    expected = ttest_ind(after, before, equal_var=False, nan_policy="omit").statistic
    np.testing.assert_allclose(found.z, np.asarray(expected), rtol=1e-12)
    np.testing.assert_allclose(found.before, np.nanmean(before, axis=0), rtol=1e-12)
    n = (~np.isnan(before)).sum(axis=0)
    squares = (n - 1) * np.nanvar(before, axis=0, ddof=1) + 39 * after.var(axis=0, ddof=1)
    pooled = squares / (n + 38)
    moved = found.after - found.before
    np.testing.assert_allclose(found.shift, moved / np.sqrt(pooled), rtol=1e-12)


def test_a_feature_that_does_not_vary_moved_not_at_all_or_beyond_measure():
    found = feature_shift([[1.0, 1.0, np.nan]] * 2, [[1.0, 2.0, 3.0]] * 2)
    assert found.z[:2].tolist() == found.shift[:2].tolist() == [0.0, np.inf]
    assert np.isnan(found.z[2])
