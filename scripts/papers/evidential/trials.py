"""One partition of Xu et al. (2016): machines on subsets, calibrated, combined, counted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from online_svm import (
    EvidentialBinning,
    EvidentialIsotonic,
    EvidentialLogistic,
    IsotonicMap,
    PlattScaling,
    ScoreBinning,
)
from online_svm.calibration.evidential.combination import combined_decision
from online_svm.calibration.evidential.evidential_map import EvidentialMap
from online_svm.calibration.evidential.masses import bayesian, inverse_pignistic
from online_svm.calibration.score_map import ScoreMap
from online_svm.types import Bools, Floats, Ints
from workers.push.datasets import load

C = 1.0  # LIBSVM's defaults; the paper names none
N_BINS = 5  # of equal count; the paper does not say how it cut its bins
POSITIVE = {
    "adult": "+1",
    "australian": "1",
    "diabetes": "1",
    "heart": "2",
    "ionosphere": "g",
    "bupa": "2",
    "sonar": "M",
}


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A data set, and how many of its examples train and test.

    Attributes
    ----------
    name : str
    X, y : ndarray
        Features and labels that partitions draw from.
    n_train, n_test : int
    test : tuple of ndarray or None
        A test part of its own; then X and y only train.
    """

    name: str
    X: Floats
    y: Bools
    n_train: int
    n_test: int
    test: tuple[Floats, Bools] | None = None

    @classmethod
    def load(cls, name: str, n_train: int, n_test: int, data_dir: Path | str | None) -> "Problem":
        """Read a data set; Adult is the binary version with its own test part."""
        positive = POSITIVE[name]
        data = load("a9a" if name == "adult" else name, data_dir)
        test = None
        if name == "adult":
            held_out = load("a9a.t", data_dir)
            test = held_out.X, held_out.y == positive
        return cls(name, data.X, data.y == positive, n_train, n_test, test)

    def partition(self, random: np.random.Generator) -> "Partition":
        """Draw training and test examples; numeric features are scaled by the training part."""
        order = random.permutation(len(self.y))
        train, rest = order[: self.n_train], order[self.n_train :][: self.n_test]
        if self.test is not None:
            return Partition.of(self.X[train], self.y[train], *self.test)
        centre, width = self.X[train].mean(axis=0), self.X[train].std(axis=0)
        X = (self.X - centre) / np.where(width > 0.0, width, 1.0)
        return Partition.of(X[train], self.y[train], X[rest], self.y[rest])


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Training and test examples of one round.

    Attributes
    ----------
    kernel, kernel_test : ndarray of shape (n_train, n_train) and (n_test, n_train)
        RBF kernel with gamma = 1 / n_features, of each part with the training part.
    y, y_test : ndarray of bool
    """

    kernel: Floats
    kernel_test: Floats
    y: Bools
    y_test: Bools

    @classmethod
    def of(cls, X: Floats, y: Bools, X_test: Floats, y_test: Bools) -> "Partition":
        """Compute the kernels."""
        gamma = 1.0 / X.shape[1]
        return cls(rbf_kernel(X, gamma=gamma), rbf_kernel(X_test, X, gamma=gamma), y, y_test)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """What one machine says: scores and labels to calibrate on, and scores of the test examples."""

    scores: Floats
    labels: Bools
    test: Floats


Calibration = Callable[[Scored], Floats]


def chunk_sizes(scenario: str, n: int) -> list[int]:
    """Return how many examples each of the ten classifiers gets (the paper's figure 12).

    Examples
    --------
    >>> chunk_sizes("a", 600)
    [60, 60, 60, 60, 60, 60, 60, 60, 60, 60]
    >>> chunk_sizes("b", 600)
    [20, 20, 20, 20, 20, 100, 100, 100, 100, 100]
    >>> chunk_sizes("c", 600)
    [400, 120, 10, 10, 10, 10, 10, 10, 10, 10]
    """
    if scenario == "a":
        return [n // 10] * 10
    if scenario == "b":
        return [n // 30] * 5 + [n // 6] * 5
    first, second = 2 * n // 3, n // 5
    return [first, second] + [(n - first - second) // 8] * 8


def score_chunks(part: Partition, sizes: Sequence[int], halves: bool) -> list[Scored]:
    """Train one machine on each run of `sizes` examples, and score with it.

    Parameters
    ----------
    part : Partition
        Its examples are in random order, so that runs are random subsets.
    sizes : sequence of int
    halves : bool
        Whether one half of a subset trains and the other calibrates (section 5.1 of the paper),
        or all of it does both.

    Returns
    -------
    list of Scored
        A subset that leaves one class to train on has no machine, and is left out.
    """
    ends = np.cumsum([0, *sizes])
    scored = []
    for start, end in pairwise(ends.tolist()):
        middle = (start + end) // 2
        fit = np.arange(start, middle if halves else end)
        calibrate = np.arange(middle if halves else start, end)
        if 0 < np.count_nonzero(part.y[fit]) < len(fit):
            scored.append(_machine(part, fit, calibrate))
    return scored


def _machine(part: Partition, fit: Ints, calibrate: Ints) -> Scored:
    svc = SVC(C=C, kernel="precomputed").fit(part.kernel[np.ix_(fit, fit)], part.y[fit])
    scores = svc.decision_function(part.kernel[np.ix_(calibrate, fit)])
    return Scored(scores, part.y[calibrate], svc.decision_function(part.kernel_test[:, fit]))


def _point(make: Callable[[], ScoreMap], masses: Callable[[Floats], Floats]) -> Calibration:
    def calibrate(scored: Scored) -> Floats:
        return masses(make().fit(scored.scores, scored.labels).predict(scored.test))

    return calibrate


def _belief(make: Callable[[], EvidentialMap]) -> Calibration:
    def calibrate(scored: Scored) -> Floats:
        return make().fit(scored.scores, scored.labels).mass(scored.test)

    return calibrate


LOGISTIC: dict[str, Calibration] = {
    "bayesian": _point(PlattScaling, bayesian),
    "inverse pignistic": _point(PlattScaling, inverse_pignistic),
    "likelihood": _belief(lambda: EvidentialLogistic("likelihood")),
    "confidence": _belief(lambda: EvidentialLogistic("confidence")),
}
ISOTONIC: dict[str, Calibration] = {
    "bayesian": _point(IsotonicMap, bayesian),
    "inverse pignistic": _point(IsotonicMap, inverse_pignistic),
    "likelihood": _belief(lambda: EvidentialIsotonic("likelihood")),
    "confidence": _belief(lambda: EvidentialIsotonic("confidence")),
    "dempster": _belief(lambda: EvidentialIsotonic("dempster")),
}
BINNING: dict[str, Calibration] = {
    "bayesian": _point(lambda: ScoreBinning(N_BINS), bayesian),
    "inverse pignistic": _point(lambda: ScoreBinning(N_BINS), inverse_pignistic),
    "likelihood": _belief(lambda: EvidentialBinning("likelihood", N_BINS)),
    "confidence": _belief(lambda: EvidentialBinning("confidence", N_BINS)),
    "dempster": _belief(lambda: EvidentialBinning("dempster", N_BINS)),
}


def combined_error(scored: Sequence[Scored], calibrate: Calibration, y: Bools) -> float:
    """Return the error rate of the combined classifiers; without any, all examples are negative."""
    if not scored:
        return float(np.mean(y))
    return float(np.mean(combined_decision([calibrate(one) for one in scored]) != y))
