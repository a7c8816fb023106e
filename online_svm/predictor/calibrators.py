"""The calibrators that a predictor publishes, by name.

All but "implied" (see implied.py) and "mixed" (see ensemble.py) map scores to probabilities and are
fitted on the calibration set: one calibrator a class, normalised over the classes, or one joint
calibrator. Some also give an interval: belief and plausibility, or the Venn-Abers pair.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.isotonic import IsotonicMap, ScoreBinning
from online_svm.calibration.one_against_all import LabelledColumns, OneAgainstAll, normalise_rows
from online_svm.calibration.platt import PlattScaling
from online_svm.calibration.score_map import ScoreMap
from online_svm.calibration.venn_abers import VennAbers
from online_svm.config import MIXED, PredictorConfig
from online_svm.storage.state import State, require, under
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, ints, one, record
from online_svm.svm.implied_bank import PackedBank
from online_svm.types import Arrays, Floats, Ints

if TYPE_CHECKING:
    from online_svm.calibration.joint import JointMap

JOINT_MAPS = ("temperature", "vector", "matrix")
INTERVAL_MAPS = ("venn-abers", "evidential-binning", "evidential-isotonic", "evidential-logistic")


def interval_calibrators(config: PredictorConfig) -> tuple[str, ...]:
    """Return the names of the published calibrators that give intervals."""
    return tuple(name for name in config.maps if name in INTERVAL_MAPS)


class Calibrator(Protocol):
    """A fitted calibrator from rows of scores to probabilities of all classes."""

    def predict(self, scores: ArrayLike) -> Floats:
        """Return the probability of every class for each row of scores."""

    def predict_unchecked(self, scores: Floats) -> Floats:
        """Like `predict`, for finite scores with as many columns as in `fit`."""

    def state(self) -> Arrays:
        """Return the fitted calibrator as arrays."""


def fit_calibrators(
    config: PredictorConfig, scores: Floats, columns: Ints
) -> dict[str, Calibrator]:
    """Return the fitted calibrators of `config`, in the order of its `maps`.

    `scores`, shape (n, 1) or (n, n_classes).
    `columns`, shape (n,): class index of each example.
    """
    labelled = LabelledColumns(scores, columns)
    return {name: _fitted(name, labelled, columns) for name in _score_maps(config)}


def calibrators_from_state(
    state: Arrays, config: PredictorConfig, n_columns: int
) -> dict[str, Calibrator]:
    """Return the calibrators stored in `state` under their names, for `n_columns` scores.

    Raises InvalidInput or InvalidSnapshot if an array is missing or malformed, or the number of
    columns differs.
    """
    maps = {name: _restored(under(name, state), name) for name in _score_maps(config)}
    for fitted in maps.values():
        check_n_columns(fitted, n_columns)
    return maps


def check_n_columns(fitted: Calibrator, n_columns: int) -> None:
    """Raise InvalidInput unless a calibrator takes `n_columns` columns of scores.

    `predict_unchecked` and compiled code do not check that.
    """
    fitted.predict(np.zeros((1, n_columns)))


def _fitted(name: str, labelled: LabelledColumns, columns: Ints) -> Calibrator:
    if name in JOINT_MAPS:
        return joint_kind(name)().fit(labelled.scores, columns)
    return OneAgainstAll(_maker(name)).fit_columns(labelled)


def _restored(state: Arrays, name: str) -> Calibrator:
    if name in JOINT_MAPS:
        return joint_kind(name).from_state(state)
    return OneAgainstAll(_maker(name)).restore(state)


def joint_kind(name: str) -> "type[JointMap]":
    """Return the class of a joint calibrator by its published name."""
    # Lazy import: its kernels take time to load.
    from online_svm.calibration.joint import MatrixScaling, TemperatureScaling, VectorScaling

    return {
        "temperature": TemperatureScaling,
        "vector": VectorScaling,
        "matrix": MatrixScaling,
    }[name]


def _score_maps(config: PredictorConfig) -> list[str]:
    return [name for name in config.maps if name not in ("implied", MIXED)]


def _maker(name: str) -> Callable[[], ScoreMap]:
    makers: dict[str, Callable[[], ScoreMap]] = {
        "platt": PlattScaling,
        "isotonic": IsotonicMap,
        "binning": ScoreBinning,
        "venn-abers": VennAbers,
    }
    if name.startswith("evidential-"):
        # Lazy import: a worker that does not publish these calibrators starts without them.
        from online_svm.calibration.evidential.blocks import EvidentialBinning, EvidentialIsotonic
        from online_svm.calibration.evidential.logistic import EvidentialLogistic

        makers |= {
            "evidential-binning": EvidentialBinning,
            "evidential-isotonic": EvidentialIsotonic,
            "evidential-logistic": EvidentialLogistic,
        }
    return makers[name]


def implied_probabilities(banks: Sequence[PackedBank], X: Floats) -> Floats:
    """Return the probability of each class for scaled rows, shape (m, n_classes).

    A row's values do not depend on the other rows.
    """
    shares = np.column_stack([bank.shares(X) for bank in banks])
    return np.column_stack((1.0 - shares, shares)) if len(banks) == 1 else normalise_rows(shares)


FIT_EVERY = 50
"""Learned examples between two fits."""

Fit = Callable[[Floats, Ints], Calibrator]
Restore = Callable[[Arrays], Calibrator]


class KeptScores(NamedTuple):
    """The newest labelled rows, as they are stored."""

    scores: Floats
    columns: Ints


def fit_stops(columns: Ints, since: int) -> list[int]:
    """Return the row after each fit is due, and the number of rows.

    `columns`, shape (m,): columns of the learned labels; -1 for none.
    `since`: labels learned since the last fit.
    """
    left, size = FIT_EVERY - since, len(columns)
    if size <= left:
        return [size]
    completing = np.flatnonzero(columns >= 0)[left - 1 :: FIT_EVERY]
    stops: list[int] = (completing + 1).tolist()
    return stops if stops and stops[-1] == size else [*stops, size]


class RecentCalibrator(StoredArrays):
    """A calibrator of progressive scores, each computed before its label by the model of its time.

    On a moving stream a model looks better on its calibration set, which is as old as its training
    set, than on future examples. Its scores for those examples show the difference. The scores come
    from several models, so the calibrator has no guarantee.

    `size`: number of newest labelled examples to keep.
    `fit`, `restore`: fit a calibrator to scores of shape (n, S) and class columns; restore it from
        its state.
    """

    _stored = StateSchema(
        floats("_kept.scores", "n ._n_scores"), ints("_kept.columns", "n", below="._n_classes"),
        one("_since", below=FIT_EVERY), record("_map", of="_restored_map", optional=True),
    )  # fmt: skip

    def __init__(self, size: int, fit: Fit, restore: Restore) -> None:
        self._size, self._fit, self._restore = size, fit, restore
        self._forget(1)

    @classmethod
    def one_against_all(cls, size: int, make: Callable[[], ScoreMap]) -> Self:
        """Return a calibrator that fits a map from `make` for each class."""
        return cls(
            size,
            lambda scores, columns: OneAgainstAll(make).fit(scores, columns),
            lambda state: OneAgainstAll(make).restore(state),
        )

    def _forget(self, n_scores: int) -> None:
        self._scores = np.empty((0, n_scores))
        self._columns = np.empty(0, dtype=np.int64)
        self._later: list[tuple[Floats, Ints]] = []  # fewer than `FIT_EVERY` labelled rows
        self._since = 0  # labels learned since the last fit
        self._map: Calibrator | None = None

    def expect(self, n_scores: int) -> None:
        """Prepare for rows of `n_scores` scores; another number than before means other classes.

        That resets the calibrator.
        """
        if n_scores != self._scores.shape[1]:
            self._forget(n_scores)

    def answer(self, scores: Floats, columns: Ints, otherwise: Floats) -> Floats:
        """Answer rows in turn; a labelled row is learned after its answer.

        `scores`, shape (m, S): see `expect`.
        `columns`, shape (m,): columns of known classes; -1 for no label or an unknown one.
        `otherwise`, shape (m, K): the answers before the first fit.
        Returns shape (m, K).
        """
        self.expect(scores.shape[1])
        found = []
        begin = 0
        for stop in fit_stops(columns, self._since):
            rows = slice(begin, stop)
            fitted = self._map
            found.append(
                otherwise[rows] if fitted is None else fitted.predict_unchecked(scores[rows])
            )
            self._learn(scores[rows], columns[rows])
            begin = stop
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _learn(self, scores: Floats, columns: Ints) -> None:
        labelled = columns >= 0
        joining = int(np.count_nonzero(labelled))
        if not joining:
            return
        whole = joining == len(columns)
        self._later.append((scores, columns) if whole else (scores[labelled], columns[labelled]))
        self._since += joining
        if self._since == FIT_EVERY:
            self._keep()
            self._map, self._since = self._fit(self._scores, self._columns), 0

    def _keep(self) -> None:
        """Append the rows learned since the last call to the stored ones."""
        scores = [self._scores, *(scores for scores, _ in self._later)]
        columns = [self._columns, *(columns for _, columns in self._later)]
        self._scores = np.concatenate(scores)[-self._size :]
        self._columns = np.concatenate(columns)[-self._size :]
        self._later = []

    @property
    def _n_scores(self) -> int:
        return self._scores.shape[1]

    @property
    def _n_classes(self) -> int:
        return max(self._n_scores, 2)

    @property
    def _kept(self) -> KeptScores:
        self._keep()
        return KeptScores(self._scores, self._columns)

    @_kept.setter
    def _kept(self, kept: KeptScores) -> None:
        require(len(kept.columns) <= self._size, "columns")
        self._scores, self._columns = kept

    def _restored_map(self, state: State) -> Calibrator:
        found = self._restore(state.arrays)
        check_n_columns(found, self._n_scores)
        return found
