"""Which headline the answers of a model have: by the settings and the number of known classes."""

from online_svm.config import PredictorConfig
from online_svm.predictor.headline import Headline, VennHeadline
from online_svm.predictor.pair_headline import PairHeadline, RecentHeadline
from online_svm.storage.arrays import under
from online_svm.types import Arrays


def headline_of(config: PredictorConfig, n_known: int) -> Headline:
    """Return the headline for `n_known` classes, not fitted yet.

    Examples
    --------
    >>> headline_of(PredictorConfig(committee="default"), 3).method
    'joint'
    >>> headline_of(PredictorConfig(committee="default"), 2).method
    'venn-abers-mixed'
    >>> headline_of(PredictorConfig(committee="single"), 3).method
    'venn'
    """
    if _is_pair(config, n_known):
        return RecentHeadline(PairHeadline())
    if not _is_joint(config, n_known):
        return VennHeadline()
    # Imported here: a worker with two classes starts without these kernels.
    from online_svm.predictor.joint_headline import JointHeadline

    return JointHeadline()


def headline_from_state(state: Arrays, config: PredictorConfig, n_known: int) -> Headline:
    """Return the headline that `state` describes.

    Raises
    ------
    InvalidSnapshot
        If an array is absent or has another type, length or range.
    """
    if _is_pair(config, n_known):
        return RecentHeadline.from_state(state, PairHeadline.from_state(under("inner", state)))
    if not _is_joint(config, n_known):
        return VennHeadline()
    from online_svm.predictor.joint_headline import JointHeadline

    return JointHeadline.from_state(state)


def follows_recent(config: PredictorConfig, n_known: int) -> bool:
    """Return whether what was said lately is mixed into the headline of a committee."""
    return _is_pair(config, n_known) or _is_joint(config, n_known)


def _is_joint(config: PredictorConfig, n_known: int) -> bool:
    return bool(config.members) and n_known > 2


def _is_pair(config: PredictorConfig, n_known: int) -> bool:
    is_pair = n_known == 2 and config.taxonomy_of(n_known) == "venn-abers"
    return bool(config.members) and is_pair
