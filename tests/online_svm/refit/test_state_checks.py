"""A learner's state is taken whole or refused, before any compiled code sees it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.refit.learner import InlineRefitter, Learner
from online_svm.refit.scaling import Scaling
from online_svm.refit.state_checks import opened
from online_svm.refit.task import RefitResult, RefitTask
from online_svm.storage.state import as_array, pack, unpack

CONFIG = ProtocolConfig(
    classes=("a", "b", "c"), window=80, refit_every=20, gamma=0.5, committee="single"
)
COMMITTEE = CONFIG.model_copy(update={"committee": "default"})
TWO = ProtocolConfig(classes=("a", "b"), window=60, refit_every=20)
IMPLIED = TWO.model_copy(update={"committee": "single", "maps": ("implied",)})
VARYING = ProtocolConfig(classes=("a", "b"), window=60)
UNSCALED = {"committee": ("logistic", "trees"), "scale": "none", "class_weight": "balanced"}
OTHERS = [
    CONFIG.model_copy(update={"classes": ("a", "b"), "kernel": "linear", "scale": "standard"}),
    CONFIG.model_copy(update={"classes": None, "split": "interleaved", "missing": "mean"}),
    CONFIG.model_copy(update=UNSCALED),
    CONFIG.model_copy(update={"split": "oldest", "class_weight": "balanced"}),
    ProtocolConfig(classes=("a", "b"), window=20, refit_every=7, learner="psvm"),
    ProtocolConfig(classes=("a", "b"), window=None, refit_every=50, refit_lag=0),
    VARYING,
]


class Recorder(InlineRefitter):
    """Keeps each of its tasks and results, and the states before and after it."""

    def __init__(self, config):
        super().__init__(config)
        self.seen = []

    def result(self):
        task, before = self._tasks[0], self.state() if self.seen else None
        result = super().result()
        self.seen.append((task, before, result, self.state()))
        return result


def recorded(config, count=400):
    """Return what a refitter did over a stream of three classes, or two, after its first task."""
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
    return {config: recorded(config)[-1][:2] for config in (CONFIG, COMMITTEE)}


@pytest.mark.parametrize("config", [CONFIG, COMMITTEE, IMPLIED, *OTHERS])
def test_a_restored_learner_gives_the_same_bytes(config):
    steps = recorded(config)
    assert len(steps) > 3
    for task, before, result, after in steps:
        learner = Learner.from_state(before, config)
        assert learner.state() == before
        again = learner.refit(RefitTask.from_state(task.state())).state()
        copy = RefitResult.from_state(again)
        assert again == result.state() == copy.state()
        assert learner.state() == after
        X = result.scaling.transform(task.X)
        np.testing.assert_array_equal(copy.model.scores(X), result.model.scores(X))


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


OUTSIDE = {
    "machine.codes": [3, -1],
    "machine.arrival": [1 << 40],
    "machine.rings": [1 << 40, -1, 0],  # sizes that would ask for terabytes
    "machine.X": [np.nan],
    "machine.weights": [np.inf],
    "machine.penalties": [-1.0],
    "machine.active": [1 << 40, 1],  # one point in many places
    "machine.active_counts": [1 << 40],
    "machine.margin": [np.nan],
    "scaling.mean": [np.nan],
    "committee.0.codes": [3],
    "committee.0.rings": [1 << 40],
    "committee.0.weights": [np.inf],
    "committee.1.edges": [np.nan],
    "committee.1.features": [-1, 3, 1 << 30],
    "committee.1.leaves": [-(1 << 15)],
    "committee.1.fits": [-1, 21],
    "committee.2.weights": [np.nan],
    "committee.foreseen": [np.inf],
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_values_that_lead_out_of_the_arrays_are_refused(left, name):
    config = COMMITTEE if name.startswith("committee") else CONFIG
    own, parts = unpack(left[config][1])
    for value in OUTSIDE[name]:
        changed = np.full_like(parts[name], value)
        with pytest.raises(InvalidSnapshot):
            Learner.from_state(pack(own, parts | {name: changed}), config)


def test_an_example_that_only_some_members_scored_is_refused(left):
    own, parts = unpack(left[COMMITTEE][1])
    parts["committee.foreseen"][-1, 0, 0] = np.nan
    with pytest.raises(InvalidSnapshot, match="foreseen"):
        opened(COMMITTEE, pack(own, parts))


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


def test_an_older_model_that_cannot_score_the_rows_to_come_is_refused():
    *_, (_, _, result, state) = recorded(VARYING)
    header, parts = unpack(state)
    of_three = recorded(VARYING.model_copy(update={"classes": ("a", "b", "c")}))[-1][2]
    narrow = RefitResult(0, result.model, Scaling.identity(2), np.empty((0, 1)), np.empty((0, 1)))
    for older in (result, of_three, narrow):  # with its scores; of three classes; of two features
        with pytest.raises(InvalidSnapshot):
            opened(VARYING, pack(header, parts | {"older": as_array(older.state())}))
    with pytest.raises(InvalidSnapshot, match="older"):
        opened(VARYING.model_copy(update={"refit_every": 250}), state)
    opened(VARYING, state)


class Snapshot:
    """A predictor's snapshot, whose active model can be stored otherwise."""

    def __init__(self, config):
        X = np.random.default_rng(4).normal(size=(100, 2))
        predictor = OnlinePredictor(config)
        predictor.step_many(X, np.where(X[:, 0] > 0, "a", "b").tolist())
        self.config = config
        self.header, self.arrays = unpack(predictor.snapshot())
        self.own, self.parts = unpack(self.arrays["active.result"].tobytes())

    def restore(self, own=None, parts=None, arrays=None):
        result = pack(self.own | (own or {}), self.parts | (parts or {}))
        arrays = self.arrays | {"active.result": as_array(result)} | (arrays or {})
        OnlinePredictor(self.config).restore(pack(dict(self.header), arrays))


@pytest.fixture(scope="module")
def active():
    """Snapshots of a predictor whose model is a committee, and of one that publishes banks."""
    snapshots = {config: Snapshot(config) for config in (TWO, IMPLIED)}
    for snapshot in snapshots.values():
        snapshot.restore()
    return snapshots


OF_BANKS = [
    "model.vectors", "model.coef", "model.intercept", "scaling.mean", "scaling.width",
    "calibration", "training", "bank.0.moves", "bank.0.sides", "bank.0.free", "bank.0.move_ends",
    "bank.0.free_ends", "bank.0.free_coef", "bank.0.highest",
]  # fmt: skip
OF_A_COMMITTEE = [
    "model.0.vectors", "model.0.coef", "model.2.intercept", "model.1.features", "model.1.cuts",
    "model.1.leaves", "model.stack.slope",
    "model.stack.intercept", "model.stack.weights", "model.stack.constant",
]  # fmt: skip


@pytest.mark.parametrize("name", OF_BANKS + OF_A_COMMITTEE)
def test_an_active_model_whose_numbers_lead_out_of_its_arrays_is_refused(active, name):
    """It was made by the same program; but a snapshot is not trusted to be intact."""
    snapshot = active[TWO if name in OF_A_COMMITTEE else IMPLIED]
    array, axis = snapshot.parts[name], 0 if name in OF_A_COMMITTEE else -1
    changed = [np.repeat(array, 2, axis=axis), of_another_type(array)]
    if array.dtype == np.int64:
        changed += [np.full_like(array, 10**9), np.full_like(array, -(10**9))]
    if name in OF_A_COMMITTEE:
        changed += [array * np.nan]
    for other in changed:
        with pytest.raises(InvalidSnapshot):
            snapshot.restore(parts={name: other})


@pytest.mark.parametrize("banks", [-1, 2, 10**30, None])
def test_an_active_model_of_another_number_of_banks_is_refused_at_once(active, banks):
    with pytest.raises(InvalidSnapshot):
        active[IMPLIED].restore(own={"banks": banks})


def test_an_active_committee_with_another_number_of_kernels_is_refused(active):
    members = active[TWO].own["members"]
    for others in (members[:-1], members * 2, []):
        with pytest.raises(InvalidSnapshot):
            active[TWO].restore(own={"members": others})


@pytest.mark.parametrize("name", ["active.set.codes", "active.training_columns"])
def test_columns_that_lead_out_of_the_classes_are_refused(active, name):
    for value in (-2, 3, 10**9):
        columns = np.full_like(active[IMPLIED].arrays[name], value)
        with pytest.raises(InvalidSnapshot):
            active[IMPLIED].restore(arrays={name: columns})
