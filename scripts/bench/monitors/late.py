"""Independent examples whose labels come late, those of one class sooner than the others."""

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.alarm import Alarm

ROWS, RATE, HORIZON = 3_000, 0.3, 250
SOONER = (240, 0)
"""Examples from an answer to its label, of the two classes."""

LATE = {
    "positives sooner, by horizon": PredictorConfig(
        classes=("no", "yes"), committee="single", horizon=HORIZON
    ),
    "positives sooner, by arrival": PredictorConfig(
        classes=("no", "yes"), committee="single", horizon=HORIZON, maturity="arrival"
    ),
}
"""Nothing changes in these streams: the two rules differ in when an example is learned."""


def late_alarms(
    config: PredictorConfig, seed: int, delays: tuple[int, int] = SOONER
) -> list[Alarm]:
    """Return the calibration alarms of the predictor in a stream of 3,000 examples, in order.

    Of the examples 30 % are of the second class; one of two features says which, with one standard
    deviation between the classes.

    Parameters
    ----------
    config : PredictorConfig
        Of `LATE`.
    seed : int
    delays : tuple of two int
        Examples from an answer to its label, of each class; less than the horizon.
    """
    rng = np.random.default_rng(seed)
    codes = (rng.random(ROWS) < RATE).astype(np.int64)
    X = rng.normal(size=(ROWS, 2))
    X[:, 0] += codes
    predictor = OnlinePredictor(config)
    late, labels = predictor.late, ("no", "yes")
    assert late is not None
    for i in range(ROWS):
        late.accept(X[i], id=str(i))
        for code in (0, 1):
            known = i - delays[code]
            if known >= 0 and codes[known] == code:
                late.label(str(known), labels[code])
    answers = predictor.answer_accepted()
    return [one for one in answers if isinstance(one, Alarm) and one.kind == "calibration"]
