"""The online protocol of Lambrou et al. (2012), every method at every step."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from online_svm import IsotonicMap, PlattScaling, ScoreBinning
from online_svm.calibration.diagram import TiedCounts, isotonic_blocks, midpoints
from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.calibration.score_map import CountsMap
from online_svm.compiled.kernels import Kernel
from online_svm.storage.state_schema import StateSchema, floats
from online_svm.svm.exact.rolling_machine import RollingMachine
from online_svm.types import Floats, Ints
from online_svm.venn.counted_set import svm_classes
from online_svm.venn.scheme import VennScheme
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
    """A data set and a reading of the paper's "RBF parameter", of which it does not say what it is.

    The width sigma in exp(-|u-v|^2 / (2 sigma^2)), or the factor gamma in exp(-gamma |u-v|^2).
    """

    data: str
    reading: Reading
    value: float

    @property
    def gamma(self) -> float:
        """Factor of the squared distance.

        >>> Setting("car", "sigma", 0.5).gamma, Setting("car", "gamma", 0.5).gamma
        (2.0, 0.5)
        """
        return self.value if self.reading == "gamma" else 1.0 / (2.0 * self.value**2)

    def __str__(self) -> str:
        return f"{self.data}, {self.reading} {self.value:g}"


Said = tuple[int, Floats, Floats, Floats]
"""Examples seen before an answer; the point probabilities, and their bounds: a map's are the point.
"""


@dataclass(slots=True, eq=False)
class Stream:
    """All answers to one stream.

    The true classes; the SVM's own class at each step, -1 where nothing was answered yet; the
    answers of each method: of a taxonomy, or of a map by the scores it was fitted on.
    """

    codes: Ints
    own: Ints
    tracks: dict[str, list[Said]] = field(default_factory=dict)

    def add(self, name: str, step: int, point: Floats, lower: Floats, upper: Floats) -> None:
        """Add an answer of a method."""
        self.tracks.setdefault(name, []).append((step, point, lower, upper))


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The scores before one example: of T, of the calibration set, and of the example itself."""

    training: Floats
    training_codes: Ints
    calibration: Floats
    calibration_codes: Ints
    example: Floats


def follow(
    setting: Setting, data_dir: Path | None, seed: int, length: int | None = None, stride: int = 1
) -> Stream:
    """Answer a shuffled data set example by example, each before it is learned.

    At step n the machine is trained on the first ceil(0.7 (n - 1)) of the n - 1 examples seen, the
    rest calibrates. Answers begin once the first have two classes.

    Of the shuffled examples `length` are taken, all without it: the rows of car.data are ordered,
    and i.i.d. is the assumption. The maps answer every `stride`-th step, the Venn predictors all.
    """
    data = load(setting.data, data_dir)
    classes, codes = np.unique(data.y, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(data))[:length]
    X, codes = data.X[order], codes[order].astype(np.int64)
    stream = Stream(codes, np.full(len(codes), -1))
    for n, step in _steps(X, codes, len(classes), setting.gamma):
        stream.own[n] = svm_classes(step.example)[0]
        _ask_venn(stream, n, step, len(classes))
        if n % stride == 0:
            _ask_maps(stream, n, step)
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


def _ask_venn(stream: Stream, n: int, step: Step, n_classes: int) -> None:
    for name, (taxonomy, parts) in VENN.items():
        scheme = VennScheme(taxonomy, parts, n_classes, n_classes, None)
        held = scheme.begin(step.training, step.calibration, step.calibration_codes)
        answer = held.answer(step.example, np.array([-1]))
        stream.add(name, n, answer.point[0], answer.lower[0], answer.upper[0])


def _ask_maps(stream: Stream, n: int, step: Step) -> None:
    sources = {
        "training": (step.training, step.training_codes),
        "calibration": (step.calibration, step.calibration_codes),
    }
    asked = [(f"{name}, {of}", make, of) for name, make in MAPS.items() for of in sources]
    for name, make, source in [*asked, (STEPWISE, NearestIsotonic, "training")]:
        point = OneAgainstAll(make).fit(*sources[source]).predict(step.example)[0]
        stream.add(name, n, point, point, point)


class NearestIsotonic(CountsMap):
    """The blocks of `IsotonicMap`; a score between two of them takes the nearer one's value.

    Lambrou et al. (2012, section 2.3) leave the gap between two blocks open. `IsotonicMap` is
    linear there; this is the other reading, which fits their figures.
    """

    _learned = "values_"
    _fields = StateSchema(floats("values_"), floats("edges_", beside="values_", more=-1))
    edges_: Floats
    values_: Floats

    def _fit_counts(self, counts: TiedCounts) -> None:
        blocks = isotonic_blocks(counts)
        self.edges_ = midpoints(blocks.upper[:-1], blocks.lower[1:])
        self.values_ = blocks.positives / blocks.totals

    def _predict(self, scores: Floats) -> Floats:
        if not len(self.values_):
            return np.full(len(scores), 0.5)
        return np.asarray(self.values_[np.searchsorted(self.edges_, scores)], dtype=np.float64)
