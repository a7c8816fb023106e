"""I.i.d. streams of normal classes, whose probabilities are known; and all processors for them."""

import math
import os

import numpy as np

from scripts.parallel import each

APART = 1.5
"""Radius of the circle on which the classes lie; each has the standard deviation 1."""


def spread(function, tasks):
    """Return `function` of each task, by all processors where no other test has them.

    A process that starts imports and loads as long as hundreds of streams take.
    """
    if "PYTEST_XDIST_WORKER" in os.environ or len(tasks) == 1:
        return [function(task) for task in tasks]
    return each(function, tasks)


def centres(n_classes):
    """Return the middle of each class of `stream`, shape (n_classes, 2)."""
    angles = 2.0 * math.pi * np.arange(n_classes) / n_classes
    return APART * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def stream(rng, n, shares):
    """Return i.i.d. examples: two features, normal around a point of a circle for each class."""
    codes = rng.choice(len(shares), size=n, p=shares)
    return rng.normal(size=(n, 2)) + centres(len(shares))[codes], codes
