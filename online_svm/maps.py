"""The probability maps a predictor publishes, by name."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from online_svm.arrays import Arrays, under
from online_svm.calibration.base import ScoreMap
from online_svm.calibration.binning import ScoreBinning
from online_svm.calibration.isotonic import IsotonicMap
from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.calibration.platt import PlattScaling
from online_svm.config import PredictorConfig

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def fit_maps(config: PredictorConfig, scores: Floats, columns: Ints) -> dict[str, OneAgainstAll]:
    """Return the fitted maps of `config`, one against all, in the order of `config.maps`.

    Parameters
    ----------
    config : PredictorConfig
    scores : ndarray of shape (n, 1) or (n, n_classes)
    columns : ndarray of shape (n,)
        Class index of each example.
    """
    return {name: OneAgainstAll(_maker(config, name)).fit(scores, columns) for name in config.maps}


def restore_maps(config: PredictorConfig, arrays: Arrays) -> dict[str, OneAgainstAll]:
    """Return the maps whose states lie in `arrays` under their names."""
    return {
        name: OneAgainstAll.from_state(_maker(config, name), under(name, arrays))
        for name in config.maps
    }


def _maker(config: PredictorConfig, name: str) -> Callable[[], ScoreMap]:
    makers: dict[str, Callable[[], ScoreMap]] = {
        "platt": PlattScaling,
        "isotonic": IsotonicMap,
        "binning": lambda: ScoreBinning(n_bins=config.n_bins),
    }
    return makers[name]
