"""Scores to fit a sigmoid on (Platt 1999, section 2.2)."""

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from online_svm.types import Bools, Floats


def cross_validated(machine: Any, X: Floats, positive: Bools, seed: int) -> Floats:
    """Return the scores of the rows, each part of three by a clone trained on the other two."""
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    found = cross_val_predict(machine, X, positive, cv=folds, method="decision_function")
    return np.asarray(found, dtype=np.float64)
