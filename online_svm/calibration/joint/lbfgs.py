"""Minimise the loss of a softmax map by L-BFGS, additions in fixed order (Liu & Nocedal 1989)."""

import numpy as np

from online_svm.calibration.joint.softmax import loss_and_gradient
from online_svm.compiled.jit import jit
from online_svm.types import Floats, Ints

MEMORY = 10  # pairs of steps that are remembered
MAX_ITERATIONS = 200  # twenty to forty are usual
NEARLY_FLAT = 1e-6  # largest part of the gradient, an example
SUFFICIENT_DECREASE = 1e-4  # Armijo's constant
SHORTEST_STEP = 1e-10


@jit
def minimise(
    X: Floats, codes: Ints, highs: Floats, theta: Floats, diagonal: bool, ridge: float
) -> int:
    """Move `theta` to the minimum of `loss_and_gradient`; return the number of iterations."""
    size = len(theta)
    steps, changes = np.zeros((MEMORY, size)), np.zeros((MEMORY, size))
    gradient, other, trial = np.empty(size), np.empty(size), np.empty(size)
    loss = loss_and_gradient(X, codes, highs, theta, diagonal, ridge, gradient)
    n_pairs = 0
    for iteration in range(MAX_ITERATIONS):
        if np.abs(gradient).max() <= NEARLY_FLAT * len(X):
            return iteration
        # 1. The direction, by the pairs so far; the steepest one without any.
        direction = _direction(gradient, steps, changes, n_pairs)
        slope = _dot(direction, gradient)
        if not slope < 0.0:  # lost in rounding
            return iteration
        # 2. Line search: halve the step until the loss falls enough (Armijo).
        length = 1.0 if n_pairs else 1.0 / max(1.0, np.sqrt(-slope))
        found = loss
        while length >= SHORTEST_STEP:
            for j in range(size):
                trial[j] = theta[j] + length * direction[j]
            found = loss_and_gradient(X, codes, highs, trial, diagonal, ridge, other)
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
def _direction(gradient: Floats, steps: Floats, changes: Floats, n_pairs: int) -> Floats:
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
        direction *= _dot(s, y) / _dot(y, y)
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
