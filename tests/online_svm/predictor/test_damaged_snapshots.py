"""A snapshot with a damaged part is refused, and changes nothing: the shape of each part."""

import functools
from contextlib import suppress
from itertools import chain

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
    "fitted before the first label": ("plain", put("experts", "fitted_at", value=-1)),
    "labels of a text": ("plain", put("experts", "n_labels", value="3")),
    "neither stale nor not": ("plain", put("experts", "is_stale", value=2)),
    "experts of no model": ("plain", put("experts", "model", value=None)),
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


FREE = (".X", ".parameters", ".limit", "features.edges", "features.first", "probs", "rows")
"""Arrays that may be wider, may have gaps, or whose numbers are used whatever they are."""


def misfits(name, array):
    """Yield arrays of other shapes, of another type, and with gaps."""
    if array.size:
        yield array[:-1]
    if not name.startswith("active.map."):  # counts are converted
        with np.errstate(invalid="ignore"):
            yield array.astype("<i8" if array.dtype.kind == "f" else "<f8")
    if array.size and not name.endswith(FREE):
        if array.ndim > 1:
            yield array[..., :-1]
        if array.dtype.kind == "f":
            yield np.full_like(array, np.nan)


def taken_by(predictor, header, damaged):
    """Return the names of damaged arrays with which a predictor is restored all the same."""
    taken = []
    for name, arrays in damaged:
        with suppress(InvalidSnapshot):
            predictor.restore(pack(dict(header), arrays))
            taken.append(name)
    return taken


def test_an_array_that_is_missing_or_of_another_shape_or_type_is_refused():
    header, arrays = unpack(snapshot_of("plain"))
    names = sorted(arrays.keys() - {"learner", "active.result", "memory_chunk.0"})
    missing = ((name, {key: arrays[key] for key in arrays if key != name}) for name in names)
    others = ((n, arrays | {n: misfit}) for n in names for misfit in misfits(n, arrays[n]))
    assert taken_by(OnlinePredictor(CONFIGS["plain"]), header, chain(missing, others)) == []


HISTORY, EXCHANGEABILITY = "experts.history.", "monitors.tests.exchangeability."
OUTSIDE = {
    ("plain", f"{INTERVALS}columns"): [lambda a: a + 3],
    ("plain", f"{INTERVALS}means"): [np.negative],
    **{("plain", f"{INTERVALS}{part}"): [lambda a: a - 1.0] for part in ("low", "high", "moved")},
    ("plain", f"{INTERVALS}since"): [lambda _: np.array([49])],
    ("plain", f"{INTERVALS}first"): [lambda a: a + 1, lambda a: a - 1],
    ("plain", f"{RECENT}columns"): [lambda a: a + 1],
    ("plain", f"{RECENT}since"): [lambda a: a + 50],
    ("plain", "experts.simple.counts"): [np.negative, lambda a: a * np.inf],
    ("three classes", "experts.simple.fitted"): [
        lambda a: a + 2, lambda a: a - 1, lambda a: a[::-1], lambda a: a * [0, 0, 1],
    ],
    ("plain", "experts.first.columns"): [lambda a: a + 2],
    ("plain", f"{HISTORY}frequencies"): [np.negative],
    ("plain", f"{HISTORY}transitions"): [lambda a: a - 1e6],
    ("plain", f"{HISTORY}precision"): [np.negative, np.zeros_like, lambda a: a * np.inf],
    ("plain", f"{HISTORY}last"): [lambda _: np.array([3]), lambda _: np.array([-2])],
    ("late", "experts.weights.weights"): [
        lambda a: a * 1.1, lambda a: a + a[:, :1] * [-2.0, 2.0, *[0.0] * 7], np.negative,
    ],
    ("late", "experts.weights.trust"): [lambda a: a + 0.1, lambda a: 2.0 * a],
    ("late", "experts.weights.credited"): [lambda a: a + 51, lambda a: a - 99],
    ("plain", f"{EXCHANGEABILITY}left"): [lambda _: np.array([-5])],  # it would wait for ever
    # Of no bytes, but it would fill the memory.
    ("plain", f"{EXCHANGEABILITY}means"): [lambda _: np.zeros((0, 1 << 45))],
    ("plain", "monitors.tests.features.counts"): [lambda a: np.full_like(a, 3)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"), OUTSIDE, ids=[f"{kind}: {name}" for kind, name in OUTSIDE]
)
def test_values_that_a_part_cannot_have_are_refused(kind, name):
    header, arrays = unpack(snapshot_of(kind))
    damaged = [(name, arrays | {name: change(arrays[name])}) for change in OUTSIDE[kind, name]]
    assert taken_by(OnlinePredictor(CONFIGS[kind]), header, damaged) == []


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
