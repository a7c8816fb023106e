"""Two laws of every predictor: neither the cuts between calls nor a restart change a byte."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.metrics.windowed import windowed_validity
from online_svm.predictor import answer_scoring
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit import implied_training, scaling
from online_svm.stream.prediction import PredictionBlock

N = 150
SCHEDULE = {"window": 80, "refit_every": 40, "metrics_every": 20}
MIXED = SCHEDULE | {"maps": ("platt", "mixed", "isotonic", "binning")}
BELIEF = ("venn-abers", "evidential-binning", "evidential-isotonic", "evidential-logistic")
TWO, THREE = ("c0", "c1"), ("c0", "c1", "c2")
PSVM = {"learner": "psvm", "classes": TWO, "features": 3}
WINDOWED = {
    "committee": "single", "maps": (), "window": 100, "refit_every": 50, "metrics_every": 40,
    "metrics_window": 60,
}  # fmt: skip


class World(NamedTuple):
    """Settings, and what the stream has."""

    settings: dict[str, Any]
    n_classes: int = 2
    labelled: float = 1.0
    doubted: float = 0.0


WORLDS = {
    "discovered": World({"window": 60, "refit_every": 25, "metrics_every": 7}),
    "one class": World(SCHEDULE, n_classes=1),
    "single": World({"window": 60, "refit_every": 25, "committee": "single"}),
    "oldest": World(
        {"classes": TWO, "window": 80, "refit_every": 30, "refit_lag": 0, "split": "oldest",
         "map_data": "training"}
    ),
    "crossfit": World({"window": 100, "refit_every": 40, "split": "crossfit"}),
    "paper": World(PredictorConfig.paper(TWO, gamma=0.5, maps=("platt",)).model_dump()),
    "three classes": World(SCHEDULE | {"classes": THREE}, n_classes=3),
    "three classes discovered": World(SCHEDULE, n_classes=3),
    "mixed": World(MIXED | {"classes": TWO}, labelled=0.9),
    "mixed, discovered": World(MIXED, labelled=0.9),
    "mixed, three classes": World(MIXED | {"classes": THREE}, n_classes=3, labelled=0.9),
    "mixed, three discovered": World(MIXED, n_classes=3, labelled=0.9),
    "interval maps": World(SCHEDULE | {"maps": BELIEF}),
    "interval maps, three classes": World(SCHEDULE | {"maps": BELIEF}, n_classes=3),
    "implied": World(SCHEDULE | {"maps": ("implied",)}),
    "implied, three classes": World(SCHEDULE | {"maps": ("implied",)}, n_classes=3),
    "psvm": World(
        PSVM | {"window": 60, "refit_every": 25, "metrics_every": 7}, doubted=0.3
    ),
    "psvm, oldest": World(
        PSVM | {"window": 80, "refit_every": 30, "refit_lag": 0, "split": "oldest",
                "map_data": "training", "class_weight": "balanced",
                "taxonomy": "class-quantile"},
        doubted=0.3,
    ),
    "psvm, Venn-Abers": World(
        PSVM | {"window": 50, "refit_every": 20, "taxonomy": "venn-abers", "maps": ("implied",)},
        doubted=0.3,
    ),
    "windowed": World(WINDOWED | {"classes": TWO}),
    "windowed, discovered": World(WINDOWED),
    "slices": World(WINDOWED | {"classes": TWO, "slices": ("country", "age")}),
    "slices, late": World(
        WINDOWED | {"classes": TWO, "slices": ("country", "age"), "horizon": 25}
    ),
}  # fmt: skip
each_world = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let little suffice: banks of nine machines, three values of a slice, frequent scaling."""
    monkeypatch.setattr(implied_training, "MODELS", 9)
    monkeypatch.setattr(scaling, "RESCALE_EVERY", 1)
    for module in (answer_scoring, windowed_validity):
        monkeypatch.setattr(module, "SLICE_VALUES", 3)


def stream(world: World) -> dict[str, Any]:
    """Return the arguments of `step_many`."""
    rng = np.random.default_rng(world.n_classes)
    codes = rng.integers(0, world.n_classes, N)
    X = rng.normal(size=(N, 3)) * np.array([1.0, 1.0, 5.0]) + codes[:, None]
    is_doubted = rng.random(N) < world.doubted
    is_labelled = (rng.random(N) < world.labelled) & ~is_doubted
    labels = [f"c{code}" if has else None for code, has in zip(codes, is_labelled, strict=True)]
    columns: dict[str, Any] = {"X": X, "labels": labels}
    if world.doubted:
        columns["probabilities"] = np.where(is_doubted, rng.random(N), np.nan)
    if "slices" in world.settings:
        places, ages = rng.integers(0, 6, N), rng.integers(0, 3, N)
        values = [
            (("DE", "FR", "IT", "ES", "PL", None)[i], ("old", "young", None)[j])
            for i, j in zip(places, ages, strict=True)
        ]
        columns["slices"] = [None if i % 11 == 0 else value for i, value in enumerate(values)]
    return columns


def said(predictor: OnlinePredictor, columns: dict[str, Any], cuts: list[int]) -> list[Any]:
    """Return all answers row by row, the reports among them; calls end at the cuts."""
    found: list[Any] = []
    for a, b in pairwise(cuts):
        part = {name: values[a:b] for name, values in columns.items()}
        for answer in predictor.step_many(**part):
            is_block = isinstance(answer, PredictionBlock)
            found += [answer.row(i) for i in range(len(answer))] if is_block else [answer]
    return found


@each_world
def test_where_calls_are_cut_changes_no_byte(world: World) -> None:
    config, columns = PredictorConfig(**world.settings), stream(world)
    whole = OnlinePredictor(config)
    expected = said(whole, columns, [0, N])
    for size in (1, 7, 33):
        parts = OnlinePredictor(config)
        assert said(parts, columns, [*range(0, N, size), N]) == expected
        assert parts.snapshot() == whole.snapshot()


@each_world
def test_a_restored_predictor_continues_byte_for_byte(world: World) -> None:
    config, columns = PredictorConfig(**world.settings), stream(world)
    whole = OnlinePredictor(config)
    for cut in pairwise([0, 9, 10, 25, 31, 41, 45, 60, 77, 80, 100, 119, N]):
        moved = OnlinePredictor(config)
        moved.restore(whole.snapshot())
        assert moved.snapshot() == whole.snapshot()
        assert said(moved, columns, [*cut]) == said(whole, columns, [*cut])
        assert moved.snapshot() == whole.snapshot()
