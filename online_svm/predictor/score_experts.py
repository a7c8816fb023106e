"""Score experts: a given score, as it is and calibrated on its newest labels.

The experts of each version of the score are

1. the probability that the score states (the logistic function of a margin);
2. a sigmoid of its log-odds, fitted to the newest labelled examples (Platt scaling);
3. the Venn-Abers map of its log-odds, fitted likewise: isotonic regressions with either label;
4. with late labels, 2 and 3 fitted to five times as many: the newest labels are old ones then.

A new version begins with its stated probability. The calibrators of earlier versions stay as they
are, and go on when a score of theirs comes again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Self

import numpy as np

from online_svm.calibration.platt import PlattScaling
from online_svm.calibration.score_map import ScoreMap
from online_svm.calibration.venn_abers import VennAbers
from online_svm.config import PredictorConfig
from online_svm.predictor.calibrators import RecentCalibrator
from online_svm.predictor.expert import Expert, RowsToLearn
from online_svm.predictor.simple_experts import BASE_RATE
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, json_of, part
from online_svm.stream.scores import ScoreColumns
from online_svm.types import Bools, Floats, Ints

SIZE, LONG_SIZE = 1000, 5000
"""Newest labelled examples to which a calibrator is fitted."""

MAKERS: dict[str, Callable[[], ScoreMap]] = {"platt": PlattScaling, "venn-abers": VennAbers}

STATED = "score"

MAX_VERSIONS = 64
"""Versions with calibrators, the first ones; further ones keep their stated probabilities."""

_NO_VERSION = -1


class ScoreExperts(Expert):
    """Calibrators of a stream's scores by version; the classes are declared, and never change.

    `columns`: the columns of a row that hold the score.
    `is_delayed`: whether labels may come late.
    """

    group = "score"
    _stored = StateSchema(json_of("_keys"), part("_versions", stored_as=""))

    def __init__(self, columns: ScoreColumns, *, is_delayed: bool) -> None:
        self._columns = columns
        self._maps = [(f"{STATED}-{name}", SIZE, make) for name, make in MAKERS.items()]
        if is_delayed:
            long = [(f"{name}-{LONG_SIZE}", LONG_SIZE, make) for name, _, make in self._maps]
            self._maps += long
        self.outputs = (STATED, *(name for name, _, _ in self._maps))
        self._versions: dict[int, list[RecentCalibrator]] = {}

    @classmethod
    def of(cls, config: PredictorConfig) -> Self | None:
        """Return the experts under a configuration; None if scores are absent or only watched."""
        columns = None if config.score_role == "watched" else ScoreColumns.of(config)
        return None if columns is None else cls(columns, is_delayed=config.takes_delayed_labels)

    def answer(self, rows: RowsToLearn, before: Mapping[str, Floats]) -> Sequence[Floats]:
        """Return the answers to rows in order; the base rate for a row without a score."""
        odds = self._columns.given(rows.X)
        absent = np.isnan(odds[:, 0])
        probabilities = self._columns.probabilities(rows.X)
        stated = np.where(absent[:, None], before[BASE_RATE], probabilities)
        found = np.repeat(stated[np.newaxis], len(self.outputs), axis=0)
        keys = _keys(self._columns.versions(rows.X))
        self._add_versions(keys, (rows.columns >= 0) & ~absent)
        for key, calibrators in self._versions.items():
            of = (keys == key) & ~absent
            if of.any():
                for k, calibrator in enumerate(calibrators, 1):
                    found[k, of] = calibrator.answer(odds[of], rows.columns[of], stated[of])
        return list(found)

    def _add_versions(self, keys: Ints, learned: Bools) -> None:
        """Add calibrators of new versions, in the order of their first labels."""
        for key in dict.fromkeys(keys[learned].tolist()):
            if key not in self._versions and len(self._versions) < MAX_VERSIONS:
                self._versions[key] = self._calibrators()

    def _calibrators(self) -> list[RecentCalibrator]:
        made = [RecentCalibrator.one_against_all(size, make) for _, size, make in self._maps]
        n_classes = len(self._columns.classes)
        for calibrator in made:
            calibrator.expect(1 if n_classes == 2 else n_classes)
        return made

    @property
    def _keys(self) -> list[int]:
        return list(self._versions)

    @_keys.setter
    def _keys(self, keys: list[int]) -> None:
        require(len(keys) == len(set(keys)) <= MAX_VERSIONS, "versions")
        require(all(type(key) is int for key in keys), "versions")
        self._versions = {key: self._calibrators() for key in keys}


def _keys(versions: Floats) -> Ints:
    """Return the bits of the cell of each version, shape (m,)."""
    bits: Ints = np.ascontiguousarray(versions).view(np.int64).copy()
    bits[np.isnan(versions)] = _NO_VERSION
    return bits
