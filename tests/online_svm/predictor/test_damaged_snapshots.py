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
from online_svm.stream.input_batch import Example

CONFIGS = {
    "plain": PredictorConfig(window=60, refit_every=25, metrics_every=7),
    "three classes": PredictorConfig(maps=("temperature", "platt"), window=80, refit_every=40),
    "drift": cheap(),
    "reset": cheap(on_drift="reset"),
    "late": late_settings(),
    "budget": late_settings(label_budget=0.5),
    "scored": PredictorConfig(classes=["a", "b"], scores="probability"),
}


@functools.cache
def snapshot_of(kind):
    predictor = OnlinePredictor(CONFIGS[kind])
    if kind in ("late", "budget"):
        X, _, events = late_stream(60, np.random.default_rng(12))
        follow(predictor, X, events, 60)
    elif kind == "scored":
        for i in range(60):
            predictor.step(Example(None, "ab"[i % 2], score=i / 60, score_version=i // 30))
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


def changed(name, change, where=None):
    """Return a damage: another value of an array, of the snapshot or of a state in it."""

    def damage(_, arrays):
        arrays[name] = change(arrays[name])

    return damage if where is None else of_result(damage, where)


def longer(*names):
    """Return a damage: arrays with more rows than any state keeps."""

    def damage(_, arrays):
        for name in names:
            arrays[name] = np.resize(arrays[name], (20_000, *arrays[name].shape[1:]))

    return damage


INTERVALS, LATELY = "experts.intervals.", "active.lately."
RECENT = "active.headline.recent."
BEYOND = {
    "a class twice in the figures": put("agreement", "classes", value=["c0", "c0", None]),
    "a class less in the figures": put("agreement", "classes", value=["c0", "c1"]),
    "figures of a chunk less": changed("agreement.by_class", lambda a: a[1:]),
    "a class twice in the window": put("windowed", "classes", value=["c0", "c0", None]),
    "a label of no class": changed("windowed.label", lambda a: a + 9),
    "a weight of too many": changed("windowed.weights", lambda a: a * 1e9),
    "an infinite constant": changed(
        "monitors.tests.exchangeability.constants", lambda a: np.full_like(a, np.inf)
    ),
    "a column of training less": changed("active.training_columns", lambda a: a[1:]),
    "too many recent scores": longer(f"{RECENT}scores", f"{RECENT}columns"),
    "too many counted answers": longer(f"{INTERVALS}points", f"{INTERVALS}columns"),
    "too many neighbours": longer(f"{LATELY}X", f"{LATELY}columns", f"{LATELY}odds"),
    "a freeze that is to come": put("frozen", value=999),
    "an empty learner": changed("learner", lambda a: a[:0]),
    "too many credited": put("experts", "memory", "credited", value=51),
    "rows before the codes": put("rows_first", value=3),
    "rows that end too soon": put("rows_first", value=124),
    "impossible losses": of_result(lambda h, _: h.update(staleness=[0, 1, 0])),
    "losses in halves": of_result(lambda h, _: h.update(staleness=[0.0, 0, 0])),
    "leaves of two machines": of_result(
        changed("model.1.leaves", lambda a: np.repeat(a, 2, axis=2))
    ),
    "sigmoids of two machines": of_result(
        changed("model.stack.slope", lambda a: np.repeat(a, 2, axis=1))
    ),
    "a code of no label": changed("codes", lambda a: a + 9, "memory_chunk.0"),
    "numbers that fall": changed("numbers", lambda a: a[::-1].copy(), "memory_chunk.0"),
    "a number of another chunk": changed("numbers", lambda a: a * 10**6, "memory_chunk.0"),
    "no margin": changed("committee.0.margin", lambda a: a * 0.0, "learner"),
    "too many fits": changed(
        "committee.0.active_counts", lambda a: np.add(a, [[0, 9, 0]]), "learner"
    ),
    "checked too late": changed(
        "committee.0.active_counts", lambda a: np.add(a, [[0, 0, 999]]), "learner"
    ),
    "scaling of two features": of_result(
        lambda _, a: a.update(
            {f"scaling.{n}": a[f"scaling.{n}"][1:] for n in ("mean", "width", "fill")}
        ),
        "learner",
    ),
}
"""Checks of a plain snapshot that compiled code or a later refit relies on."""

TIMES = "late.waiting.times"
DAMAGES = {name: ("plain", damage) for name, damage in BEYOND.items()} | {
    "labels in another order": ("late", put("labels", value=["b", "a"])),
    "a wait of none": ("late", put("late", "ahead", value=[999])),
    "another count of those that wait": ("late", put("late", "counts", "pending", value=5)),
    "an alarm before the first row": ("drift", put("monitors", "open", 0, "n", value=-1)),
    "a budget of nothing": ("budget", put("label_budget", "scale", value=0.0)),
    "a version twice": ("scored", put("experts", "scores", "keys", value=[0, 0])),
    "a version of a text": ("scored", put("experts", "scores", "keys", value=[0, "1"])),
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
