"""E-values for calibration from probability integral transforms.

Arnold, Henzi & Ziegel 2023, "Sequentially valid tests for forecast calibration" (Annals of Applied
Statistics 17). If the announced probabilities are right, the randomised transforms of the outcomes
are independent and uniform. So any density on [0, 1] that was chosen before an outcome is an
e-value of its transform, and the product over all is an e-process. Here the density is a beta
density, fitted to the transforms before by maximum likelihood, as in the paper; there is no package
of it for Python.
"""

import numpy as np
from scipy.special import betaln, digamma, polygamma
from typing_extensions import override

from online_svm.types import Floats
from scripts.bench.monitors.detectors import Path
from scripts.bench.monitors.worlds import Stream

FIRST, EVERY = 20, 10
"""Transforms before the first fit, until which nothing is bet; and from one fit to the next."""

_LEAST = 1e-9  # a transform is at least so far from 0 and 1
_MOST = 50.0  # of a parameter of the density


class PitBeta(Path):
    """The e-process of beta densities of the transforms of an event and its probability."""

    @override
    def path(self, stream: Stream, begin: int) -> Floats:
        z = transforms(stream.misses[begin:])
        logs = np.stack([np.log(z), np.log1p(-z)])
        sums = np.cumsum(logs, axis=1)
        parameters, found = np.ones(2), np.zeros(len(z))
        for at in range(FIRST, len(z), EVERY):
            parameters = fitted(sums[:, at - 1] / at, parameters)
            part = slice(at, at + EVERY)
            found[part] = (parameters - 1.0) @ logs[:, part] - betaln(*parameters)
        return np.cumsum(found)


def transforms(misses: Floats) -> Floats:
    """Return the randomised transforms of events, each given as y - p, in (0, 1).

    Where the event does not happen it is uniform on [0, 1 - p], else on [1 - p, 1].

    Examples
    --------
    >>> below, above = transforms(np.array([-0.25, 0.75]))
    >>> bool(below < 0.75 < above)
    True
    """
    u = np.random.default_rng(0).random(len(misses))
    p = np.where(misses > 0.0, 1.0 - misses, -misses)
    z = np.where(misses > 0.0, 1.0 - p * u, (1.0 - p) * u)
    return np.clip(z, _LEAST, 1.0 - _LEAST)


def fitted(means: Floats, begin: Floats) -> Floats:
    """Return the beta density of maximum likelihood, by Newton's method.

    Parameters
    ----------
    means : ndarray of shape (2,)
        Mean of ln z and of ln(1 - z).
    begin : ndarray of shape (2,)
        Where to begin.

    Examples
    --------
    >>> z = np.random.default_rng(0).beta(2.0, 3.0, 100_000)
    >>> fitted(np.array([np.log(z).mean(), np.log1p(-z).mean()]), np.ones(2)).round(1)
    array([2., 3.])
    """
    at = begin
    for _ in range(20):
        both = at.sum()
        gradient = means - digamma(at) + digamma(both)
        curvature = polygamma(1, both) - np.diag(polygamma(1, at))
        step = np.linalg.solve(curvature, gradient)
        moved = at - step
        # A step out of the parameters' range goes half of the way to its edge.
        at = np.minimum(np.where(moved > 0.0, moved, 0.5 * at), _MOST)
        if np.abs(step).max() < 1e-6:
            break
    return at
