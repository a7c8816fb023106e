"""The sums behind the profile likelihood, against the same sums without rounding on the way."""

import math

import numpy as np
import pytest
from scipy import special

from online_svm.calibration.evidential.line import moments


@pytest.mark.parametrize("n", [1, 31, 32, 33, 850, 30_000])
@pytest.mark.parametrize(("u", "a"), [(0.0, 0.0), (0.3, -1.2), (40.0, 15.0), (-900.0, 300.0)])
def test_moments_are_the_sums_over_the_examples(n, u, a):
    rng = np.random.default_rng(n)
    d, targets = rng.normal(size=n), rng.choice([0.02, 0.99], size=n)
    eta = u + a * d
    residual = targets - special.expit(eta)
    weight = special.expit(eta) * special.expit(-eta)
    terms = [
        targets * special.log_expit(eta) + (1.0 - targets) * special.log_expit(-eta),
        residual, d * residual, weight, weight * d, weight * d * d,
    ]  # fmt: skip
    for found, parts in zip(moments(d, targets, u, a), terms, strict=True):
        scale = math.fsum(np.abs(parts))
        assert found == pytest.approx(math.fsum(parts), abs=1e-13 * scale + 1e-300)
