"""Mass functions on {0, 1}: their columns, and the ways between masses and probabilities.

A mass function is a row of three numbers that sum to one: m({1}), m({0}) and m({0, 1}), the last
being the ignorance. Arrays of masses have shape (..., 3).
"""

import numpy as np
from numpy.typing import ArrayLike

from online_svm.errors import InvalidInput
from online_svm.types import Floats

SUM_TOLERANCE = 1e-9  # rounding of a few operations on masses stays far below, a mistake far above


def stack(positive: ArrayLike, negative: ArrayLike) -> Floats:
    """Return the masses whose m({1}) and m({0}) are given; the rest is ignorance.

    Examples
    --------
    >>> stack(0.5, 0.25).tolist()
    [0.5, 0.25, 0.25]
    """
    m1, m0 = np.broadcast_arrays(
        np.asarray(positive, dtype=np.float64), np.asarray(negative, dtype=np.float64)
    )
    # Two shares that fill the unit may leave -1e-16 for the third by rounding.
    return np.stack([m1, m0, np.maximum(1.0 - m1 - m0, 0.0)], axis=-1)


def from_bounds(belief: ArrayLike, plausibility: ArrayLike) -> Floats:
    """Return the masses with this belief and plausibility of 1: shape (..., 3).

    A belief above the plausibility by rounding is taken as equal to it.

    Raises
    ------
    InvalidInput
        If 0 <= belief <= plausibility <= 1 does not hold.

    Examples
    --------
    >>> from_bounds(0.25, 0.75).tolist()
    [0.25, 0.25, 0.5]
    """
    low, high = np.asarray(belief, dtype=np.float64), np.asarray(plausibility, dtype=np.float64)
    both = np.maximum(high - low, 0.0)
    return check_mass(np.stack(np.broadcast_arrays(low, 1.0 - high, both), axis=-1))


def vacuous(n: int) -> Floats:
    """Return n masses of total ignorance.

    Examples
    --------
    >>> vacuous(1).tolist()
    [[0.0, 0.0, 1.0]]
    """
    return np.tile(np.array([0.0, 0.0, 1.0]), (n, 1))


def check_mass(mass: ArrayLike) -> Floats:
    """Return `mass` as an array of shape (..., 3), checked.

    Raises
    ------
    InvalidInput
        If the last axis does not hold three numbers that are at least zero and sum to one.
    """
    masses = np.asarray(mass, dtype=np.float64)
    if masses.ndim == 0 or masses.shape[-1] != 3:
        raise InvalidInput(f"mass: has shape {masses.shape}; give m({{1}}), m({{0}}), m({{0,1}})")
    # A NaN fails the comparison too.
    proper = (masses >= 0.0).all(axis=-1) & (np.abs(masses.sum(axis=-1) - 1.0) <= SUM_TOLERANCE)
    if not proper.all():
        raise InvalidInput("mass: a row is not three numbers >= 0 that sum to one")
    return masses


def belief_plausibility(mass: ArrayLike) -> Floats:
    """Return Bel({1}) and Pl({1}) as the columns of an array of shape (..., 2).

    Raises
    ------
    InvalidInput
        If a row is not a mass function.

    Examples
    --------
    >>> belief_plausibility([0.5, 0.25, 0.25]).tolist()
    [0.5, 0.75]
    """
    masses = check_mass(mass)
    belief = masses[..., 0]
    return np.stack([belief, np.minimum(belief + masses[..., 2], 1.0)], axis=-1)


def pignistic(mass: ArrayLike) -> Floats:
    """Return the pignistic probability of 1: ignorance is shared equally (Xu et al., eq. 9).

    Parameters
    ----------
    mass : array-like of shape (..., 3)

    Returns
    -------
    ndarray of shape (...)

    Raises
    ------
    InvalidInput
        If a row is not a mass function.

    Examples
    --------
    >>> pignistic([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]).tolist()
    [0.625, 0.5]
    """
    masses = check_mass(mass)
    return np.asarray(np.minimum(masses[..., 0] + 0.5 * masses[..., 2], 1.0))


def inverse_pignistic(p: ArrayLike) -> Floats:
    """Return the least committed masses whose pignistic probability of 1 is p.

    Consonant: m({1}) = 2p - 1 for p >= 1/2, m({0}) = 1 - 2p below, the rest is ignorance
    (Dubois, Prade & Smets 2008).

    Parameters
    ----------
    p : array-like of shape (...)

    Returns
    -------
    ndarray of shape (..., 3)

    Raises
    ------
    InvalidInput
        If a probability is not in [0, 1].

    Examples
    --------
    >>> inverse_pignistic([0.75, 0.25]).tolist()
    [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    """
    lean = 2.0 * _check_probability(p) - 1.0
    return stack(np.maximum(lean, 0.0), np.maximum(-lean, 0.0))


def bayesian(p: ArrayLike) -> Floats:
    """Return masses without ignorance: m({1}) = p and m({0}) = 1 - p.

    Raises
    ------
    InvalidInput
        If a probability is not in [0, 1].

    Examples
    --------
    >>> bayesian(0.75).tolist()
    [0.75, 0.25, 0.0]
    """
    probability = _check_probability(p)
    return np.stack([probability, 1.0 - probability, np.zeros_like(probability)], axis=-1)


def _check_probability(p: ArrayLike) -> Floats:
    probability = np.asarray(p, dtype=np.float64)
    if not ((probability >= 0.0) & (probability <= 1.0)).all():  # a NaN fails too
        raise InvalidInput("p: a probability is outside [0, 1]")
    return probability
