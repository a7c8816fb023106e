"""Inputs of `online_svm.calibration.joint` and of evidential calibration."""

from typing import Any

import numpy as np

from kernel_cases._inputs import flag, whole
from online_svm.calibration import joint
from online_svm.calibration.evidential import blocks, line, logistic


def _examples(rng: np.random.Generator) -> joint.CodedScores:
    n, classes = whole(rng, 1, 60), whole(rng, 2, 6)
    codes = rng.integers(0, classes, n)
    X = rng.normal(size=(n, classes)) + 2.0 * rng.random() * (codes[:, None] == np.arange(classes))
    return joint.CodedScores(X, codes, rng.uniform(0.7, 1.0, classes))


def _start(examples: joint.CodedScores, diagonal: bool) -> Any:
    classes = examples.X.shape[1]
    start = np.ones(classes) if diagonal else np.eye(classes).reshape(-1)
    return np.append(start, np.zeros(classes))


def _minimise(rng: np.random.Generator) -> Any:
    examples, diagonal = _examples(rng), flag(rng, 2)
    theta = _start(examples, diagonal)
    ridge = float(rng.exponential()) if rng.integers(2) else 0.0
    taken = joint.minimise(examples, theta, diagonal, ridge)
    return taken, theta


def _probabilities(rng: np.random.Generator) -> Any:
    examples, diagonal = _examples(rng), flag(rng, 2)
    theta = _start(examples, diagonal) + rng.normal(size=len(_start(examples, diagonal)))
    found = np.empty(examples.X.shape)
    joint.probabilities_into(examples.X * 10.0 ** rng.integers(-1, 3), theta, diagonal, found)
    return found


def _temperature(rng: np.random.Generator) -> Any:
    X, codes, highs = _examples(rng)
    scores = X - X.max(axis=1, keepdims=True)
    scores = np.maximum(scores / max(1e-9, -scores.min()) * rng.uniform(1.0, 2.0), -2.0)
    return joint.inverse_temperature(scores, codes, highs)


def _line(rng: np.random.Generator) -> Any:
    n = whole(rng, 1, 100)
    return rng.normal(size=n) * 10.0 ** rng.integers(-1, 2), rng.integers(0, 2, n).astype(float)


def _moments(rng: np.random.Generator) -> Any:
    d, targets = _line(rng)
    u, a = rng.normal(size=2).tolist()
    return line.moments(d, targets, u, a), line.profile(d, targets, u, a)


def _many_moments(rng: np.random.Generator) -> Any:
    """Examples beyond those after which the product of factors is folded."""
    d = rng.normal(size=13_000)
    return line.moments(d, (d > 0.0).astype(float), 0.1, 0.5)


def _ignorance(rng: np.random.Generator) -> Any:
    d, targets = _line(rng)
    targets = 0.1 + 0.8 * targets
    u, a = rng.normal(size=2).tolist()
    a, top, *_ = line.profile(d, targets, u, a)
    rule = logistic.gauss_legendre(16)
    return line.log_ignorance(d, targets, u, a, top, rule)


def _binomial(rng: np.random.Generator) -> Any:
    n = rng.integers(0, 200, 20)
    k = rng.integers(0, n + 1)
    alpha, tau = float(rng.uniform(0.01, 0.5)), rng.random(20)
    masses = [blocks.binomial_mass(model, k, n, alpha) for model in blocks.BINOMIAL_MODELS]
    contours = [
        blocks.binomial_contour(model, k, n, np.where(rng.random(20) < 0.1, 0.0, tau), alpha)
        for model in blocks.BINOMIAL_MODELS
    ]
    return masses, contours, blocks.log_likelihood(float(k[0]), float(n[0]), float(tau[0]))


def _spline(rng: np.random.Generator) -> Any:
    knots = np.cumsum(rng.exponential(size=whole(rng, 4, 40)))
    return logistic.cubic_spline(knots, rng.normal(size=(len(knots), whole(rng, 1, 4))))


CASES = {
    "binomial": _binomial,
    "inverse_temperature": _temperature,
    "log_ignorance": _ignorance,
    "many moments": lambda rng: _many_moments(rng) if rng.random() < 0.02 else None,
    "minimise": _minimise,
    "moments and profile": _moments,
    "probabilities": _probabilities,
    "spline": _spline,
}
