"""Inputs of the maps of `online_svm.calibration`: ties, separable and extreme scores, weights."""

from typing import Any

import numpy as np

from kernel_cases._inputs import pick, whole
from online_svm.calibration import isotonic, platt, venn_abers
from online_svm.calibration.diagram import (
    TiedCounts,
    hull_corners,
    hull_links,
    pool_ties,
    pool_weights,
)
from online_svm.types import Floats, Weights

Rng = np.random.Generator

SIZES = (1, 2, 3, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 100, 129)


def _size(rng: Rng) -> int:
    return pick(rng, SIZES)


def _scores(rng: Rng, n: int) -> Floats:
    """Return scores: distinct, tied, or of every magnitude."""
    scores = 2.0 * (rng.random(n) + rng.random(n) + rng.random(n)) - 3.0
    match whole(rng, 4):
        case 0:
            scores = np.round(scores, 1)
        case 1:
            scores = np.ldexp(scores, rng.integers(-1000, 1000, n))
    return scores


def _counts(rng: Rng) -> TiedCounts:
    n = _size(rng)
    scores = _scores(rng, n)
    labels = rng.random(n) < (0.5 if rng.random() < 0.5 else 0.5 + scores.clip(-1.0, 1.0) / 2.0)
    if rng.random() < 0.5:
        return pool_ties(scores, labels)
    whole = rng.integers(1, 9, n)
    weights: Weights = whole if rng.random() < 0.3 else whole + rng.random(n)
    return pool_weights(scores, labels, weights)


def _bridges(rng: Rng) -> Any:
    n = pick(rng, [0, *SIZES])
    labels = rng.random(n) < rng.random()
    return venn_abers._with_one_positive(*pool_ties(_scores(rng, n), labels).diagram())


def _interpolate(rng: Rng) -> Any:
    blocks = whole(rng, 1, 20)
    ends = np.sort(_scores(rng, 2 * blocks))
    values = np.sort(rng.random(blocks))
    if rng.random() < 0.3:
        values = np.round(values, 1)
    asked = np.concatenate(
        [ends, ends + 1e-3, _scores(rng, 30), [0.0, -0.0, 1e308, -1e308, 5e-324]]
    )
    found = np.empty(len(asked))
    isotonic._interpolate(ends[::2].copy(), ends[1::2].copy(), values, asked, found)
    return found


def _write_probabilities(rng: Rng) -> Any:
    n = pick(rng, [0, *SIZES])
    scores, found = _scores(rng, n), np.empty(n)
    slope, offset = np.ldexp(rng.random(2) - 0.5, rng.integers(-6, 14)).tolist()
    platt._write_probabilities(scores, slope, offset, found)
    return found


def _extreme(minimise: Any) -> Any:
    """Return a case in which a few examples have almost all weight."""

    def case(rng: Rng) -> Any:
        n = whole(rng, 2, 40)
        scores = np.ldexp(rng.uniform(-1.0, 1.0, n), -rng.integers(0, 30, n))
        positive, high, low = rng.random(n) < 0.5, pick(rng, [1.0, 0.9]), 0.0
        masses = np.ldexp(1.0 + rng.random(n), rng.integers(-330, 330, n))
        targets = np.where(positive, high, low)
        return minimise(scores, targets, masses, pick(rng, [0.0, 5.0, -300.0]))

    return case


def _fit(minimise: Any) -> Any:
    def case(rng: Rng) -> Any:
        n = _size(rng)
        scores = rng.uniform(-1.0, 1.0, n)
        match whole(rng, 3):
            case 0:
                scores = np.round(scores, 1)
            case 1:
                scores = np.ldexp(scores, -rng.integers(0, 70))
        positive = rng.random(n) < (rng.random() if rng.random() < 0.5 else scores > 0.0)
        masses = np.ones(n)
        if rng.random() >= 0.5:
            masses = np.ldexp(1.0 + rng.random(n), rng.integers(-9, 9, n))
        high, low = (1.0, 0.0) if rng.random() < 0.3 else (1.0 - 1.0 / (n + 2.0), 1.0 / (n + 2.0))
        targets = np.where(positive, high, low)
        return minimise(scores, targets, masses, 3.0 * rng.random() - 1.5)

    return case


CASES = {
    "diagram.hull_corners": lambda rng: hull_corners(hull_links(*_counts(rng).diagram())),
    "diagram.hull_links": lambda rng: hull_links(*_counts(rng).diagram()),
    "isotonic.interpolate": _interpolate,
    "platt.write_probabilities": _write_probabilities,
    "sigmoid.model_trust": _fit(platt.model_trust),
    "sigmoid.model_trust of extreme weights": _extreme(platt.model_trust),
    "sigmoid.newton": _fit(platt.newton),
    "sigmoid.newton of extreme weights": _extreme(platt.newton),
    "venn_abers.bridges": _bridges,
}
