"""Calibration by belief functions (Xu, Davoine, Zha & Denoeux 2016).

The estimators are imported when they are first used, since scikit-learn takes a second to load.
"""

from typing import TYPE_CHECKING, Any

from online_svm.calibration.evidential.combination import (
    cautious_combine,
    combine,
    combined_decision,
    dempster_combine,
    plausibility_log_odds,
)
from online_svm.calibration.evidential.masses import (
    bayesian,
    belief_plausibility,
    from_bounds,
    inverse_pignistic,
    pignistic,
)

if TYPE_CHECKING:
    from online_svm.calibration.evidential.estimators import (
        EvidentialBinning,
        EvidentialIsotonic,
        EvidentialLogistic,
    )

_ESTIMATORS = frozenset({"EvidentialBinning", "EvidentialIsotonic", "EvidentialLogistic"})

__all__ = [
    "EvidentialBinning",
    "EvidentialIsotonic",
    "EvidentialLogistic",
    "bayesian",
    "belief_plausibility",
    "cautious_combine",
    "combine",
    "combined_decision",
    "dempster_combine",
    "from_bounds",
    "inverse_pignistic",
    "pignistic",
    "plausibility_log_odds",
]


def __getattr__(name: str) -> Any:
    """Import an estimator at its first use (PEP 562)."""
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from online_svm.calibration.evidential import estimators

    return getattr(estimators, name)
