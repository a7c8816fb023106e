"""Figures of a table: from what the methods said over a stream, and from splits of Adult."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.compiled.kernels import Kernel
from online_svm.metrics.cumulative import CumulativeValidity, paper_p_value
from online_svm.svm.exact.rolling_machine import RollingMachine
from online_svm.types import Bools, Floats, Ints
from online_svm.venn.registry import VennScheme
from online_svm.venn.taxonomy import svm_classes
from scripts.papers.venn.protocol import MAPS, VENN, C, Stream
from workers.push.datasets import load

Result = dict[str, Any]

N_TRAINING, N_CALIBRATION = 3500, 1500
GAMMA = 1.0 / 14.0  # 14 features are on in a row: the squared distance of two rows is at most 28


def measures(stream: Stream) -> dict[str, Result]:
    """Return the measures of every method of a stream, by method."""
    found = {}
    for name, said in stream.tracks.items():
        steps, point, lower, upper = map(np.array, zip(*said, strict=True))
        own, codes = stream.own[steps], stream.codes[steps]
        found[name] = measured_batch(point, lower, upper, own, codes)
    return found


def measured_batch(point: Floats, lower: Floats, upper: Floats, own: Ints, codes: Ints) -> Result:
    """Return accuracy, mean probabilities, p-values, log loss, Brier score and interval width.

    Of the label of the largest point probability, but for ``own_surplus``, of the SVM's own class,
    and ``class_surplus``, of each class: a surplus is hits less probabilities, summed. ``paper_p``
    has eq. 3's mean as the probability, ``midpoint_p`` the middle of the interval, as section 4
    says.
    """
    label = np.argmax(point, axis=1).astype(np.int64)
    chosen = np.arange(len(codes)), label
    middle = 0.5 * (lower + upper)
    validity = CumulativeValidity(intervals=True)
    validity.update(point, label, own, codes, lower=lower, upper=upper)
    report = validity.report()
    hits, own_hits = label == codes, own == codes
    return {
        "steps": len(codes),
        "accuracy": report.predicted.accuracy,
        "probability": report.predicted.probability,
        "lower": report.predicted.lower,
        "upper": report.predicted.upper,
        "paper_p": report.predicted.paper_p,
        "midpoint_p": _p_value(hits, middle[chosen]),
        "surplus": float((hits - point[chosen]).sum()),
        "own_surplus": float((own_hits - point[np.arange(len(codes)), own]).sum()),
        "class_surplus": (np.eye(point.shape[1])[codes] - point).sum(axis=0).tolist(),
        "log_loss": report.log_loss,
        "brier": report.brier,
        "width": float((upper - lower)[chosen].mean()),
    }


def _p_value(hits: Bools, p: Floats) -> float:
    return paper_p_value(int(hits.sum()), float(p.sum()), float((p * (1.0 - p)).sum()))


@dataclass(frozen=True, slots=True)
class AdultTask:
    """Two classes: one split of a9a; a9a.t, or its first `n_test` rows, is the test part."""

    seed: int
    data_dir: Path | None
    n_test: int | None

    def __str__(self) -> str:
        return f"adult, seed {self.seed}"


def measure_adult(task: AdultTask) -> dict[str, Any]:
    """Return the measures of every Venn predictor and map, by method."""
    data, test = load("a9a", task.data_dir), load("a9a.t", task.data_dir)
    size = N_TRAINING + N_CALIBRATION
    rows = np.random.default_rng(task.seed).permutation(len(data))[:size]
    codes = (data.y[rows] == "+1").astype(np.int64)
    machine = RollingMachine(Kernel("rbf", GAMMA), np.full(2, C), window=size)
    machine.extend(data.X[rows], codes, training=np.arange(size) < N_TRAINING)
    machine.solve()
    training, calibration = machine.training_values(), machine.observer_values()
    scores = machine.model().scores(test.X[: task.n_test])
    truth = (test.y[: task.n_test] == "+1").astype(np.int64)
    own, held = svm_classes(scores), codes[N_TRAINING:]
    methods = {}
    for name, (taxonomy, parts) in VENN.items():
        venn = VennScheme(taxonomy, parts, 2, 2, None).begin(training, calibration, held)
        said = venn.answer(scores, np.full(len(scores), -1))
        methods[name] = measured_batch(said.point, said.lower, said.upper, own, truth)
    for name, make in MAPS.items():
        point = OneAgainstAll(make).fit(calibration, held).predict(scores)
        methods[f"{name}, calibration"] = measured_batch(point, point, point, own, truth)
    return {"data": "adult", "seed": task.seed, "methods": methods}
