"""The online protocol of Lambrou et al. (2012), every method at every step."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from online_svm import IsotonicMap, PlattScaling, ScoreBinning
from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.calibration.score_map import ScoreMap
from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.rolling_machine import RollingMachine
from online_svm.types import Floats, Ints
from online_svm.venn.registry import VennScheme
from online_svm.venn.taxonomy import svm_classes
from scripts.papers.venn.nearest_isotonic import NearestIsotonic
from workers.push.datasets import load

Reading = Literal["sigma", "gamma"]

TRAIN_FRACTION = 0.7
C = 1.0
N_BINS = 10  # of the binning comparator, as in the paper
# Name in the tables: taxonomy and parts of a class.
VENN: dict[str, tuple[str, int]] = {
    "class": ("class", 1),
    "class-quantile": ("class-quantile", 4),
    "class-rank": ("class-rank", 4),
    "margin": ("margin", 4),
    "venn-abers": ("venn-abers", 1),
    "class-rank, 2 parts": ("class-rank", 2),
    "class-rank, 8 parts": ("class-rank", 8),
}
MAPS: dict[str, Any] = {
    "Platt": PlattScaling,
    "binning": partial(ScoreBinning, N_BINS),
    "isotonic": IsotonicMap,
}
STEPWISE = "isotonic by steps, training"


@dataclass(frozen=True, slots=True)
class Setting:
    """A data set and a reading of the paper's "RBF parameter".

    Attributes
    ----------
    data : str
        Name of the data set.
    reading : {"sigma", "gamma"}
        The parameter is the width sigma in exp(-|u-v|^2 / (2 sigma^2)), or the factor gamma in
        exp(-gamma |u-v|^2). The paper does not say which.
    value : float
    """

    data: str
    reading: Reading
    value: float

    @property
    def gamma(self) -> float:
        """Factor of the squared distance.

        Examples
        --------
        >>> Setting("car", "sigma", 0.5).gamma, Setting("car", "gamma", 0.5).gamma
        (2.0, 0.5)
        """
        return self.value if self.reading == "gamma" else 1.0 / (2.0 * self.value**2)

    def __str__(self) -> str:
        return f"{self.data}, {self.reading} {self.value:g}"


@dataclass(slots=True, eq=False)
class Track:
    """What one method said over a stream.

    Attributes
    ----------
    steps : list of int
        Examples seen before each answer.
    points, lower, upper : list of ndarray of shape (n_classes,)
        Point probabilities; for a map the bounds are the point.
    """

    steps: list[int] = field(default_factory=list)
    points: list[Floats] = field(default_factory=list)
    lower: list[Floats] = field(default_factory=list)
    upper: list[Floats] = field(default_factory=list)

    def add(self, step: int, point: Floats, lower: Floats, upper: Floats) -> None:
        """Add an answer."""
        self.steps.append(step)
        self.points.append(point)
        self.lower.append(lower)
        self.upper.append(upper)


@dataclass(slots=True, eq=False)
class Stream:
    """Everything that was said over one stream.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        True classes.
    own : ndarray of shape (n,)
        The SVM's own class at each step; -1 where nothing was answered yet.
    tracks : dict of str to Track
        By method: a taxonomy's name, or a map's with the scores it was fitted on.
    """

    codes: Ints
    own: Ints
    tracks: dict[str, Track]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The scores before one example: of T, of the calibration set, and of the example itself."""

    training: Floats
    training_codes: Ints
    calibration: Floats
    calibration_codes: Ints
    example: Floats


def follow(
    setting: Setting,
    data_dir: Path | str | None,
    seed: int,
    length: int | None = None,
    stride: int = 1,
) -> Stream:
    """Answer a shuffled data set example by example, each before it is learned.

    At step n the machine is trained on the first ceil(0.7 (n - 1)) of the n - 1 examples seen, the
    rest calibrates. Answers begin once the first have two classes.

    Parameters
    ----------
    setting : Setting
    data_dir : path or None
        See `workers.push.datasets.data_directory`.
    seed : int
        Of the shuffle: the rows of car.data are ordered, and i.i.d. is the assumption.
    length : int, optional
        Examples taken; all without it.
    stride : int
        The maps answer every `stride`-th step, the Venn predictors all.
    """
    data = load(setting.data, data_dir)
    classes, codes = np.unique(data.y, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(data))[:length]
    X, codes = data.X[order], codes[order].astype(np.int64)
    stream = Stream(codes, np.full(len(codes), -1), {})
    for n, step in _steps(X, codes, len(classes), setting.gamma):
        stream.own[n] = svm_classes(step.example)[0]
        _ask_venn(stream.tracks, n, step, len(classes))
        if n % stride == 0:
            _ask_maps(stream.tracks, n, step)
    return stream


def _steps(X: Floats, codes: Ints, n_classes: int, gamma: float) -> Iterator[tuple[int, Step]]:
    """Yield the scores before each example, by a machine that starts where it was."""
    machine = RollingMachine(Kernel("rbf", gamma), np.full(n_classes, C), window=len(X))
    for n in range(len(X)):
        q = math.ceil(TRAIN_FRACTION * n)
        machine.promote(q - machine.n_training)
        machine.solve()
        training, calibration = machine.training_values(), machine.observer_values()
        example = machine.extend(X[n : n + 1], codes[n : n + 1])
        if len(np.unique(codes[:q])) > 1:
            yield n, Step(training, codes[:q], calibration, codes[q:n], example)


def _ask_venn(tracks: dict[str, Track], n: int, step: Step, n_classes: int) -> None:
    for name, (taxonomy, parts) in VENN.items():
        scheme = VennScheme(taxonomy, parts, n_classes, n_classes, None)
        held = scheme.begin(step.training, step.calibration, step.calibration_codes)
        said = held.answer(step.example, np.array([-1]))
        tracks.setdefault(name, Track()).add(n, said.point[0], said.lower[0], said.upper[0])


def _ask_maps(tracks: dict[str, Track], n: int, step: Step) -> None:
    sources = {
        "training": (step.training, step.training_codes),
        "calibration": (step.calibration, step.calibration_codes),
    }
    for name, make in MAPS.items():
        for source, (scores, codes) in sources.items():
            point = _fitted(make, scores, codes).predict(step.example)[0]
            tracks.setdefault(f"{name}, {source}", Track()).add(n, point, point, point)
    stepwise = _fitted(NearestIsotonic, step.training, step.training_codes)
    point = stepwise.predict(step.example)[0]
    tracks.setdefault(STEPWISE, Track()).add(n, point, point, point)


def _fitted(make: Any, scores: Floats, codes: Ints) -> OneAgainstAll:
    maps: type[ScoreMap] = make
    return OneAgainstAll(maps).fit(scores, codes)
