"""Mass functions on {0, 1}: conversions to and from probabilities, and rules that combine them.

A mass function is a row of three numbers that sum to one: m({1}), m({0}) and the ignorance
m({0, 1}). Arrays of masses have shape (..., 3).
"""

import numpy as np
from numpy.typing import ArrayLike

from online_svm.compiled.elementary import logs
from online_svm.errors import InvalidInput
from online_svm.types import Bools, Floats

SUM_TOLERANCE = 1e-9  # far above rounding errors, far below mistakes


def stack(positive: ArrayLike, negative: ArrayLike) -> Floats:
    """Return the masses with the given m({1}) and m({0}); the rest is ignorance."""
    m1, m0 = np.broadcast_arrays(
        np.asarray(positive, dtype=np.float64), np.asarray(negative, dtype=np.float64)
    )
    # If the two sum to one, rounding can leave -1e-16 for the third.
    return np.stack([m1, m0, np.maximum(1.0 - m1 - m0, 0.0)], axis=-1)


def vacuous(n: int) -> Floats:
    """Return n masses of total ignorance."""
    return np.tile(np.array([0.0, 0.0, 1.0]), (n, 1))


def check_mass(mass: ArrayLike) -> Floats:
    """Return `mass` as a checked array of shape (..., 3).

    Raises InvalidInput if the last axis does not hold three non-negative numbers that sum to one.
    """
    masses = np.asarray(mass, dtype=np.float64)
    if masses.ndim == 0 or masses.shape[-1] != 3:
        raise InvalidInput(f"mass: has shape {masses.shape}; give m({{1}}), m({{0}}), m({{0,1}})")
    # The comparison also rejects NaN.
    proper = (masses >= 0.0).all(axis=-1) & (np.abs(masses.sum(axis=-1) - 1.0) <= SUM_TOLERANCE)
    if not proper.all():
        raise InvalidInput("mass: a row is not three numbers >= 0 that sum to one")
    return masses


def belief_plausibility(mass: ArrayLike) -> Floats:
    """Return Bel({1}) and Pl({1}) as the columns of an array of shape (..., 2).

    Raises InvalidInput if a row is not a mass function.
    """
    masses = check_mass(mass)
    belief = masses[..., 0]
    return np.stack([belief, np.minimum(belief + masses[..., 2], 1.0)], axis=-1)


def pignistic(mass: ArrayLike) -> Floats:
    """Return the pignistic probability of 1: m({1}) plus half of the ignorance (Xu et al., eq. 9).

    `mass` has shape (..., 3), the result (...). Raises InvalidInput if a row is no mass function.

    Examples
    --------
    >>> pignistic([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]).tolist()
    [0.625, 0.5]
    """
    masses = check_mass(mass)
    return np.asarray(np.minimum(masses[..., 0] + 0.5 * masses[..., 2], 1.0))


def inverse_pignistic(p: ArrayLike) -> Floats:
    """Return the least committed masses whose pignistic probability of 1 is p.

    They are consonant: m({1}) = 2p - 1 for p >= 1/2, m({0}) = 1 - 2p for p < 1/2, and the rest is
    ignorance (Dubois, Prade & Smets 2008).

    `p` has shape (...), the result (..., 3). Raises InvalidInput if a probability is not in [0, 1].

    Examples
    --------
    >>> inverse_pignistic([0.75, 0.25]).tolist()
    [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    """
    lean = 2.0 * _check_probability(p) - 1.0
    return stack(np.maximum(lean, 0.0), np.maximum(-lean, 0.0))


def bayesian(p: ArrayLike) -> Floats:
    """Return masses without ignorance: m({1}) = p and m({0}) = 1 - p.

    Raises InvalidInput if a probability is not in [0, 1].
    """
    probability = _check_probability(p)
    return np.stack([probability, 1.0 - probability, np.zeros_like(probability)], axis=-1)


def _check_probability(p: ArrayLike) -> Floats:
    probability = np.asarray(p, dtype=np.float64)
    if not ((probability >= 0.0) & (probability <= 1.0)).all():  # a NaN fails too
        raise InvalidInput("p: a probability is outside [0, 1]")
    return probability


# Lower plausibilities are raised to this floor, so that no single source overrules all others.
PLAUSIBILITY_FLOOR = 1e-12


def dempster_combine(masses: ArrayLike) -> Floats:
    """Combine independent sources by Dempster's rule (Xu et al., eqs 6 and 7).

    Without ignorance this is the product of the odds. If one source excludes 1 and another excludes
    0, the rule is undefined and the row is vacuous.

    `masses` has shape (n_sources, 3) or (n_sources, n, 3), the result (3,) or (n, 3). Raises
    InvalidInput if there is no source, or a row is not a mass function.

    Examples
    --------
    >>> dempster_combine([[0.5, 0.0, 0.5], [0.5, 0.0, 0.5]]).tolist()
    [0.75, 0.0, 0.25]
    """
    sources = _sources(masses)
    combined, conflict = sources[0], np.zeros(sources.shape[1:-1], dtype=np.bool_)
    for source in sources[1:]:
        combined, failed = _normalise(*_conjunction(combined, source))
        conflict = conflict | failed
    # Conflict is applied last, so that later sources cannot undo it and order does not matter.
    return np.where(conflict[..., None], [0.0, 0.0, 1.0], combined)


def plausibility_log_odds(masses: ArrayLike) -> Floats:
    """Return sum_i log(Pl_i(1) / Pl_i(0)), shape () or (n,): the log-odds of 1 by Dempster's rule.

    Plausibilities are raised to `PLAUSIBILITY_FLOOR`, so the sum is finite under total conflict
    too. Errors are as in `dempster_combine`.
    """
    sources = _sources(masses)
    ignorance = sources[..., 2]
    log_odds = np.zeros(sources.shape[1:-1])
    for m1, m0, both in zip(sources[..., 0], sources[..., 1], ignorance, strict=True):
        log_odds = log_odds + _log_plausibility(m1 + both) - _log_plausibility(m0 + both)
    return log_odds


def combined_decision(masses: ArrayLike) -> Bools:
    """Return True where the combined sources make 1 more plausible than 0; a tie is False."""
    return np.asarray(plausibility_log_odds(masses) > 0.0)


def _sources(masses: ArrayLike) -> Floats:
    sources = check_mass(masses)
    if sources.ndim < 2 or len(sources) == 0:
        raise InvalidInput("masses: give at least one source, stacked on the first axis")
    return sources


def _conjunction(first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Intersect two masses; mass on the empty set is dropped."""
    a1, a0, a = first[..., 0], first[..., 1], first[..., 2]
    b1, b0, b = second[..., 0], second[..., 1], second[..., 2]
    return a1 * b1 + a1 * b + a * b1, a0 * b0 + a0 * b + a * b0, a * b


def _normalise(m1: Floats, m0: Floats, both: Floats) -> tuple[Floats, Bools]:
    """Divide by the mass outside the empty set; also return a mask of rows without any."""
    total = np.asarray(m1 + m0 + both)
    none = total <= 0.0
    return np.stack([m1, m0, both], axis=-1) / np.where(none, 1.0, total)[..., None], none


def _log_plausibility(plausibility: Floats) -> Floats:
    return logs(np.maximum(plausibility, PLAUSIBILITY_FLOOR))
