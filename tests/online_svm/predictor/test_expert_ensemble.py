"""The ensemble of experts in a predictor: warm-up, classes, batches, delays, drift, rows."""

from copy import deepcopy

import numpy as np
import pytest
from predictor_answers import (
    answers_of_model,
    blocks,
    corrected,
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
from online_svm.predictor.label_history import N_FEATURES, LabelHistory
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.pending_examples import AnswerTimeOutputs
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.predictor.recent_interval import RecentIntervals
from online_svm.storage.state import pack, unpack
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


# Batches and restarts


# Delayed labels


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


# Rows


@pytest.mark.parametrize(
    "settings", [TWO, TWO | {"kernel": "linear", "scale": "none"}, {}], ids=str
)
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
            assert np.isfinite(answer.scores).all()


def test_missing_values_are_filled_from_the_first_answer_on():
    X, labels = stream(40)
    X[::3, 1] = np.nan
    found = rows(predictor_of(**TWO, missing="mean").step_many(X, labels))
    assert all(np.isfinite(answer.probabilities).all() for answer in found)


# States


def learned(k=3, **changes):
    ensemble = ExpertEnsemble(ProtocolConfig(classes=tuple("abcdef"[:k]), **changes))
    X, labels = stream(30, k)
    ensemble.answer(RowsToLearn(X, None, np.array([int(y[1]) for y in labels]), None))
    ensemble.fit_if_due(32, 32, None, None)
    return ensemble


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
