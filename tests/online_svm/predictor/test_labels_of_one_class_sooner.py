"""Which order of learning is safe where the labels of one class come sooner.

Nothing changes in these streams. By `arrival` the examples that are learned first are all of one
class, and the monitor of calibration finds that they are unlike the others.
"""

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import DelayedLabel, InputBatch

ROWS, RATE, HORIZON = 3_000, 0.3, 250
SOONER = (240, 0)  # examples from an answer to its label, of the two classes


def has_alarm(maturity, seed, delays=SOONER):
    """Return whether the calibration alarms; of two features one separates the classes."""
    rng = np.random.default_rng(seed)
    codes = (rng.random(ROWS) < RATE).astype(np.int64)
    X = rng.normal(size=(ROWS, 2))
    X[:, 0] += codes
    config = PredictorConfig(
        classes=("no", "yes"), committee="single", horizon=HORIZON, maturity=maturity
    )
    rows, late, index = [], {}, 0
    for i in range(ROWS):
        rows.append(index)
        for code in (0, 1):
            known = i - delays[code]
            if known >= 0 and codes[known] == code:
                index += 1
                late[index] = DelayedLabel(str(known), ("no", "yes")[code])
        index += 1
    batch = InputBatch(X, [None] * ROWS, rows, late, ids=[str(i) for i in range(ROWS)])
    alarms = OnlinePredictor(config).process(batch).alarms
    return any(alarm.kind == "calibration" for _, alarm in alarms)


@pytest.mark.slow
def test_labels_by_arrival_alarm_where_one_class_comes_sooner():
    seeds = range(4)
    assert not any(has_alarm("horizon", seed) for seed in seeds)
    assert all(has_alarm("arrival", seed) for seed in seeds)
    assert not any(has_alarm("arrival", seed, delays=(240, 240)) for seed in seeds)
