"""Minimise the loss of a softmax map by L-BFGS, additions in fixed order (Liu & Nocedal 1989)."""

import numpy as np

from online_svm.calibration.joint.softmax import Examples, loss_and_gradient
from online_svm.compiled.jit import jit
from online_svm.types import Floats

MEMORY = 10  # pairs of steps that are remembered
MAX_ITERATIONS = 200  # twenty to forty are usual
NEARLY_FLAT = 1e-5  # largest part of the gradient, an example
SUFFICIENT_DECREASE = 1e-4  # Armijo's constant
SHORTEST_STEP = 1e-10


@jit
def minimise(examples: Examples, theta: Floats, diagonal: bool, ridge: float) -> int:
    """Move `theta` to the minimum of `loss_and_gradient`; return the number of iterations."""
    size = len(theta)
    steps, changes = np.zeros((MEMORY, size)), np.zeros((MEMORY, size))
    gradient, other, trial = np.empty(size), np.empty(size), np.empty(size)
    loss = loss_and_gradient(examples, theta, diagonal, ridge, gradient)
    scale = _scale(examples, size, diagonal, ridge)
    n_pairs = 0
    for iteration in range(MAX_ITERATIONS):
        if np.abs(gradient).max() <= NEARLY_FLAT * len(examples.X):
            return iteration
        # 1. The direction, by the pairs so far; the scaled steepest one without any.
        direction = _direction(gradient, scale, steps, changes, n_pairs)
        slope = _dot(direction, gradient)
        if not slope < 0.0:  # lost in rounding
            return iteration
        # 2. Line search: halve the step until the loss falls enough (Armijo).
        length = 1.0
        found = loss
        while length >= SHORTEST_STEP:
            for j in range(size):
                trial[j] = theta[j] + length * direction[j]
            found = loss_and_gradient(examples, trial, diagonal, ridge, other)
            if found <= loss + SUFFICIENT_DECREASE * length * slope:
                break
            length *= 0.5
        if length < SHORTEST_STEP:
            return iteration
        # 3. Remember the pair, unless the curvature along it is lost in rounding.
        place = n_pairs % MEMORY
        for j in range(size):
            steps[place, j] = trial[j] - theta[j]
            changes[place, j] = other[j] - gradient[j]
        if _dot(steps[place], changes[place]) > 0.0:
            n_pairs += 1
        loss = found
        theta[:] = trial
        gradient[:] = other
    return MAX_ITERATIONS


@jit
def _scale(examples: Examples, size: int, diagonal: bool, ridge: float) -> Floats:
    """Return the reciprocal of an estimate of the diagonal of the Hessian.

    As if each class had its frequency f everywhere: f (1 - f) times the sum of squares of what the
    parameter multiplies, plus the ridge. Without it a rare class takes hundreds of iterations.
    """
    X, codes = examples.X, examples.codes
    n, n_classes = X.shape
    counts, squares, scale = np.zeros(n_classes), np.zeros(n_classes), np.empty(size)
    for i in range(n):
        counts[codes[i]] += 1.0
        for j in range(n_classes):
            squares[j] += X[i, j] * X[i, j]
    biases = size - n_classes
    for k in range(n_classes):
        frequency = (counts[k] + 1.0) / (n + n_classes)
        spread = frequency * (1.0 - frequency)
        scale[biases + k] = 1.0 / (spread * n)
        for j in range(n_classes):
            if diagonal and k != j:
                continue
            curvature = spread * squares[j] + ridge
            place = k if diagonal else k * n_classes + j
            scale[place] = 1.0 / curvature if curvature > 0.0 else 1.0
    return scale


@jit
def _direction(
    gradient: Floats, scale: Floats, steps: Floats, changes: Floats, n_pairs: int
) -> Floats:
    """Return minus the inverse Hessian, as the remembered pairs have it, times the gradient."""
    direction = -gradient
    first = max(0, n_pairs - MEMORY)
    weights = np.empty(MEMORY)
    for number in range(n_pairs - 1, first - 1, -1):
        s, y = steps[number % MEMORY], changes[number % MEMORY]
        weights[number % MEMORY] = _dot(s, direction) / _dot(s, y)
        _add(direction, -weights[number % MEMORY], y)
    if n_pairs:
        s, y = steps[(n_pairs - 1) % MEMORY], changes[(n_pairs - 1) % MEMORY]
        _multiply(direction, _dot(s, y) / _weighted(y, scale), scale)
    else:
        _multiply(direction, 1.0, scale)
    for number in range(first, n_pairs):
        s, y = steps[number % MEMORY], changes[number % MEMORY]
        _add(direction, weights[number % MEMORY] - _dot(y, direction) / _dot(s, y), s)
    return direction


@jit
def _dot(u: Floats, v: Floats) -> float:
    total = 0.0
    for j in range(len(u)):
        total += u[j] * v[j]
    return total


@jit
def _add(u: Floats, factor: float, v: Floats) -> None:
    for j in range(len(u)):
        u[j] += factor * v[j]


@jit
def _multiply(u: Floats, factor: float, v: Floats) -> None:
    for j in range(len(u)):
        u[j] *= factor * v[j]


@jit
def _weighted(u: Floats, weights: Floats) -> float:
    total = 0.0
    for j in range(len(u)):
        total += weights[j] * u[j] * u[j]
    return total
