"""Several sources of evidence about one label become one: three rules.

`masses` holds the sources on its first axis: shape (n_sources, 3) for one example, or
(n_sources, n, 3) for n of them.
"""

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.evidential.masses import check_mass
from online_svm.compiled.elementary import logs
from online_svm.errors import InvalidInput
from online_svm.types import Bools, Floats

# Below it a plausibility is taken as this: one source then never decides alone against all others.
PLAUSIBILITY_FLOOR = 1e-12
# The cautious rule divides by the ignorance: every source leaves at least this much open to it.
LEAST_IGNORANCE = 1e-9


def dempster_combine(masses: ArrayLike) -> Floats:
    """Combine independent sources by Dempster's rule (Xu et al., eqs 6 and 7).

    Without ignorance this is the product of the odds. Sources that contradict each other totally
    (one excludes 1, another excludes 0) have no combination: such a row is vacuous.

    Parameters
    ----------
    masses : array-like of shape (n_sources, 3) or (n_sources, n, 3)

    Returns
    -------
    ndarray of shape (3,) or (n, 3)

    Raises
    ------
    InvalidInput
        If there is no source, or a row is not a mass function.

    Examples
    --------
    >>> dempster_combine([[0.5, 0.0, 0.5], [0.5, 0.0, 0.5]]).tolist()
    [0.75, 0.0, 0.25]
    >>> dempster_combine([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).tolist()
    [0.0, 0.0, 1.0]
    """
    sources = _sources(masses)
    combined, conflict = sources[0], np.zeros(sources.shape[1:-1], dtype=np.bool_)
    for source in sources[1:]:
        combined, failed = _normalise(*_conjunction(combined, source))
        conflict = conflict | failed
    # Kept to the end, so that a further source cannot undo it and the order does not matter.
    return np.where(conflict[..., None], [0.0, 0.0, 1.0], combined)


def cautious_combine(masses: ArrayLike) -> Floats:
    """Combine sources that may share evidence by the normalised cautious rule (Denoeux 2008).

    Each mass is the combination of one simple mass on {1} and one on {0}; of every kind the
    most committed is kept. Combining a source with itself changes nothing. Where the strongest
    sources contradict each other totally the row is vacuous.

    Parameters
    ----------
    masses : array-like of shape (n_sources, 3) or (n_sources, n, 3)

    Returns
    -------
    ndarray of shape (3,) or (n, 3)

    Raises
    ------
    InvalidInput
        If there is no source, a row is not a mass function, or a row shares all its mass between
        {1} and {0}: it has no such decomposition.

    References
    ----------
    T. Denoeux. Conjunctive and disjunctive combination of belief functions induced by nondistinct
    bodies of evidence. Artificial Intelligence 172, 2008.

    Examples
    --------
    >>> cautious_combine([[0.5, 0.0, 0.5], [0.5, 0.0, 0.5]]).tolist()
    [0.5, 0.0, 0.5]
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
    """Return sum_i log(Pl_i(1) / Pl_i(0)), what Dempster's rule says about 1 against 0.

    Plausibilities below `PLAUSIBILITY_FLOOR` are raised to it, so total conflict gives a finite
    sum (zero between two sources) where the rule itself has no answer.

    Parameters
    ----------
    masses : array-like of shape (n_sources, 3) or (n_sources, n, 3)

    Returns
    -------
    ndarray of shape () or (n,)

    Raises
    ------
    InvalidInput
        If there is no source, or a row is not a mass function.

    Examples
    --------
    >>> float(plausibility_log_odds([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]))
    0.0
    """
    sources = _sources(masses)
    ignorance = sources[..., 2]
    log_odds = np.zeros(sources.shape[1:-1])
    for m1, m0, both in zip(sources[..., 0], sources[..., 1], ignorance, strict=True):
        log_odds = log_odds + _log_plausibility(m1 + both) - _log_plausibility(m0 + both)
    return log_odds


def combined_decision(masses: ArrayLike) -> Bools:
    """Return whether the combined sources find 1 more plausible than 0; a tie is 0.

    Parameters
    ----------
    masses : array-like of shape (n_sources, 3) or (n_sources, n, 3)

    Returns
    -------
    ndarray of bool, shape () or (n,)

    Raises
    ------
    InvalidInput
        If there is no source, or a row is not a mass function.

    Examples
    --------
    >>> combined_decision([[[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]]).tolist()
    [True, False]
    """
    return np.asarray(plausibility_log_odds(masses) > 0.0)


def combine(masses: ArrayLike, rule: str) -> tuple[Floats, Floats]:
    """Return the combined masses, shape (n, 3), and their log plausibility odds, shape (n,).

    Under Dempster's rule the odds are taken from the sources themselves: their product stays
    defined where sources contradict each other totally and the rule has no answer.

    Parameters
    ----------
    masses : array-like of shape (n_sources, n, 3)
    rule : {"dempster", "cautious"}

    Raises
    ------
    InvalidInput
        If a row is not a mass function, or there is no source.

    Examples
    --------
    >>> masses, odds = combine([[[0.5, 0.0, 0.5]], [[0.5, 0.0, 0.5]]], "dempster")
    >>> masses.tolist(), odds.round(3).tolist()
    ([[0.75, 0.0, 0.25]], [1.386])
    >>> combine([[[0.5, 0.0, 0.5]], [[0.5, 0.0, 0.5]]], "cautious")[0].tolist()
    [[0.5, 0.0, 0.5]]
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
    """Discount the sources that leave nothing open."""
    missing = np.maximum(LEAST_IGNORANCE - sources[..., 2:], 0.0)
    kept = sources * (1.0 - missing)
    return np.concatenate((kept[..., :2], kept[..., 2:] + missing), axis=-1)


def _conjunction(first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Intersect two masses; what falls on the empty set is left out."""
    a1, a0, a = first[..., 0], first[..., 1], first[..., 2]
    b1, b0, b = second[..., 0], second[..., 1], second[..., 2]
    return a1 * b1 + a1 * b + a * b1, a0 * b0 + a0 * b + a * b0, a * b


def _normalise(m1: Floats, m0: Floats, both: Floats) -> tuple[Floats, Bools]:
    """Divide by the mass outside the empty set; also say where there is none."""
    total = np.asarray(m1 + m0 + both)
    none = total <= 0.0
    return np.stack([m1, m0, both], axis=-1) / np.where(none, 1.0, total)[..., None], none


def _weight(focal: Floats, ignorance: Floats) -> Floats:
    """Return the weight of a simple mass: 1 is no evidence, 0 is certainty."""
    held = focal > 0.0
    return np.where(held, ignorance / np.where(held, focal + ignorance, 1.0), 1.0)


def _log_plausibility(plausibility: Floats) -> Floats:
    return logs(np.maximum(plausibility, PLAUSIBILITY_FLOOR))
