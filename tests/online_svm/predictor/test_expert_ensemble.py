"""The ensemble of experts in a predictor: warm-up, classes, batches, delays, drift, rows."""

from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest
from drifting import inverted
from predictor_answers import (
    alarms,
    answers_of_model,
    blocks,
    corrected,
    flat,
    follow,
    late_stream,
    predictor_of,
    restored,
    rows,
    stream,
)

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.ensemble import Ensemble, WeightUpdate
from online_svm.predictor.expert import RowsToLearn
from online_svm.predictor.expert_average import AverageRows
from online_svm.predictor.expert_ensemble import ExpertEnsemble
from online_svm.predictor.frozen_predictor import FrozenPredictor
from online_svm.predictor.label_history import N_FEATURES, LabelHistory
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.pair_prediction import PairPrediction
from online_svm.predictor.pending_examples import AnswerTimeOutputs
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.predictor.recent_interval import RecentIntervals
from online_svm.storage.state import State, pack, unpack
from online_svm.stream.input_batch import Example
from online_svm.stream.labels import ClassView

TWO, THREE = {"classes": ("c0", "c1")}, {"classes": ("c0", "c1", "c2")}


# Warm-up


def test_the_first_answer_to_declared_classes_is_even_and_its_interval_wide():
    answer = predictor_of(**THREE).step(Example([0.0, 1.0]))
    assert (answer.status, answer.method, answer.guarantee) == ("warming", "experts", "none")
    assert answer.label == "c0"
    np.testing.assert_allclose(answer.probabilities, [1.0 / 3.0] * 3)
    np.testing.assert_allclose(answer.intervals, [[0.0, 1.0]] * 3)
    assert not answer.venn
    assert not answer.scores
    assert answer.svm_label is None


def test_before_a_fit_the_answer_is_the_base_rate_and_its_correction():
    columns = np.array([1, 1, 0, 1])
    predictor = predictor_of(**TWO)
    found = [predictor.step(Example([float(i), 0.0], f"c{y}")) for i, y in enumerate(columns)]
    counts = np.stack([np.cumsum(columns == y) - (columns == y) for y in (0, 1)], axis=1)
    rates = (counts + 0.5) / (np.arange(4)[:, None] + 1.0)
    history = corrected(LabelHistory(2), rates, columns)
    mixed = Ensemble(2, WeightUpdate(0.002, first=0.7)).answer([rates, history], columns)
    np.testing.assert_allclose([answer.probabilities for answer in found], mixed, rtol=1e-9)
    intervals = RecentIntervals(0.9, ClassView(("c0", "c1"), True), is_delayed=False)
    ends = np.stack(intervals.answer(columns, mixed), axis=2)
    np.testing.assert_allclose([answer.intervals for answer in found], ends, rtol=1e-9)
    for answer in found:
        assert answer.label == ("c0", "c1")[int(np.argmax(answer.probabilities))]
        assert answer.probability == max(answer.probabilities)


def test_without_a_level_an_interval_in_the_warm_up_says_nothing():
    predictor = predictor_of(**TWO, interval_level=None)
    found = [predictor.step(Example([0.0], "c0")) for _ in range(5)]
    assert all(answer.status == "warming" for answer in found)
    assert all(answer.interval_level is None for answer in found)
    assert all(np.array_equal(answer.intervals, [[0.0, 1.0]] * 2) for answer in found)


def test_a_warm_up_answer_depends_on_the_features_after_four_labels():
    predictor = predictor_of(**TWO)
    for i in range(9):
        predictor.step(Example([float(i % 2), 1.0], f"c{i % 2}"))
    low, high = (predictor.step(Example([x, 1.0])) for x in (0.0, 1.0))
    assert low.status == "warming"
    assert low.probabilities[1] < high.probabilities[1]


def test_warm_up_answers_are_not_scored():
    X, labels = stream(40)
    predictor = predictor_of(**TWO, metrics_every=40)
    answers = predictor.step_many(X, labels)
    warming = sum(len(block) for block in blocks(answers, "warming"))
    (report,) = [one for one in answers if not hasattr(one, "status")]
    assert warming >= 10
    assert report.scored == 40 - warming


@pytest.mark.parametrize("single", [{"committee": "single"}, {"split": "oldest"}])
def test_a_single_machine_keeps_its_answer_after_the_warm_up(single):
    X, labels = stream(60)
    found = rows(predictor_of(**TWO, **single).step_many(X, labels))
    assert {(a.status, a.method) for a in found} == {("warming", "experts"), ("ok", "venn")}


def test_in_the_warm_up_discovered_classes_are_those_learned_and_the_unseen_one():
    predictor = predictor_of()
    first = predictor.step(Example([0.0], "b"))
    assert (first.label, first.probabilities, first.method) == (None, (), None)
    second = predictor.step(Example([0.0], "a"))
    third = predictor.step(Example([0.0]))
    assert second.classes == ("b", None)
    assert third.classes == ("a", "b", None)
    for answer in (second, third):
        assert answer.status == "warming"
        assert sum(answer.probabilities) == pytest.approx(1.0)
        assert len(answer.intervals) == len(answer.classes)


def test_a_new_label_joins_after_the_model_and_keeps_what_was_learned():
    X, labels = stream(200, 3, seed=4)
    labels = [("c0", "c1")[i % 2] if i < 60 else label for i, label in enumerate(labels)]
    predictor = predictor_of()
    found = rows(predictor.step_many(X, labels))
    sets = [answer.classes for answer in found]
    assert sets[:1] == [(None,)]
    assert sets[59] == ("c0", "c1", None)
    assert sets[-1] == ("c0", "c1", "c2", None)
    for answer in found[1:]:
        assert sum(answer.probabilities) == pytest.approx(1.0, abs=1e-12)
        for p, (low, high) in zip(answer.probabilities, answer.intervals, strict=True):
            assert 0.0 <= low <= p <= high <= 1.0
    assert found[-1].probabilities[-1] < 0.1


# With a model


@pytest.mark.parametrize(("classes", "k"), [(TWO, 2), (THREE, 3)])
def test_the_answer_averages_the_experts_corrects_that_and_reads_the_interval(
    classes, k, monkeypatch
):
    X, labels = stream(120, k)
    columns = np.array([int(label[1]) for label in labels])
    settings = classes | {"metrics_every": 120, "refit_lag": 0}
    predictor = predictor_of(**settings)
    predictor.step_many(X[:100], labels[:100])
    parts = deepcopy(predictor._engine._experts)
    said = answers_of_model(monkeypatch)
    (block,) = predictor.step_many(X[100:], labels[100:])[:1]
    assert len(block) == 20
    (of_model,) = said
    asked = RowsToLearn(X[100:], None, columns[100:], None, sources=np.full(20, -1))
    counts = np.bincount(columns[:100], minlength=k) + np.eye(k)[columns].cumsum(axis=0)[100:]
    counts = counts - np.bincount(columns[:100], minlength=k) - np.eye(k)[columns[100:]]
    simple = parts.experts["simple"].answer(asked, {})
    np.testing.assert_allclose(
        simple[0], (counts + 0.5) / (counts.sum(axis=1, keepdims=True) + 0.5 * k), rtol=1e-12
    )
    experts = np.array([*of_model.values(), *simple])
    names = [*of_model, *parts.experts["simple"].outputs]
    assert tuple(names) == parts._average.names
    average = np.empty((20, k))
    scratch, present = (np.empty((1, len(names), k)), np.empty((1, 1, k))), np.empty((1, k))
    parts._average.answer(
        AverageRows(experts, *scratch, columns[100:], asked.sources, np.zeros(20), average, present)
    )
    history = corrected(parts.experts["history"], average, columns[100:])
    mixed = parts._corrected.answer([average, history], columns[100:])
    lower, upper = parts._intervals.answer(columns[100:], mixed)
    np.testing.assert_array_equal(block.point, mixed)
    np.testing.assert_array_equal(block.lower, lower)
    np.testing.assert_array_equal(block.upper, upper)
    assert (block.label == mixed.argmax(axis=1)).all()
    assert block.method == "experts"


def test_labels_that_depend_on_the_ones_before_are_predicted():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(400, 2)), [f"c{i // 20 % 2}" for i in range(400)]
    found = rows(predictor_of(**TWO).step_many(X, labels))[200:]
    asked = labels[200:]
    assert np.mean([a.label == label for a, label in zip(found, asked, strict=True)]) > 0.9
    of_svm = np.mean([a.svm_label == label for a, label in zip(found, asked, strict=True)])
    assert of_svm < 0.8  # which knows the features alone


def test_on_independent_examples_little_is_lost(monkeypatch):
    X, labels = stream(400)
    said = answers_of_model(monkeypatch)
    answers = blocks(predictor_of(**TWO).step_many(X, labels))
    of_all = np.concatenate([block.point for block in answers if block.status == "ok"])
    columns = np.array([int(label[1]) for label in labels])[-len(of_all) :]

    def loss(point):
        return -np.log(point[np.arange(len(point)), columns]).mean()

    of_model = [
        loss(np.concatenate([answers[name] for answers in said])) for name in PairPrediction.outputs
    ]
    assert loss(of_all) < min(of_model) + 0.02


# Batches and restarts

WORLDS = {
    "three": THREE,
    "no level": TWO | {"interval_level": None},
    "unscaled, discovered": {"scale": "none"},
    "lag": TWO | {"refit_lag": 15},
}
"""Of those that test_same_bytes.py lacks, or restarts less often."""


def world(name, n=130):
    k = 3 if name in ("three", "unscaled, discovered") else 2
    X, labels = stream(n, k)
    if k == 3:  # the last class is met late, in the warm-up and with a model
        labels = ["c1" if y == "c2" and 6 < i < 50 else y for i, y in enumerate(labels)]
    return X, [None if i % 13 == 4 else y for i, y in enumerate(labels)]


@pytest.mark.parametrize("name", WORLDS)
def test_batches_of_any_size_and_restarts_at_any_n_give_the_same_bytes(name):
    X, labels = world(name)
    whole = predictor_of(**WORLDS[name])
    expected = flat(whole.step_many(X, labels))
    for size in (1, 19):
        parts, kept, found = predictor_of(**WORLDS[name]), predictor_of(**WORLDS[name]), []
        for i in range(0, len(X), size):
            batch = X[i : i + size], labels[i : i + size]
            found += flat(parts.step_many(*batch))
            parts = restored(parts)
            kept.step_many(*batch)
        assert found == expected, size
        assert parts.snapshot() == kept.snapshot() == whole.snapshot(), size


# Delayed labels


@pytest.mark.parametrize("maturity", ["horizon", "arrival"])
@pytest.mark.parametrize("classes", [{"classes": ("a", "b")}, {}], ids=["declared", "discovered"])
def test_with_delayed_labels_batches_and_restarts_give_the_same_bytes(maturity, classes):
    """Labels that come in the call of their example, or in a later one from stored outputs."""
    X, _, events = late_stream(110, np.random.default_rng(5))
    settings = classes | {"horizon": 12, "maturity": maturity}
    whole = predictor_of(**settings)
    expected = follow(whole, X, events, len(events))
    assert {a.status for a in expected[0] if hasattr(a, "probabilities")} == {"warming", "ok"}
    for size in (1, 5, 40):
        assert follow(predictor_of(**settings), X, events, size) == expected, size
    parts, answers, outcomes = predictor_of(**settings), [], []
    for begin, stop in pairwise([*range(0, len(events), 3), len(events)]):
        more, told = follow_from(parts, X, events, begin, stop)
        answers, outcomes = answers + more, outcomes + told
        parts = restored(parts)
    assert answers == expected[0]
    assert parts.snapshot() == whole.snapshot()


def follow_from(predictor, X, events, begin, stop):
    """Answer events begin ... stop - 1."""
    from predictor_answers import batch_of

    result = predictor.process(batch_of(X, events[begin:stop], begin))
    return flat(result.found), sorted(result.taken)


def delayed(k=2, **changes):
    config = ProtocolConfig(classes=tuple("abcdef"[:k]), horizon=5, **changes)
    return ExpertEnsemble(config)


def rows_to_learn(X, columns, learns=None, sources=None, stored=None):
    columns, m = np.array(columns), len(X)
    if learns is None:
        return RowsToLearn(X, None, columns, None)
    earlier = AnswerTimeOutputs(
        np.array(learns), np.full(m, -1) if sources is None else np.array(sources),
        [None] * m if stored is None else stored, np.zeros(m),
    )  # fmt: skip
    return RowsToLearn(X, None, columns, earlier)


def test_a_label_in_the_same_call_and_a_later_one_leave_the_same_state():
    X = np.random.default_rng(0).normal(size=(3, 2))
    # Rows 0 to 2 are answered; then rows 0 and 2 are learned.
    together, apart = delayed(), delayed()
    five = X[[0, 1, 2, 0, 2]]
    one = together.answer(
        rows_to_learn(five, [-1, -1, -1, 1, 0], [False] * 3 + [True] * 2, [-1, -1, -1, 0, 2])
    )
    first = apart.answer(rows_to_learn(X, [-1] * 3, [False] * 3))
    stored = [{name: part[i] for name, part in first.outputs.items()} for i in (0, 2)]
    later = apart.answer(rows_to_learn(X[[0, 2]], [1, 0], [True] * 2, stored=stored))
    np.testing.assert_array_equal(one.point, np.concatenate([first.point, later.point]))
    assert_equal_states(together.state(), apart.state())


def test_a_row_is_learned_with_the_answers_of_its_time():
    """Not with what the experts would answer when the label arrives."""
    rng = np.random.default_rng(1)
    experts = delayed()
    X = rng.normal(size=(1, 2))
    first = experts.answer(rows_to_learn(X, [-1], [False]))
    experts.answer(rows_to_learn(np.zeros((30, 2)), [1] * 30))
    then = {name: part[0] for name, part in first.outputs.items()}
    late = experts.answer(rows_to_learn(X, [0], [True], stored=[then]))
    for name in ("experts", "forecasts", "history"):
        np.testing.assert_array_equal(late.outputs[name][0], then[name])
    now = experts.answer(rows_to_learn(X, [-1], [False]))
    assert np.nanmax(np.abs(now.outputs["experts"][0] - then["experts"])) > 0.3


@pytest.mark.parametrize("stored", [None, {}, {"odds": np.zeros((3, 1))}, "other classes"], ids=str)
def test_a_row_without_answers_of_its_time_is_learned_with_those_of_now(stored):
    X = np.random.default_rng(1).normal(size=(1, 2))
    if stored == "other classes":
        found = delayed(3).answer(rows_to_learn(X, [-1], [False]))
        stored = {name: part[0] for name, part in found.outputs.items()}
        assert stored["history"].shape == (3, N_FEATURES)
    experts, plain = delayed(), delayed()
    for one in (experts, plain):
        one.answer(rows_to_learn(np.zeros((9, 2)), [1, 0, 1] * 3))
    late = experts.answer(rows_to_learn(X, [0], [True], stored=[stored]))
    now = plain.answer(rows_to_learn(X, [0]))
    np.testing.assert_array_equal(late.point, now.point)
    assert_equal_states(experts.state(), plain.state())


def assert_equal_states(one, other):
    assert one.header == other.header
    assert one.arrays.keys() == other.arrays.keys()
    for name, part in one.arrays.items():
        np.testing.assert_array_equal(part, other.arrays[name], err_msg=name)


# Drift


@pytest.fixture(scope="module")
def drift():
    return inverted(800, 400, 800)


@pytest.mark.parametrize("policy", ["refit", "reset"])
def test_after_an_alarm_batches_of_any_size_give_the_same_bytes(drift, policy):
    X, y = drift
    config = ProtocolConfig(
        classes=("a", "b"), window=300, refit_every=150, maps=(), on_drift=policy, alarm_level=0.1
    )
    expected = flat(OnlinePredictor(config).step_many(X, y))
    acted = [one for one in alarms(expected) if one.action == policy]
    assert acted
    parts, found = OnlinePredictor(config), []
    for i in range(0, len(X), 37):
        found += flat(parts.step_many(X[i : i + 37], y[i : i + 37]))
        parts = restored(parts)
    assert found == expected
    after = next(a for a in rows(expected) if a.n == acted[0].n)
    if policy == "reset":  # everything begins again
        assert after.status == "warming"
        np.testing.assert_allclose(after.probabilities, [0.5, 0.5])
        np.testing.assert_allclose(after.intervals, [[0.0, 1.0]] * 2)
    else:
        assert after.status == "ok"
        assert after.intervals != ((0.0, 1.0), (0.0, 1.0))
    assert rows(expected)[-1].method == "experts"


# Rows


def named(count):
    """Return rows of several kinds, with labels by a category; a name more from row 6 on."""
    rng = np.random.default_rng(2)
    for i in range(count):
        y = int(rng.random() < 0.5)
        x = {"country": ("DE", "FR")[y], "amount": float(rng.normal()), "vip": bool(i % 3)}
        if i % 5 == 2:
            del x["amount"]
        if i >= 6:
            x["a later name"] = "text" if i % 2 else 3.5
        yield x, f"c{y}"


def test_named_rows_of_several_kinds_are_answered_from_the_first_on():
    data, whole, parts = list(named(70)), predictor_of(**TWO), predictor_of(**TWO)
    found = []
    for x, y in data:
        found.append(whole.step(Example(x, y)))
        assert parts.step(Example(x, y)) == found[-1]
        parts = restored(parts)
    assert parts.snapshot() == whole.snapshot()
    assert {answer.method for answer in found} == {"experts"}
    hits = [a.label == y for a, (_, y) in zip(found, data, strict=True)]
    assert np.mean(hits[15:]) > 0.9


@pytest.mark.parametrize("settings", [TWO, TWO | {"scale": "none"}, {}], ids=str)
@pytest.mark.parametrize("size", [1e30, 1e99])
def test_huge_values_give_probabilities(settings, size):
    X, labels = stream(70)
    X[::7] *= size
    X[3] = -size
    predictor = predictor_of(**settings)
    for begin in range(0, 70, 10):
        found = rows(predictor.step_many(X[begin : begin + 10], labels[begin : begin + 10]))
        predictor = restored(predictor)
        for answer in found[begin == 0 :]:
            assert np.isfinite(answer.probabilities).all()
            assert sum(answer.probabilities) == pytest.approx(1.0, abs=1e-12)
            assert np.isfinite(answer.intervals).all()


def test_missing_values_are_filled_from_the_first_answer_on():
    X, labels = stream(40)
    X[::3, 1] = np.nan
    found = rows(predictor_of(**TWO, missing="mean").step_many(X, labels))
    assert all(np.isfinite(answer.probabilities).all() for answer in found)


# States


@pytest.mark.parametrize("settings", [TWO, THREE, {}, TWO | {"horizon": 5}], ids=str)
@pytest.mark.parametrize("n", [0, 1, 3, 9, 30, 64])
def test_a_frozen_predictor_answers_as_the_predictor(settings, n):
    X, labels = stream(70, 3 if settings in (THREE, {}) else 2)
    predictor = predictor_of(**settings)
    schema = predictor.schema.of_features(None, 3)
    predictor.step_many(X[:n], labels[:n], schema=schema)
    frozen = FrozenPredictor.restore(predictor.frozen().snapshot(), predictor.config)
    asked = X[-3:]
    found = frozen.answer(asked)
    for i, x in enumerate(asked):
        (expected,) = rows(restored(predictor).step_many(x[None, :], [None]))
        assert found.row(i) == expected
    assert frozen.snapshot() == predictor.frozen().snapshot()


def learned(k=3, **changes):
    ensemble = ExpertEnsemble(ProtocolConfig(classes=tuple("abcdef"[:k]), **changes))
    X, labels = stream(30, k)
    ensemble.answer(RowsToLearn(X, None, np.array([int(y[1]) for y in labels]), None))
    ensemble.fit_if_due(32, 32, None, None)
    return ensemble


def test_a_state_is_restored_whole():
    ensemble = learned()
    assert_equal_states(
        ExpertEnsemble(ensemble._config).restore(ensemble.state()).state(), ensemble.state()
    )


def test_a_damaged_state_is_refused():
    ensemble = learned()
    header, arrays = ensemble.state()
    for change in (
        {"first.X": arrays["first.X"][1:]},
        {"first.X": np.zeros((30, 0, 2))},
        {"first.columns": arrays["first.columns"] + 2},
        {"weights.weights": arrays["weights.weights"][:, 1:]},
        {"weights.trust": 2.0 * arrays["weights.trust"]},
        {"corrected.logs": arrays["corrected.logs"] * np.nan},
        {"simple.counts": -arrays["simple.counts"]},
        {"history.last": np.array([3])},
        {"intervals.since": np.array([49])},
    ):
        with pytest.raises(ValueError, match=r".+"):
            ExpertEnsemble(ensemble._config).restore(State(header, arrays | change))
    for change in ({"fitted_at": -1}, {"n_labels": "3"}, {"is_stale": 2}, {"model": None}):
        with pytest.raises(ValueError, match=r".+"):
            ExpertEnsemble(ensemble._config).restore(State(header | change, arrays))


@pytest.mark.parametrize("part", ["experts", "forecasts", "history"])
def test_stored_outputs_of_which_a_part_is_missing_are_refused(part):
    predictor = predictor_of(**TWO, horizon=20)
    for i in range(5):
        predictor.step(Example([float(i)], id=str(i)))
    header, arrays = unpack(predictor.snapshot())
    name = next(name for name in arrays if name.endswith(f".said.{part}"))
    del arrays[name]
    for answer in header_lists(header, ["experts", "forecasts", "memory", "history"]):
        answer.remove(part)
    header.pop("format", None)
    with pytest.raises(InvalidSnapshot, match="without"):
        OnlinePredictor(predictor.config).restore(pack(header, arrays))


def header_lists(value, like):
    """Yield the lists in a header that equal `like`."""
    if value == like:
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from header_lists(one, like)
