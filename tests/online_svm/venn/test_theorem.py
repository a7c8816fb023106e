"""The one promise: the distribution that the true label picks is calibrated."""

from collections.abc import Callable

import numpy as np
import pytest

from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.rolling_machine import RollingMachine
from online_svm.venn.counted_set import CountedSet, Taxonomy, VennSet, class_scores, margins
from online_svm.venn.scheme import VennScheme

DRAWS = 8_000
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


def begin(
    taxonomy: str, n_classes: int, training: np.ndarray
) -> Callable[[np.ndarray, np.ndarray], VennSet]:
    """Return what makes the Venn predictor of a taxonomy over a calibration set."""
    strength = {"class-quantile": class_scores, "margin": margins}.get(taxonomy)
    if strength is None:
        scheme = VennScheme(taxonomy, 3, n_classes, n_classes, None)
        return lambda scores, codes: scheme.begin(training, scores, codes)
    fixed = Taxonomy(n_classes, 3, strength, training)  # once, not for each draw
    return lambda scores, codes: CountedSet(fixed, scores, codes, n_classes, None)


@pytest.mark.parametrize(
    ("taxonomy", "n_classes"),
    [
        ("class", 2), ("class", 3), ("class", 4), ("class-quantile", 3), ("margin", 3),
        ("class-rank", 2), ("class-rank", 3), ("venn-abers", 2),
    ],
)  # fmt: skip
def test_the_distribution_picked_by_the_true_label_is_calibrated(
    taxonomy: str, n_classes: int
) -> None:
    rng = np.random.default_rng(n_classes)
    machine = trained_machine(rng, n_classes)
    make = begin(taxonomy, n_classes, machine.training_values())
    X, codes = draw(rng, DRAWS * (CALIBRATION + 1), n_classes)
    # Rounded, so that the ties occur that a rule for ranks has to get right.
    scores = machine.model().scores(X).round(1).reshape(DRAWS, CALIBRATION + 1, -1)
    codes = codes.reshape(DRAWS, -1)
    joint = np.concatenate([
        make(s[:-1], y[:-1]).multiprobabilities(s[-1:]) for s, y in zip(scores, codes, strict=True)
    ])  # fmt: skip
    truth = codes[:, -1]
    assert is_calibrated(joint[np.arange(DRAWS), truth], truth)
    # The test has the power to see a wrong pick: the distribution of one fixed label fails it.
    assert not is_calibrated(joint[:, 0], truth)
