"""The memory of `fit`: which rows its trees learn, what it is worth, and that it is saved."""

import numpy as np
import pandas as pd
import pytest
from memory_forests import probabilities

from online_svm import OnlineClassifier
from online_svm.errors import InvalidConfig, InvalidSnapshot
from online_svm.memory.encoder import Edges
from online_svm.refit.memory_trees import LONG, MID, FitTask, fit
from online_svm.storage.recording import SavedModel
from online_svm.storage.state import pack, unpack

QUICK = {"window": 120, "refit_every": 60}


def rings(n=1_200, seed=0):
    """Return rows whose class depends on two of three numbers, and rarely on chance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    noise = rng.random(n) < 0.05
    return X, np.where((np.sin(4 * X[:, 0]) + X[:, 1] > 0.3) ^ noise, "in", "out")


def table(n=600):
    """Return named columns of each kind, with gaps, and three classes."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame({"v": rng.normal(size=n) + y, "unit": rng.choice(["kg", "lb", "t"], n)})
    frame["at"] = pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(
        rng.integers(0, 999, n), "h"
    )
    frame["good"], frame["note"] = y == rng.integers(0, 3, n), "ein Satz mit mehreren Wörtern darin"
    frame.loc[rng.random(n) < 0.2, ["v", "unit"]] = None
    return frame, y


def weights_of(model):
    return model._model.predictor.memory_status.weights


@pytest.mark.parametrize("n", [700, 5_300])
def test_at_the_end_the_trees_have_learned_all_rows(n):
    X, y = rings(n)
    model = OnlineClassifier(**QUICK, order="given").fit(X, y)
    no, codes = np.zeros(3, dtype=bool), (y == "out").astype(np.int64)
    edges = Edges.fit(X, no)
    memory = model._model.predictor._engine.memory
    for kind, trees in ((LONG, memory.long), (MID, memory.mid)):
        task = FitTask(kind, edges.bins(X, no), edges.values, no, codes, 2, 0, n)
        np.testing.assert_array_equal(
            probabilities(trees, X[:50]), probabilities(fit(task), X[:50])
        )
    assert memory.fitted_at == n


@pytest.mark.parametrize("named", [True, False])
def test_a_saved_memory_goes_on_as_the_original(tmp_path, named):
    X, y = table() if named else rings(600)
    model = OnlineClassifier(**QUICK, memory=400).fit(X[:500], y[:500])
    model.save(tmp_path / "model")
    copy = OnlineClassifier.load(tmp_path / "model")
    assert copy.get_params() == model.get_params()
    assert copy.predict_interval(X).tolist() == model.predict_interval(X).tolist()
    on = [one.progressive_proba(X[500:], y[500:]).tolist() for one in (model, copy)]
    assert on[0] == on[1]
    assert copy.predict_proba(X).tolist() == model.predict_proba(X).tolist()


def test_a_damaged_memory_is_refused(tmp_path):
    X, y = table()
    path = tmp_path / "model"
    OnlineClassifier(**QUICK).fit(X, y).save(path)
    saved = SavedModel.read(path)
    header, arrays = unpack(saved.snapshot)
    long, mid = "experts.memory.long.", "experts.memory.mid."
    sources, leaves = arrays[f"{long}sources"], arrays[f"{mid}leaves"]
    for change in (
        {f"{long}sources": sources + 1},
        {f"{mid}leaves": leaves[:, :, :1].copy()},
        {f"{mid}leaves": leaves[1:].copy()},
        {f"{long}are_ranks": 1 - arrays[f"{long}are_ranks"]},
        {f"{long}features": arrays[f"{long}features"] + len(sources)},
        {"experts.memory.encoder.places": arrays["experts.memory.encoder.places"] + 9},
        {"experts.memory.stacks.n": arrays["experts.memory.stacks.n"] + 1},
        {"experts.memory.average.logs": arrays["experts.memory.average.logs"][1:].copy()},
        {"memory_chunk.0": arrays["memory_chunk.0"][1:].copy()},
        {"memory_chunk.0": arrays["memory_chunk.0"][:0].copy()},
    ):
        assert set(change) <= set(arrays)
        header.pop("format", None)
        saved._replace(snapshot=pack(header, arrays | change)).write(path)
        with pytest.raises(InvalidSnapshot):
            OnlineClassifier.load(path)


def test_without_memory_fit_learns_as_partial_fit_does():
    X, y = rings(400)
    for alone in ({"memory": 0}, {"committee": "single"}):
        fitted = OnlineClassifier(**QUICK, **alone, order="given").fit(X, y)
        in_parts = OnlineClassifier(**QUICK, **alone).partial_fit(X[:100], y[:100])
        in_parts.partial_fit(X[100:], y[100:])
        assert fitted.predict_proba(X).tolist() == in_parts.predict_proba(X).tolist()


@pytest.mark.parametrize("memory", [-1, 0.5, None, "all"])
def test_a_memory_that_is_no_number_of_rows_is_refused(memory):
    X, y = rings(200)
    with pytest.raises(InvalidConfig, match=r"^memory: "):
        OnlineClassifier(**QUICK, memory=memory).fit(X, y)


def test_few_rows_and_a_class_that_only_old_rows_have_are_learned():
    X, y = rings(103)
    y[3] = "rare"
    for n in (20, 99, 100, 103):
        model = OnlineClassifier(**QUICK, order="given").fit(X[:n], y[:n])
        assert (weights_of(model)["present"] == 1.0) == (n < 100)
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert (p > 0.0).all()


def test_values_of_any_kind_are_answered_as_gaps_if_they_are_new():
    frame, y = table()
    model = OnlineClassifier(**QUICK).fit(frame, y)
    strange = frame[:5].assign(
        unit=["oz", None, "kg", "stone", "lb"], v=[None, 1e300, 0.0, -1.0, 2.0]
    )
    p = model.predict_proba(strange)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert model.score(frame, y) > 0.5


def test_contributions_are_those_of_the_probabilities_with_memory():
    X, y = rings(600)
    model = OnlineClassifier(**QUICK).fit(X, y)
    row = X[:1]
    p = model.predict_proba(row)[0]
    for found in model.contributions(row)[0]:
        changed = row.copy()
        changed[0, found.feature] = found.typical
        effect = (p - model.predict_proba(changed)[0])[p.argmax()]
        assert found.effect == pytest.approx(effect, abs=1e-12)
