"""Calibration by belief functions (Xu, Davoine, Zha & Denoeux 2016)."""

from online_svm.calibration.evidential.binning import EvidentialBinning
from online_svm.calibration.evidential.combination import (
    cautious_combine,
    combine,
    combined_decision,
    dempster_combine,
    plausibility_log_odds,
)
from online_svm.calibration.evidential.isotonic import EvidentialIsotonic
from online_svm.calibration.evidential.logistic import EvidentialLogistic
from online_svm.calibration.evidential.masses import (
    bayesian,
    belief_plausibility,
    from_bounds,
    inverse_pignistic,
    pignistic,
)

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
