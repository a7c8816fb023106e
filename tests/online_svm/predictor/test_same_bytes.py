"""Two laws of every predictor: neither the cuts between calls nor a restart change a byte."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from predictor_answers import flat, rows

from online_svm.config import PredictorConfig
from online_svm.metrics import windowed_validity
from online_svm.predictor import answer_scoring
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit import learner, scaling
from online_svm.stream.input_batch import Example

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
    "late refits": World(SCHEDULE | {"classes": TWO, "refit_lag": 30}),
    "late refits, three classes": World(
        SCHEDULE | {"classes": THREE, "refit_lag": 30}, n_classes=3
    ),
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
def _small(monkeypatch):
    """Let little suffice: banks of nine machines, three values of a slice, frequent scaling."""
    monkeypatch.setattr(learner, "BANK_MODELS", 9)
    monkeypatch.setattr(scaling, "RESCALE_EVERY", 1)
    for module in (answer_scoring, windowed_validity):
        monkeypatch.setattr(module, "SLICE_VALUES", 3)


def stream(world):
    """Return the arguments of `step_many`."""
    rng = np.random.default_rng(world.n_classes)
    codes = rng.integers(0, world.n_classes, N)
    X = rng.normal(size=(N, 3)) * np.array([1.0, 1.0, 5.0]) + codes[:, None]
    is_doubted = rng.random(N) < world.doubted
    is_labelled = (rng.random(N) < world.labelled) & ~is_doubted
    labels = [f"c{code}" if has else None for code, has in zip(codes, is_labelled, strict=True)]
    columns = {"X": X, "labels": labels}
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


def said(predictor, columns, cuts):
    """Return all answers row by row, the reports among them; calls end at the cuts."""
    found = []
    for a, b in pairwise(cuts):
        found += flat(
            predictor.step_many(**{name: values[a:b] for name, values in columns.items()})
        )
    return found


def one_by_one(predictor, X, labels, probabilities=None, slices=None):
    """Return the answers of `step`."""
    names = predictor.config.slices
    for i, (x, label) in enumerate(zip(X, labels, strict=True)):
        p = None if probabilities is None or np.isnan(probabilities[i]) else probabilities[i]
        values = dict(zip(names, slices[i], strict=True)) if names and slices[i] else None
        yield predictor.step(Example(x, label, p, slices=values))


@each_world
def test_where_calls_are_cut_changes_no_byte(world):
    config, columns = PredictorConfig(**world.settings), stream(world)
    whole, single = OnlinePredictor(config), OnlinePredictor(config)
    expected = said(whole, columns, [0, N])
    assert list(one_by_one(single, **columns)) == rows(expected)
    for size in (1, 19):
        parts = OnlinePredictor(config)
        assert said(parts, columns, [*range(0, N, size), N]) == expected
        assert parts.snapshot() == whole.snapshot()


@pytest.mark.parametrize("learner", ["svc", "psvm"])
@settings(max_examples=25)
@given(
    cuts=st.lists(st.integers(0, 90), max_size=6),
    kinds=st.lists(st.sampled_from("ypn"), min_size=90, max_size=90),
    n_classes=st.integers(1, 4),
    lag=st.integers(0, 14),
)
def test_any_batches_of_any_stream_give_the_same_bytes(learner, cuts, kinds, n_classes, lag):
    """Of labels, of probabilities where the learner takes them, and of examples with neither."""
    schedule = {"window": 30, "refit_every": 15, "refit_lag": lag, "metrics_every": 4}
    world = World(schedule, n_classes) if learner == "svc" else World(schedule | PSVM)
    columns = {name: values[:90] for name, values in stream(world).items()}
    labels = zip(columns["labels"], kinds, strict=True)
    columns["labels"] = [label if kind == "y" else None for label, kind in labels]
    if learner == "psvm":
        given_p = np.array(kinds) == "p"
        columns["probabilities"] = np.where(given_p, np.linspace(0.0, 1.0, 90), np.nan)
    found = []
    for bounds in ([0, 90], [0, *sorted(cuts), 90]):
        predictor = OnlinePredictor(PredictorConfig(**world.settings))
        found.append((said(predictor, columns, bounds), predictor.snapshot()))
    assert found[0] == found[1]


@each_world
def test_a_restored_predictor_continues_byte_for_byte(world):
    """And whoever takes a snapshot, be a refit under way or not, says what he would have said."""
    config, columns = PredictorConfig(**world.settings), stream(world)
    whole, found = OnlinePredictor(config), []
    for cut in pairwise([0, 9, 10, 31, 45, 77, 80, 83, 119, N]):
        moved = OnlinePredictor(config)
        moved.restore(whole.snapshot())
        assert moved.snapshot() == whole.snapshot()
        more = said(whole, columns, [*cut])
        assert said(moved, columns, [*cut]) == more
        found += more
        assert moved.snapshot() == whole.snapshot()
    assert found == said(OnlinePredictor(config), columns, [0, N])
