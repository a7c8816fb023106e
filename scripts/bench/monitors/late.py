"""Independent examples whose labels come late, those of one class sooner than the others."""

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.alarm import Alarm
from online_svm.stream.input_batch import InputBatch, LateLabel

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
    rows, late, index = list[int](), dict[int, LateLabel](), 0
    for i in range(ROWS):
        rows.append(index)
        for code in (0, 1):
            known = i - delays[code]
            if known >= 0 and codes[known] == code:
                index += 1
                late[index] = LateLabel(str(known), ("no", "yes")[code])
        index += 1
    batch = InputBatch(X, [None] * ROWS, rows, late, ids=[str(i) for i in range(ROWS)])
    return [alarm for _, alarm in predictor.process(batch).alarms if alarm.kind == "calibration"]
