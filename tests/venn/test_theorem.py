"""The one promise: the distribution that the true label picks is calibrated."""

import numpy as np
import pytest

from online_svm.kernels import Kernel
from online_svm.svm.machine import RollingMachine
from online_svm.venn.calibration import CalibrationSet
from online_svm.venn.multiprobability import intervals, mean_points, multiprobabilities
from online_svm.venn.taxonomy import ClassTaxonomy

DRAWS = 20_000
CALIBRATION = 12  # small, so that the categories are small: there a wrong formula shows


def draw(rng: np.random.Generator, n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return examples of unequal, overlapping classes."""
    codes = rng.choice(n_classes, size=n, p=np.arange(1, n_classes + 1) / sum(range(n_classes + 1)))
    angles = 2 * np.pi * codes / n_classes
    return rng.normal(size=(n, 2)) + np.stack([np.cos(angles), np.sin(angles)], axis=1), codes


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_the_distribution_picked_by_the_true_label_is_calibrated(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    machine = RollingMachine(Kernel("rbf", gamma=0.5), np.ones(n_classes))
    X, codes = draw(rng, 60, n_classes)
    machine.extend(X, codes, training=np.ones(60, dtype=np.bool_))
    machine.solve()
    taxonomy = ClassTaxonomy(n_classes)

    X, codes = draw(rng, DRAWS * (CALIBRATION + 1), n_classes)
    categories = taxonomy.categories(machine.model().scores(X)).reshape(DRAWS, -1)
    codes = codes.reshape(DRAWS, -1)
    shape, empty = (n_classes, n_classes), np.empty((CALIBRATION, 0))
    met = np.concatenate([
        CalibrationSet(empty, k[:-1], y[:-1], shape, None).answer(empty[:1], k[-1:], y[-1:])
        for k, y in zip(categories, codes, strict=True)
    ])  # fmt: skip
    truth = codes[:, -1]
    picked = multiprobabilities(met)[np.arange(DRAWS), truth]
    difference = np.eye(n_classes)[truth] - picked
    error = difference.std(axis=0) / np.sqrt(DRAWS)
    assert np.all(np.abs(difference.mean(axis=0)) < 4 * error)
    # The test has the power to see a wrong pick: the distribution of one fixed label fails it.
    fixed = np.eye(n_classes)[truth] - multiprobabilities(met)[:, 0]
    assert np.any(np.abs(fixed.mean(axis=0)) > 4 * fixed.std(axis=0) / np.sqrt(DRAWS))


def test_lower_and_upper_are_the_extremes_of_the_multiprobability() -> None:
    counts = np.random.default_rng(0).integers(0, 5, size=(200, 4))
    joined = multiprobabilities(counts)
    bounds = intervals(counts)
    np.testing.assert_array_equal(joined.min(axis=1), bounds[:, :, 0])
    np.testing.assert_array_equal(joined.max(axis=1), bounds[:, :, 1])
    np.testing.assert_allclose(joined.mean(axis=1), mean_points(counts), atol=1e-15)
    np.testing.assert_allclose(joined.sum(axis=2), 1.0, atol=1e-15)
