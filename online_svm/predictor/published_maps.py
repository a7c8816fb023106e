"""The probability maps a predictor publishes, by name.

All but "implied" (see implied.py) and "mixed" (see mixture.py) are maps of the scores, fitted on
the calibration set: one map a class, normalised over the classes, or one joint map of all. Some
give an interval as well: belief and plausibility, or the two values of Venn-Abers.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.binning import ScoreBinning
from online_svm.calibration.isotonic import IsotonicMap
from online_svm.calibration.one_against_all import LabelledColumns, OneAgainstAll, normalise_rows
from online_svm.calibration.platt import PlattScaling
from online_svm.calibration.score_map import ScoreMap
from online_svm.calibration.venn_abers import VennAbers
from online_svm.config import MIXED, PredictorConfig
from online_svm.storage.arrays import under
from online_svm.svm.implied.packed_bank import PackedBank
from online_svm.types import Arrays, Floats, Ints

if TYPE_CHECKING:
    from online_svm.calibration.joint.maps import JointMap

JOINT_MAPS = ("temperature", "vector", "matrix")
INTERVAL_MAPS = ("venn-abers", "evidential-binning", "evidential-isotonic", "evidential-logistic")


def interval_maps(config: PredictorConfig) -> tuple[str, ...]:
    """Return the names of the published maps that give intervals.

    Examples
    --------
    >>> interval_maps(PredictorConfig(maps=("platt", "venn-abers")))
    ('venn-abers',)
    """
    return tuple(name for name in config.maps if name in INTERVAL_MAPS)


class ClassMap(Protocol):
    """A fitted map from rows of scores to probabilities of all classes."""

    def predict(self, scores: ArrayLike) -> Floats:
        """Return the probability of every class for each row of scores."""

    def predict_unchecked(self, scores: Floats) -> Floats:
        """Do the same for scores of the columns of `fit` that are known to be finite."""

    def state(self) -> Arrays:
        """Return the fitted map as arrays."""


def fit_maps(config: PredictorConfig, scores: Floats, columns: Ints) -> dict[str, ClassMap]:
    """Return the fitted maps of scores in `config`, in the order of its `maps`.

    Parameters
    ----------
    config : PredictorConfig
    scores : ndarray of shape (n, 1) or (n, n_classes)
    columns : ndarray of shape (n,)
        Class index of each example.
    """
    labelled = LabelledColumns(scores, columns)
    return {name: _fitted(name, labelled, columns) for name in _score_maps(config)}


def maps_from_state(state: Arrays, config: PredictorConfig, n_columns: int) -> dict[str, ClassMap]:
    """Return the maps of so many columns of scores whose states lie in `state` under their names.

    Raises
    ------
    InvalidInput, InvalidSnapshot
        If an array is absent or does not fit, or a map is of other columns.
    """
    maps = {name: _restored(under(name, state), name) for name in _score_maps(config)}
    for fitted in maps.values():
        check_n_columns(fitted, n_columns)
    return maps


def check_n_columns(fitted: ClassMap, n_columns: int) -> None:
    """Raise InvalidInput unless a map is one of so many columns of scores.

    `predict_unchecked` does not ask, and compiled code does not check its indices.
    """
    fitted.predict(np.zeros((1, n_columns)))


def _fitted(name: str, labelled: LabelledColumns, columns: Ints) -> ClassMap:
    if name in JOINT_MAPS:
        return joint_kind(name)().fit(labelled.scores, columns)
    return OneAgainstAll(_maker(name)).fit_columns(labelled)


def _restored(state: Arrays, name: str) -> ClassMap:
    if name in JOINT_MAPS:
        return joint_kind(name).from_state(state)
    return OneAgainstAll.from_state(state, _maker(name))


def joint_kind(name: str) -> "type[JointMap]":
    """Return the class of a joint map by its published name.

    Examples
    --------
    >>> joint_kind("vector").__name__
    'VectorScaling'
    """
    # Imported here, as the evidential maps: its kernels take time to load.
    from online_svm.calibration.joint import maps

    return {
        "temperature": maps.TemperatureScaling,
        "vector": maps.VectorScaling,
        "matrix": maps.MatrixScaling,
    }[name]


def _score_maps(config: PredictorConfig) -> list[str]:
    return [name for name in config.maps if name not in ("implied", MIXED)]


def _maker(name: str) -> Callable[[], ScoreMap]:
    if name.startswith("evidential-"):
        return _evidential_maker(name)
    makers: dict[str, Callable[[], ScoreMap]] = {
        "platt": PlattScaling,
        "isotonic": IsotonicMap,
        "binning": ScoreBinning,
        "venn-abers": VennAbers,
    }
    return makers[name]


def _evidential_maker(name: str) -> Callable[[], ScoreMap]:
    # Imported here: a worker that does not publish these maps starts without them.
    from online_svm.calibration.evidential.blocks import EvidentialBinning, EvidentialIsotonic
    from online_svm.calibration.evidential.logistic import EvidentialLogistic

    makers: dict[str, Callable[[], ScoreMap]] = {
        "evidential-binning": EvidentialBinning,
        "evidential-isotonic": EvidentialIsotonic,
        "evidential-logistic": EvidentialLogistic,
    }
    return makers[name]


def implied_probabilities(banks: Sequence[PackedBank], X: Floats) -> Floats:
    """Return the probability of each class for scaled rows, shape (m, n_classes).

    The values of a row do not depend on the other rows.
    """
    shares = np.column_stack([bank.shares(X) for bank in banks])
    return np.column_stack((1.0 - shares, shares)) if len(banks) == 1 else normalise_rows(shares)
