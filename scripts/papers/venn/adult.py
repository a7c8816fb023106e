"""The taxonomies on Adult: two classes, one split a seed, as many test examples as there are."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.rolling_machine import RollingMachine
from online_svm.venn.registry import VennScheme
from online_svm.venn.taxonomy import svm_classes
from scripts.papers.venn.measures import measured_batch
from scripts.papers.venn.protocol import MAPS, VENN, C
from workers.push.datasets import load

N_TRAINING, N_CALIBRATION = 3500, 1500
GAMMA = 1.0 / 14.0  # 14 features are on in a row: the squared distance of two rows is at most 28


@dataclass(frozen=True, slots=True)
class AdultTask:
    """One split of a9a; a9a.t, or its first `n_test` rows, is the test part."""

    seed: int
    data_dir: Path | str | None
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
