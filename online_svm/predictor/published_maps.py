"""The probability maps a predictor publishes, by name.

All but "implied" (see implied.py) and "mixed" (see mixture.py) are maps of the scores, fitted on
the calibration set. Some of them give an interval as well: belief and plausibility, or the two
values of Venn-Abers.
"""

from collections.abc import Callable

from online_svm.calibration.binning import BinningCalibrator
from online_svm.calibration.isotonic import IsotonicCalibrator
from online_svm.calibration.labelled_columns import LabelledColumns
from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.calibration.platt import PlattCalibrator
from online_svm.calibration.score_map import ScoreMap
from online_svm.calibration.venn_abers import VennAbersCalibrator
from online_svm.config import MIXED, PredictorConfig
from online_svm.storage.arrays import under
from online_svm.types import Arrays, Floats, Ints

INTERVAL_MAPS = ("venn-abers", "evidential-binning", "evidential-isotonic", "evidential-logistic")


def interval_maps(config: PredictorConfig) -> tuple[str, ...]:
    """Return the names of the published maps that give intervals.

    Examples
    --------
    >>> interval_maps(PredictorConfig(maps=("platt", "venn-abers")))
    ('venn-abers',)
    """
    return tuple(name for name in config.maps if name in INTERVAL_MAPS)


def fit_maps(config: PredictorConfig, scores: Floats, columns: Ints) -> dict[str, OneAgainstAll]:
    """Return the fitted maps of scores in `config`, one against all, in the order of its `maps`.

    Parameters
    ----------
    config : PredictorConfig
    scores : ndarray of shape (n, 1) or (n, n_classes)
    columns : ndarray of shape (n,)
        Class index of each example.
    """
    labelled = LabelledColumns(scores, columns)
    return {
        name: OneAgainstAll(_maker(config, name)).fit_columns(labelled)
        for name in _score_maps(config)
    }


def maps_from_state(state: Arrays, config: PredictorConfig) -> dict[str, OneAgainstAll]:
    """Return the maps whose states lie in `state` under their names."""
    return {
        name: OneAgainstAll.from_state(under(name, state), _maker(config, name))
        for name in _score_maps(config)
    }


def _score_maps(config: PredictorConfig) -> list[str]:
    return [name for name in config.maps if name not in ("implied", MIXED)]


def _maker(config: PredictorConfig, name: str) -> Callable[[], ScoreMap]:
    if name.startswith("evidential-"):
        return _evidential_maker(config, name)
    makers: dict[str, Callable[[], ScoreMap]] = {
        "platt": PlattCalibrator,
        "isotonic": IsotonicCalibrator,
        "binning": lambda: BinningCalibrator(n_bins=config.n_bins),
        "venn-abers": VennAbersCalibrator,
    }
    return makers[name]


def _evidential_maker(config: PredictorConfig, name: str) -> Callable[[], ScoreMap]:
    # Imported here: a worker that does not publish these maps starts without them.
    from online_svm.calibration.evidential.binning import EvidentialBinningCalibrator
    from online_svm.calibration.evidential.isotonic import EvidentialIsotonicCalibrator
    from online_svm.calibration.evidential.logistic import EvidentialLogisticCalibrator

    model, alpha = config.evidential_model, config.evidential_alpha
    makers: dict[str, Callable[[], ScoreMap]] = {
        "evidential-binning": lambda: EvidentialBinningCalibrator(model, config.n_bins, alpha),
        "evidential-isotonic": lambda: EvidentialIsotonicCalibrator(model, alpha),
        "evidential-logistic": lambda: EvidentialLogisticCalibrator(model, alpha),
    }
    return makers[name]
