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


def from_bounds(belief: ArrayLike, plausibility: ArrayLike) -> Floats:
    """Return the masses, shape (..., 3), with the given belief and plausibility of 1.

    A belief above the plausibility by rounding is lowered to it. Raises InvalidInput if 0 <= belief
    <= plausibility <= 1 does not hold.
    """
    low, high = np.asarray(belief, dtype=np.float64), np.asarray(plausibility, dtype=np.float64)
    both = np.maximum(high - low, 0.0)
    return check_mass(np.stack(np.broadcast_arrays(low, 1.0 - high, both), axis=-1))


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
# The cautious rule divides by the ignorance, so each source keeps at least this much.
MIN_IGNORANCE = 1e-9


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


def cautious_combine(masses: ArrayLike) -> Floats:
    """Combine possibly dependent sources by the normalised cautious rule.

    Each mass function is the combination of a simple mass on {1} and a simple mass on {0}; the rule
    keeps the most committed of each. Combining a source with itself changes nothing. If the most
    committed masses contradict each other totally, the row is vacuous. Shapes and errors are as in
    `dempster_combine`; a row that splits all its mass between {1} and {0} is an error too, because
    it has no decomposition.

    References
    ----------
    T. Denoeux. Conjunctive and disjunctive combination of belief functions induced by nondistinct
    bodies of evidence. Artificial Intelligence 172, 2008.
    """
    sources = _sources(masses)
    m1, m0, ignorance = sources[..., 0], sources[..., 1], sources[..., 2]
    if ((ignorance == 0.0) & (m1 > 0.0) & (m0 > 0.0)).any():
        raise InvalidInput(
            "masses: the cautious rule needs m({0,1}) > 0; discount probabilities, "
            "or turn them into masses by inverse_pignistic"
        )
    w1, w0 = _weight(m1, ignorance).min(axis=0), _weight(m0, ignorance).min(axis=0)
    combined, conflict = _normalise((1.0 - w1) * w0, w1 * (1.0 - w0), w1 * w0)
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


def combine(masses: ArrayLike, rule: str) -> tuple[Floats, Floats]:
    """Return the combined masses, shape (n, 3), and their log plausibility odds, shape (n,).

    `rule` is "dempster" or "cautious"; errors are as in `dempster_combine`. With Dempster's rule
    the odds come from the sources, because they stay defined under total conflict.
    """
    sources = _sources(masses)
    if rule == "dempster":
        return dempster_combine(sources), plausibility_log_odds(sources)
    combined = cautious_combine(_with_ignorance(sources))
    return combined, plausibility_log_odds(combined[None])


def _sources(masses: ArrayLike) -> Floats:
    sources = check_mass(masses)
    if sources.ndim < 2 or len(sources) == 0:
        raise InvalidInput("masses: give at least one source, stacked on the first axis")
    return sources


def _with_ignorance(sources: Floats) -> Floats:
    """Discount sources whose ignorance is below the minimum."""
    missing = np.maximum(MIN_IGNORANCE - sources[..., 2:], 0.0)
    kept = sources * (1.0 - missing)
    return np.concatenate((kept[..., :2], kept[..., 2:] + missing), axis=-1)


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


def _weight(focal: Floats, ignorance: Floats) -> Floats:
    """Return the weight of a simple mass: 1 is no evidence, 0 is certainty."""
    held = focal > 0.0
    return np.where(held, ignorance / np.where(held, focal + ignorance, 1.0), 1.0)


def _log_plausibility(plausibility: Floats) -> Floats:
    return logs(np.maximum(plausibility, PLAUSIBILITY_FLOOR))
