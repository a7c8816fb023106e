"""Independent examples of a few classes, many of them with heavy tails, as our predictor answers.

Nothing changes in them. What is announced after a hundred examples is off by several points all the
same: it was learned from few.
"""

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.alarm import Alarm
from online_svm.types import Floats, Ints

ROWS = 1_500
"""With no tolerance for what was learned from few, alarms came between examples 100 and 1,008."""

INDEPENDENT = {f"i.i.d., {k} classes, our answers": k for k in (2, 3, 4)}

FREEDOM = (np.inf, 3.0, 1.5, 1.0)
"""Degrees of freedom of the features' t distributions, in turn: from the normal to Cauchy's."""


def independent(classes: int, seed: int) -> tuple[Floats, Ints]:
    """Return features of shape (`ROWS`, 2, 4 or 8) and the codes of their labels.

    Each class has a centre of its own, all have one distribution about it. In every third stream
    some classes are rarer than others.

    Examples
    --------
    >>> X, codes = independent(3, seed=0)
    >>> len(X), np.unique(codes)
    (1500, array([0, 1, 2]))
    """
    rng = np.random.default_rng([classes, seed])
    d = int(rng.choice([2, 4, 8]))
    apart = float(rng.choice([0.7, 1.2, 2.0]))
    shares = np.full(classes, 1 / classes)
    if seed % 3 == 0:
        shares = rng.dirichlet(np.full(classes, 3.0))
    centres = 1.5 * apart / np.sqrt(d) * rng.normal(size=(classes, d))
    codes = rng.choice(classes, ROWS, p=shares)
    freedom = FREEDOM[seed % len(FREEDOM)]
    shape = (ROWS, d)
    noise = rng.normal(size=shape) if freedom == np.inf else rng.standard_t(freedom, shape)
    return centres[codes] + noise, codes


def independent_alarms(classes: int, seed: int) -> list[Alarm]:
    """Return the alarms of the default predictor in such a stream, in order."""
    X, codes = independent(classes, seed)
    names = tuple("abcd"[:classes])
    answers = OnlinePredictor(PredictorConfig(classes=names)).step_many(
        X, [names[code] for code in codes.tolist()]
    )
    return [one for one in answers if isinstance(one, Alarm)]
