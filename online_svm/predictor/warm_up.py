"""The answer before two classes could be trained on: nothing is known, and it says so."""

import numpy as np

from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Ints

REASON = "warming up: no proper training set had two classes yet"


def warming_block(
    declared: tuple[str | None, ...] | None,
    n: Ints,
    *,
    map_intervals: bool = False,
    imputed: int = -1,
) -> PredictionBlock:
    """Return a block without labels, for rows answered after `n` learned examples each.

    Its classes are the declared ones, or only the slot of unseen labels: no model knows any yet.
    `map_intervals` says whether a published map gives intervals, and `imputed` is 0 where features
    have kinds: none is known yet.

    Examples
    --------
    >>> block = warming_block(None, np.array([0, 1]))
    >>> block.row(0).label, block.row(0).lower, block.row(0).upper, block.guarantee
    (None, 0.0, 1.0, 'none')
    """
    m = len(n)
    return PredictionBlock(
        status="warming",
        classes=(None,) if declared is None else declared,
        n=n,
        label=np.full(m, -1),
        svm_label=np.full(m, -1),
        point=np.empty((m, 0)),
        lower=np.empty((m, 0)),
        upper=np.empty((m, 0)),
        venn_point=np.empty((m, 0)),
        venn_lower=np.empty((m, 0)),
        venn_upper=np.empty((m, 0)),
        maps={},
        map_intervals={} if map_intervals else None,
        scores=np.empty((m, 0)),
        category=np.full(m, -1),
        category_size=np.zeros(m, dtype=np.int64),
        imputed=np.full(m, imputed),
        model=0,
        calibration=0,
        taxonomy=0,
        guarantee="none",
        reason=REASON,
        method=None,
        interval_level=None,
    )
