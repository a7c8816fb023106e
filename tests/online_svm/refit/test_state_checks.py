"""A learner's state is taken whole or refused, before any compiled code sees it."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.inline import InlineRefitter
from online_svm.refit.learner import Learner
from online_svm.refit.state_checks import opened
from online_svm.storage.container import pack, unpack

CONFIG = PredictorConfig(
    classes=("a", "b", "c"), window=80, refit_every=20, gamma=0.5, committee="single"
)
COMMITTEE = CONFIG.model_copy(update={"committee": "default"})
OTHERS = [
    CONFIG.model_copy(update={"classes": ("a", "b"), "kernel": "poly", "scale": "standard"}),
    CONFIG.model_copy(update={"classes": None, "split": "interleaved", "missing": "mean"}),
    PredictorConfig(classes=("a", "b"), window=20, refit_every=7, learner="psvm"),
    PredictorConfig(classes=("a", "b"), window=None, refit_every=50, refit_lag=0),
    CONFIG.model_copy(update={"split": "crossfit"}),
]


class Recorder(InlineRefitter):
    """Keeps its tasks, and the state before each of them."""

    def __init__(self, config):
        super().__init__(config)
        self.seen = []

    def result(self):
        self.seen.append((self._tasks[0], self.state() if self.seen else None))
        return super().result()


def recorded(config, count=400):
    """Return the tasks of a stream of three classes, or two, and the states before them."""
    generator, refitter = np.random.default_rng(4), Recorder(config)
    X = generator.normal(size=(count, 3))
    labels = np.where(X[:, 0] + generator.normal(size=count) > 0, "a", "b")
    if config.classes is None or len(config.classes) == 3:
        labels[::5] = "c"
    if config.missing == "mean":
        X[::7, 1] = np.nan
    OnlinePredictor(config, refitter).step_many(X, labels.tolist())
    return refitter.seen[1:]


@pytest.fixture(scope="module")
def left():
    """The last task of a stream, and the state before it, of one machine and of a committee."""
    return {config: recorded(config)[-1] for config in (CONFIG, COMMITTEE)}


@pytest.mark.parametrize("config", [CONFIG, COMMITTEE, *OTHERS])
def test_every_state_that_a_learner_leaves_can_be_continued_from(config):
    steps = recorded(config)
    assert len(steps) > 3
    for task, state in steps:
        learner = Learner.from_state(state, config)
        assert learner.state() == state
        assert learner.refit(task).freeze == task.freeze


@given(st.data())
def test_a_state_that_was_cut_is_refused_and_leaves_the_learner_as_it_was(left, data):
    _, state = left[CONFIG]
    refitter = InlineRefitter(CONFIG)
    refitter.reset(state)
    with pytest.raises(InvalidSnapshot, match="learner"):
        refitter.reset(state[: data.draw(st.integers(0, len(state) - 1))])
    assert refitter.state() == state


def of_another_type(array):
    """Return the bytes of a float array as integers, or other values as floats."""
    return array.view("<i8") if array.dtype == np.float64 else array.astype("<f8")


@pytest.mark.parametrize("config", [CONFIG, COMMITTEE], ids=["single", "committee"])
def test_an_array_of_another_size_or_type_is_refused(left, config):
    own, parts = unpack(left[config][1])
    assert {"rows", "scaling.limit"} < set(parts)
    assert {"machine.rings", "committee.0.rings", "committee.2.weights"} & set(parts)
    for name, array in parts.items():
        longer = np.concatenate([array, array[:1]])
        for changed in (longer, of_another_type(array), array[None]):
            with pytest.raises(InvalidSnapshot):
                opened(config, pack(own, parts | {name: changed}))
        rest = {key: parts[key] for key in parts if key != name}
        with pytest.raises(InvalidSnapshot):
            opened(config, pack(own, rest))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("machine.codes", 3),
        ("machine.codes", -1),
        ("machine.arrival", 1 << 40),
        ("machine.rings", 1 << 40),  # sizes that would ask for terabytes
        ("machine.rings", -1),
        ("machine.rings", 0),
        ("machine.X", np.nan),
        ("machine.weights", np.inf),
        ("machine.penalties", -1.0),
        ("machine.active", 1 << 40),
        ("machine.active", 1),  # one point in many places
        ("machine.active_counts", 1 << 40),
        ("machine.margin", np.nan),
        ("scaling.mean", np.nan),
        ("committee.0.codes", 3),
        ("committee.1.rings", 1 << 40),
        ("committee.1.weights", np.inf),
        ("committee.2.weights", np.nan),
        ("committee.foreseen", np.inf),
    ],
)
def test_values_that_lead_out_of_the_arrays_are_refused(left, name, value):
    config = COMMITTEE if name.startswith("committee") else CONFIG
    own, parts = unpack(left[config][1])
    changed = np.full_like(parts[name], value)
    with pytest.raises(InvalidSnapshot):
        Learner.from_state(pack(own, parts | {name: changed}), config)


def test_an_example_that_only_some_members_scored_is_refused(left):
    own, parts = unpack(left[COMMITTEE][1])
    changed = parts["committee.foreseen"].copy()
    changed[-1, 0, 0] = np.nan
    with pytest.raises(InvalidSnapshot, match="foreseen"):
        opened(COMMITTEE, pack(own, parts | {"committee.foreseen": changed}))


plain = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 1 << 70), st.text(max_size=3),
    st.floats(allow_nan=False, allow_infinity=False),  # no container holds the others
    st.lists(st.integers(0, 3), max_size=6),
)  # fmt: skip


@given(st.data())
@pytest.mark.parametrize("config", [CONFIG, COMMITTEE], ids=["single", "committee"])
def test_a_header_with_another_value_is_refused_or_can_be_computed_with(left, config, data):
    task, state = left[config]
    own, parts = unpack(state)
    holders = [own, own["machine"]] if config is CONFIG else [own, own["committee"]]
    holders += own.get("committee", {"machines": []})["machines"]
    holder = data.draw(st.sampled_from([held for held in holders if held]))
    # The number of the first row is another's to know: the task that follows names it too.
    name = data.draw(st.sampled_from(sorted(set(holder) - {"start"})))
    holder[name] = data.draw(plain)
    try:
        learner = Learner.from_state(pack(own, parts), config)
    except InvalidSnapshot as error:
        assert "learner" in str(error)  # noqa: PT017  (either outcome is fine)
    else:
        assert np.isfinite(learner.refit(task).calibration_scores).all()


def test_folds_that_contradict_the_machines_are_refused():
    config = CONFIG.model_copy(update={"split": "crossfit"})
    own, parts = unpack(recorded(config)[-1][1])
    for folds in (parts["machine.folds"][::-1] * 0, parts["machine.folds"] + 1):
        with pytest.raises(InvalidSnapshot, match="folds"):
            opened(config, pack(own, parts | {"machine.folds": folds}))
    own["machine"]["machines"].pop()
    with pytest.raises(InvalidSnapshot, match="folds"):
        opened(config, pack(own, parts))


def restored(config, header, arrays):
    """Return what restoring says when it refuses; empty if it does not."""
    try:
        OnlinePredictor(config).restore(pack(header, arrays))
    except InvalidSnapshot as error:
        return str(error)
    return ""


TWO = PredictorConfig(classes=("a", "b"), window=60, refit_every=20, committee="default")
IMPLIED = TWO.model_copy(update={"committee": "single", "maps": ("implied",)})


@pytest.fixture(scope="module")
def active():
    """A snapshot of a predictor whose model is a committee, and one that publishes banks."""
    X = np.random.default_rng(4).normal(size=(100, 2))
    labels = np.where(X[:, 0] > 0, "a", "b").tolist()
    predictors = {config: OnlinePredictor(config) for config in (TWO, IMPLIED)}
    for predictor in predictors.values():
        predictor.step_many(X, labels)
    return {config: predictor.snapshot() for config, predictor in predictors.items()}


@pytest.mark.parametrize(
    "name",
    [
        "model.vectors", "model.coef", "model.intercept", "scaling.mean", "scaling.width",
        "calibration", "training", "bank.0.moves", "bank.0.sides", "bank.0.free",
        "bank.0.move_ends", "bank.0.free_ends", "bank.0.free_coef", "bank.0.highest",
        "model.0.vectors", "model.1.coef", "model.2.intercept", "model.stack.slope",
        "model.stack.intercept", "model.stack.weights", "model.stack.constant",
    ],
)  # fmt: skip
def test_an_active_model_whose_numbers_lead_out_of_its_arrays_is_refused(active, name):
    """It was made by the same program; but a snapshot is not trusted to be intact."""
    is_committee = re.match(r"model\.(\d|stack)", name)
    config = TWO if is_committee else IMPLIED
    header, arrays = unpack(active[config])
    own, parts = unpack(arrays["active.result"].tobytes())
    axis = 0 if is_committee else -1
    changed = [np.repeat(parts[name], 2, axis=axis), of_another_type(parts[name])]
    if parts[name].dtype == np.int64:
        changed += [np.full_like(parts[name], 10**9), np.full_like(parts[name], -(10**9))]
    if is_committee:
        changed += [parts[name] * np.nan]
    for array in changed:
        result = pack(own, parts | {name: array})
        arrays["active.result"] = np.frombuffer(result, dtype=np.uint8)
        assert restored(config, dict(header), arrays)


@pytest.mark.parametrize("banks", [-1, 2, 10**30, None])
def test_an_active_model_of_another_number_of_banks_is_refused_at_once(active, banks):
    header, arrays = unpack(active[IMPLIED])
    own, parts = unpack(arrays["active.result"].tobytes())
    result = pack(own | {"banks": banks}, parts)
    arrays["active.result"] = np.frombuffer(result, dtype=np.uint8)
    assert restored(IMPLIED, dict(header), arrays)


@pytest.mark.parametrize("name", ["active.set.codes", "active.training_columns"])
def test_columns_that_lead_out_of_the_classes_are_refused(active, name):
    header, arrays = unpack(active[IMPLIED])
    for value in (-2, 3, 10**9):
        changed = arrays | {name: np.full_like(arrays[name], value)}
        assert restored(IMPLIED, dict(header), changed)


def test_an_active_committee_with_another_number_of_kernels_is_refused(active):
    header, arrays = unpack(active[TWO])
    own, parts = unpack(arrays["active.result"].tobytes())
    for members in (own["members"][:-1], own["members"] * 2, []):
        result = pack(own | {"members": members}, parts)
        arrays["active.result"] = np.frombuffer(result, dtype=np.uint8)
        assert restored(TWO, dict(header), arrays)
