"""The one promise: the distribution that the true label picks is calibrated."""

import numpy as np
import pytest

from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.rolling_machine import RollingMachine
from online_svm.venn.calibration_set import CalibrationSet
from online_svm.venn.growing_venn_abers import AbersSet
from online_svm.venn.multiprobability import intervals, mean_points, multiprobabilities
from online_svm.venn.protocol import VennSet
from online_svm.venn.rank_predictor import RankedSet
from online_svm.venn.taxonomy import (
    ClassTaxonomy,
    QuantileTaxonomy,
    Taxonomy,
    class_scores,
    margins,
)

DRAWS = 20_000
CALIBRATION = 12  # small, so that the categories are small: there a wrong formula shows


def draw(rng: np.random.Generator, n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return examples of unequal, overlapping classes."""
    codes = rng.choice(n_classes, size=n, p=np.arange(1, n_classes + 1) / sum(range(n_classes + 1)))
    angles = 2 * np.pi * codes / n_classes
    return rng.normal(size=(n, 2)) + np.stack([np.cos(angles), np.sin(angles)], axis=1), codes


def trained_machine(rng: np.random.Generator, n_classes: int) -> RollingMachine:
    machine = RollingMachine(Kernel("rbf", gamma=0.5), np.ones(n_classes))
    X, codes = draw(rng, 60, n_classes)
    machine.extend(X, codes, training=np.ones(60, dtype=np.bool_))
    machine.solve()
    return machine


def is_calibrated(distributions: np.ndarray, truth: np.ndarray) -> bool:
    """Return whether the mean of 1{y = c} - p(c) is within four standard errors for each c."""
    difference = np.eye(distributions.shape[1])[truth] - distributions
    error = difference.std(axis=0) / np.sqrt(len(truth))
    return bool(np.all(np.abs(difference.mean(axis=0)) < 4 * error))


def make_class(n_classes: int, training: np.ndarray) -> Taxonomy:
    return ClassTaxonomy(n_classes)


def make_quantiles(n_classes: int, training: np.ndarray) -> Taxonomy:
    return QuantileTaxonomy(n_classes, 3, class_scores, training)


def make_margins(n_classes: int, training: np.ndarray) -> Taxonomy:
    return QuantileTaxonomy(n_classes, 3, margins, training)


def make_ranks(n_classes: int, scores: np.ndarray, codes: np.ndarray) -> VennSet:
    return RankedSet(n_classes, 3, scores, codes, n_classes, None)


def make_abers(n_classes: int, scores: np.ndarray, codes: np.ndarray) -> VennSet:
    return AbersSet(n_classes, scores, codes, n_classes, None)


@pytest.mark.parametrize(
    ("make", "n_classes"),
    [(make_class, 2), (make_class, 3), (make_class, 4), (make_quantiles, 3), (make_margins, 3)],
)
def test_the_distribution_picked_by_the_true_label_is_calibrated(make, n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    machine = trained_machine(rng, n_classes)
    taxonomy = make(n_classes, machine.training_values())
    X, codes = draw(rng, DRAWS * (CALIBRATION + 1), n_classes)
    categories = taxonomy.categories(machine.model().scores(X)).reshape(DRAWS, -1)
    codes = codes.reshape(DRAWS, -1)
    shape, empty = (taxonomy.n_categories, n_classes), np.empty((CALIBRATION, 0))
    met = np.concatenate([
        CalibrationSet(empty, k[:-1], y[:-1], shape, None).answer(empty[:1], k[-1:], y[-1:])
        for k, y in zip(categories, codes, strict=True)
    ])  # fmt: skip
    truth = codes[:, -1]
    assert is_calibrated(multiprobabilities(met)[np.arange(DRAWS), truth], truth)
    # The test has the power to see a wrong pick: the distribution of one fixed label fails it.
    assert not is_calibrated(multiprobabilities(met)[:, 0], truth)


@pytest.mark.parametrize(("make", "n_classes"), [(make_ranks, 2), (make_ranks, 3), (make_abers, 2)])
def test_it_is_calibrated_too_where_the_categories_depend_on_the_calibration_set(
    make, n_classes: int
) -> None:
    rng = np.random.default_rng(n_classes)
    machine = trained_machine(rng, n_classes)
    X, codes = draw(rng, DRAWS * (CALIBRATION + 1), n_classes)
    # Rounded, so that the ties occur that a rule for ranks has to get right.
    scores = machine.model().scores(X).round(1).reshape(DRAWS, CALIBRATION + 1, -1)
    codes = codes.reshape(DRAWS, -1)
    joint = np.concatenate([
        make(n_classes, s[:-1], y[:-1]).multiprobabilities(s[-1:])
        for s, y in zip(scores, codes, strict=True)
    ])  # fmt: skip
    truth = codes[:, -1]
    assert is_calibrated(joint[np.arange(DRAWS), truth], truth)
    assert not is_calibrated(joint[:, 0], truth)


def test_lower_and_upper_are_the_extremes_of_the_multiprobability() -> None:
    counts = np.random.default_rng(0).integers(0, 5, size=(200, 4))
    joined = multiprobabilities(counts)
    bounds = intervals(counts)
    np.testing.assert_array_equal(joined.min(axis=1), bounds[:, :, 0])
    np.testing.assert_array_equal(joined.max(axis=1), bounds[:, :, 1])
    np.testing.assert_allclose(joined.mean(axis=1), mean_points(counts), atol=1e-15)
    np.testing.assert_allclose(joined.sum(axis=2), 1.0, atol=1e-15)
