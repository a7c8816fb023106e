"""Score experts: what a given score says, as it is and calibrated on its newest labels.

The experts of each version of the score are

1. the probability that the score states (the logistic function of a margin);
2. a sigmoid of its log-odds, fitted to the newest labelled examples (Platt scaling);
3. the Venn-Abers map of its log-odds, fitted likewise: isotonic regressions with either label.

A new version begins with its stated probability. The calibrators of earlier versions stay as they
are, and go on when a score of theirs comes again.
"""

from collections.abc import Callable
from typing import Self

import numpy as np

from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.calibration.platt import PlattScaling
from online_svm.calibration.score_map import ScoreMap
from online_svm.calibration.venn_abers import VennAbers
from online_svm.predictor.calibrators import Fit, RecentCalibrator, Restore
from online_svm.storage.state import State, nest, require, under
from online_svm.stream.scores import ScoreColumns
from online_svm.types import Arrays, Bools, Floats, Ints

SIZES = {"platt": 1000, "venn-abers": 1000}
"""Newest labelled examples to which each calibrator is fitted."""

N_SCORE_EXPERTS = 1 + len(SIZES)

MAX_VERSIONS = 64
"""Versions with calibrators, the first ones; further ones keep their stated probabilities."""

_NO_VERSION = -1

_MAKERS: dict[str, Callable[[], ScoreMap]] = {"platt": PlattScaling, "venn-abers": VennAbers}


def _fit_of(name: str) -> Fit:
    return lambda scores, columns: OneAgainstAll(_MAKERS[name]).fit(scores, columns)


def _restore_of(name: str) -> Restore:
    return lambda state: OneAgainstAll.from_state(state, _MAKERS[name])


class ScoreExperts:
    """Calibrators of a stream's scores by version.

    `columns`: the columns of a row that hold the score.
    """

    def __init__(self, columns: ScoreColumns) -> None:
        self._columns = columns
        self._versions: dict[int, list[RecentCalibrator]] = {}

    def answer(self, X: Floats, columns: Ints, base: Floats, sources: Ints, out: Floats) -> None:
        """Write the answers to rows in order; a label is learned after its answer.

        `X`, shape (m, n_features): rows of cells.
        `columns`, shape (m,): class columns of the labels; -1 for a row without a label.
        `base`, shape (m, n_classes): the answer to a row without a score.
        `sources`, shape (m,): see `SimpleExperts.answer`.
        `out`, shape (N_SCORE_EXPERTS, m, n_classes): written.
        """
        stored = (sources >= 0) & (sources == np.arange(len(sources)))
        kept = out[:, stored].copy()
        odds = self._columns.given(X)
        absent = np.isnan(odds[:, 0])
        stated = np.where(absent[:, None], base, self._columns.probabilities(X))
        out[:] = stated
        keys = _keys(self._columns.versions(X))
        self._add_versions(keys, (columns >= 0) & ~absent)
        for key, calibrators in self._versions.items():
            of = (keys == key) & ~absent
            if of.any():
                for k, calibrator in enumerate(calibrators, 1):
                    out[k, of] = calibrator.answer(odds[of], columns[of], stated[of])
        out[:, stored] = kept
        earlier = (sources >= 0) & ~stored
        out[:, earlier] = out[:, sources[earlier]]

    def _add_versions(self, keys: Ints, learned: Bools) -> None:
        """Add calibrators of new versions, in the order of their first labels."""
        for key in dict.fromkeys(keys[learned].tolist()):
            if key not in self._versions and len(self._versions) < MAX_VERSIONS:
                self._versions[key] = self._calibrators()

    def _calibrators(self) -> list[RecentCalibrator]:
        return [
            RecentCalibrator(size, _fit_of(name), _restore_of(name)) for name, size in SIZES.items()
        ]

    def state(self) -> State:
        """Return the versions and their calibrators."""
        arrays: Arrays = {}
        for i, calibrators in enumerate(self._versions.values()):
            for name, calibrator in zip(SIZES, calibrators, strict=True):
                arrays |= nest(f"{i}.{name}", calibrator.state())
        return State({"versions": list(self._versions)}, arrays)

    @classmethod
    def from_state(cls, state: State, columns: ScoreColumns) -> Self:
        """Return the experts described by `state`."""
        experts, keys = cls(columns), state.header["versions"]
        require(len(keys) == len(set(keys)) <= MAX_VERSIONS, "versions")
        for i, key in enumerate(keys):
            require(type(key) is int, "versions")
            experts._versions[key] = experts._calibrators()
            for name, calibrator in zip(SIZES, experts._versions[key], strict=True):
                calibrator.restore(under(f"{i}.{name}", state.arrays), len(columns.classes))
        return experts


def _keys(versions: Floats) -> Ints:
    """Return the bits of the cell of each version, shape (m,)."""
    bits: Ints = np.ascontiguousarray(versions).view(np.int64).copy()
    bits[np.isnan(versions)] = _NO_VERSION
    return bits
