"""A snapshot with a damaged part is refused, and changes nothing: the shape of each part."""

import functools

import numpy as np
import pytest
from drifting import cheap, inverted
from predictor_answers import follow, late_settings, late_stream, stream

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.storage.state import as_array, nest, pack, under, unpack

CONFIGS = {
    "plain": PredictorConfig(window=60, refit_every=25, metrics_every=7),
    "three classes": PredictorConfig(maps=("temperature", "platt"), window=80, refit_every=40),
    "drift": cheap(),
    "reset": cheap(on_drift="reset"),
    "late": late_settings(),
}


@functools.cache
def snapshot_of(kind):
    predictor = OnlinePredictor(CONFIGS[kind])
    if kind == "late":
        X, _, events = late_stream(60, np.random.default_rng(12))
        follow(predictor, X, events, 60)
    elif kind in ("drift", "reset"):
        X, y = inverted(700, 500, 700)
        predictor.step_many(X, y)
    else:
        predictor.step_many(*stream(130, 3 if kind == "three classes" else 2))
    return predictor.snapshot()


def of_two_classes(name):
    """Return a damage: compiled code would read beyond the end of what such a map holds."""

    def damage(_, arrays):
        predictor = OnlinePredictor(CONFIGS["three classes"])
        predictor.step_many(*stream(130))
        part = f"active.map.{name}"
        kept = {key: a for key, a in arrays.items() if not key.startswith(f"{part}.")}
        arrays.clear()
        arrays.update(kept | nest(part, under(part, unpack(predictor.snapshot()).arrays)))

    return damage


def a_member_less(header, parts):
    """Let the model of a refit be of the first two members of the three."""
    last = len(header["members"]) - 1
    header["members"].pop()
    for name in ("slope", "intercept", "weights"):
        parts[f"model.stack.{name}"] = parts[f"model.stack.{name}"][:last]
    for name in [name for name in parts if name.startswith(f"model.{last}.")]:
        del parts[name]


def filled(name):
    """Return a damage: an array of numbers that no fit reaches."""
    return lambda _, arrays: arrays.update({name: np.full_like(arrays[name], -1e308)})


def of_result(change, where="active.result"):
    """Return a damage: what changes the header and the arrays of the result of a refit."""

    def damage(_, arrays):
        header, parts = unpack(arrays[where].tobytes())
        change(header, parts)
        arrays[where] = as_array(pack(header, parts))

    return damage


def put(*path, value):
    """Return a damage: a value in the header, by the keys that lead to it."""

    def damage(header, _):
        for key in path[:-1]:
            header = header[key]
        header[path[-1]] = value

    return damage


TIMES = "late.waiting.times"
DAMAGES = {
    "a learner of nothing": ("plain", lambda _, a: a.update(learner=np.zeros(9, dtype=np.uint8))),
    "no learner": ("plain", lambda _, a: a.pop("learner")),
    "a temperature of two classes": ("three classes", of_two_classes("temperature")),
    "sigmoids of two classes": ("three classes", of_two_classes("platt")),
    "a member less": ("plain", of_result(a_member_less)),
    "weights beyond any": ("plain", of_result(filled("model.stack.weights"))),
    "a constant beyond any": ("plain", of_result(filled("model.stack.constant"))),
    "late weights beyond any": ("plain", filled("active.lately.weights")),
    "a window of -1": ("plain", put("windowed", "count", value=-1)),
    "a window of too few": ("plain", put("windowed", "count", value=3)),
    "a window of a text": ("plain", put("windowed", "count", value="60")),
    "a window of none": ("plain", put("windowed", "count", value=None)),
    "alarms of -1": ("drift", put("monitors", "raised", value=-1)),
    "no open alarms": ("drift", put("monitors", "open", value=-1)),
    "an alarm with a colour": ("drift", put("monitors", "open", 0, "colour", value="red")),
    "a reset that is to come": ("reset", put("since", value=5000)),
    "a reset without its state": ("reset", put("is_current", value=None)),
    "no place of the last reset": ("reset", put("since", value=None)),
    "one label more": ("late", lambda h, _: h["late"].update(learned=h["late"]["learned"] + 1)),
    "no counts of labels": ("late", put("late", "counts", value={})),
    "an id less": ("late", lambda h, _: h["late"]["ids"].pop(0)),
    "an answer less": ("late", lambda h, _: h["late"]["answers"].pop(0)),
    "a time less": ("late", lambda _, a: a.update({TIMES: a[TIMES][1:]})),
    "nothing settled": ("late", lambda _, a: a.pop("late.settled")),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_a_snapshot_with_a_damaged_part_is_refused_and_changes_nothing(kind, damage):
    data = snapshot_of(kind)
    predictor = OnlinePredictor(CONFIGS[kind])
    predictor.restore(data)
    header, arrays = unpack(data)
    damage(header, arrays)
    with pytest.raises(InvalidSnapshot):
        predictor.restore(pack(header, arrays))
    assert predictor.snapshot() == data


def test_a_snapshot_of_another_configuration_or_one_that_was_cut_is_refused():
    data = snapshot_of("plain")
    with pytest.raises(InvalidSnapshot, match="another configuration"):
        OnlinePredictor(CONFIGS["plain"].model_copy(update={"seed": 2})).restore(data)
    predictor = OnlinePredictor(CONFIGS["plain"])
    before = predictor.snapshot()
    with pytest.raises(InvalidSnapshot):
        predictor.restore(data[:-100])
    assert predictor.snapshot() == before
