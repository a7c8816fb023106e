"""An expert that a line of the table adds: answers, weights, states, late labels."""

import numpy as np
import pytest
from predictor_answers import flat, predictor_of, restored, rows, stream

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.predictor import expert_ensemble
from online_svm.predictor.expert import Expert, RowsToLearn
from online_svm.predictor.expert_ensemble import ExpertEnsemble
from online_svm.predictor.frozen_predictor import FrozenPredictor
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.pending_examples import AnswerTimeOutputs
from online_svm.storage.state import pack, unpack
from online_svm.storage.state_schema import StateSchema, ints

WORLDS = {"two": {"classes": ("c0", "c1")}, "discovered": {}}


class LastLabel(Expert):
    """Always the last label, nearly certain."""

    outputs = ("last-label",)
    _stored = StateSchema(ints("_last", "1", least=-1, below="._n_classes"))

    def __init__(self, n_classes):
        self._n_classes, self._last = n_classes, np.array([-1])

    def answer(self, rows, _before):
        found = np.full((len(rows.columns), self._n_classes), 1.0 / self._n_classes)
        for row, column in zip(found, rows.columns.tolist(), strict=True):
            if self._last[0] >= 0:
                row[:] = said(self._last[0], self._n_classes)
            if 0 <= column < self._n_classes:
                self._last = np.array([column])
        return [found]

    def moved(self, places, n_classes):
        other = type(self)(n_classes)
        if self._last[0] >= 0:
            other._last = np.array([places[self._last[0]]])
        return other


class Correction(LastLabel):
    """The same beside the label history; it stores its answers."""

    corrects, n_stored = True, 1

    def answer(self, rows, before):
        assert before["average"].shape == (len(rows.columns), self._n_classes)
        (found,) = super().answer(rows, before)
        if rows.stored is not None:
            for stored, own, source in zip(rows.stored, found, rows.sources, strict=True):
                stored[:, 0] = own if source < 0 else rows.stored[source, :, 0]
        return [found]


def said(column, n_classes):
    return 0.9 * np.eye(n_classes)[column] + 0.1 / n_classes


@pytest.fixture(params=[LastLabel, Correction])
def added(request, monkeypatch):
    """A line of the table adds the expert."""
    monkeypatch.setitem(expert_ensemble.EXPERTS, "last", lambda _config, k: request.param(k))


def sticky(n, k):
    """Return rows that say nothing, and labels that change every 20 examples."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    return X, [f"c{i // 20 % k}" for i in range(n)]


def delayed(k=2):
    return ExpertEnsemble(PredictorConfig(classes=tuple("abcdef"[:k]), horizon=5))


def asked(m, columns=None, learns=None, stored=None):
    """Return m rows of an ensemble with delayed labels."""
    columns = np.full(m, -1) if columns is None else np.array(columns)
    learns = np.zeros(m, dtype=bool) if learns is None else np.array(learns)
    stored = [None] * m if stored is None else stored
    earlier = AnswerTimeOutputs(learns, np.full(m, -1), stored, ages=np.zeros(m))
    return RowsToLearn(np.zeros((m, 2)), None, columns, earlier)


def test_its_answers_are_averaged_under_its_name(monkeypatch):
    monkeypatch.setitem(expert_ensemble.EXPERTS, "last", lambda _config, k: LastLabel(k))
    ensemble = delayed(3)
    place = list(ensemble.weights).index("last-label")
    found = ensemble.answer(asked(4, [1, -1, 2, -1]))
    expected = [np.full(3, 1.0 / 3.0), said(1, 3), said(1, 3), said(2, 3)]
    np.testing.assert_array_equal(found.outputs["experts"][:, place], expected)


@pytest.mark.usefixtures("added")
def test_its_weight_follows_the_labels():
    X, labels = sticky(200, 2)
    predictor = predictor_of(classes=("c0", "c1"))
    before = predictor.frozen().expert_weights
    predictor.step_many(X, labels)
    after = predictor.frozen().expert_weights
    assert next(iter(after)) == "stack"
    for weights in (before, after):
        assert sum(weights.values()) == pytest.approx(1.0)
    gain = {name: after[name] / before[name] for name in after}
    assert gain["last-label"] > 3.0 * gain["stack"]
    assert gain["last-label"] > 3.0 * gain["base-rate"]


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize("name", WORLDS)
def test_batches_of_any_size_and_restarts_give_the_same_bytes(name):
    k = 2 if name == "two" else 3
    X, labels = stream(130, k)
    labels = [None if i % 13 == 4 else label for i, label in enumerate(labels)]
    whole = predictor_of(**WORLDS[name])
    expected = flat(whole.step_many(X, labels))
    assert any(name.endswith("experts.last.last") for name in unpack(whole.snapshot())[1])
    for size in (9, 33):
        parts, found = predictor_of(**WORLDS[name]), []
        for i in range(0, len(X), size):
            found += flat(parts.step_many(X[i : i + size], labels[i : i + size]))
            parts = restored(parts)
        assert found == expected, size
        assert parts.snapshot() == whole.snapshot(), size


def test_a_late_row_is_credited_with_the_answer_of_its_time(monkeypatch):
    monkeypatch.setitem(expert_ensemble.EXPERTS, "last", lambda _config, k: LastLabel(k))
    ensemble = delayed()
    place = list(ensemble.weights).index("last-label")
    ensemble.answer(asked(1, [0]))
    first = ensemble.answer(asked(1))
    ensemble.answer(asked(9, [1] * 9))
    then = {name: part[0] for name, part in first.outputs.items()}
    late = ensemble.answer(asked(1, [1], [True], [then]))
    np.testing.assert_array_equal(late.outputs["experts"][0, place], said(0, 2))
    now = ensemble.answer(asked(1))
    np.testing.assert_array_equal(now.outputs["experts"][0, place], said(1, 2))


@pytest.mark.usefixtures("added")
def test_a_published_state_answers_as_the_predictor():
    X, labels = sticky(90, 3)
    predictor = predictor_of()
    schema = predictor.schema.of_features(None, 2)
    predictor.step_many(X[:80], labels[:80], schema=schema)
    frozen = FrozenPredictor.restore(predictor.frozen().snapshot(), predictor.config)
    assert frozen.expert_weights == predictor.frozen().expert_weights
    found = frozen.answer(X[80:])
    assert [found.row(i) for i in range(10)] == rows(predictor.step_many(X[80:], [None] * 10))


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize("last", [[-2], [3], [0, 1], [0.5]])
def test_its_damaged_state_is_refused(last):
    predictor = predictor_of(classes=("c0", "c1"))
    predictor.step_many(*sticky(30, 2))
    header, arrays = unpack(predictor.snapshot())
    (name,) = (name for name in arrays if name.endswith("experts.last.last"))
    header.pop("format", None)
    with pytest.raises(InvalidSnapshot, match="last"):
        OnlinePredictor(predictor.config).restore(pack(header, arrays | {name: np.array(last)}))


def test_an_expert_that_the_settings_do_not_ask_for_changes_no_byte(monkeypatch):
    X, labels = sticky(90, 2)
    found = []
    for _ in range(2):
        predictor = predictor_of(classes=("c0", "c1"))
        found.append((flat(predictor.step_many(X, labels)), predictor.snapshot()))
        monkeypatch.setitem(expert_ensemble.EXPERTS, "none", lambda _config, _k: None)
    assert found[0] == found[1]
