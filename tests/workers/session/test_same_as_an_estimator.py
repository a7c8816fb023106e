"""A worker of a feed and an estimator with the same settings give the same bytes."""

import json

import numpy as np
import orjson
import pandas as pd
import pytest
from six_decimals import point

from online_svm import OnlineClassifier
from online_svm.errors import InvalidInput
from workers.recording.backup import backup

QUICK = {"window": 120, "refit_every": 40, "seed": 3}
COUNT, LEARNED = 240, 200


def table():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, COUNT)
    frame = pd.DataFrame(rng.normal(size=(COUNT, 2)).round(6) + y[:, None], columns=["v", "a"])
    frame["unit"] = rng.choice(["kg", "lb", "t"], COUNT)
    frame.loc[rng.random(COUNT) < 0.1, "v"] = None
    return frame, y


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.servers("embedded")
def test_a_feed_and_an_estimator_answer_with_the_same_bytes(world, named):
    frame, y = table()
    X = frame if named else frame[["a"]].to_numpy()
    rows = frame.to_dict("records") if named else X.tolist()
    texts = [json.dumps(row).replace("NaN", "null") for row in rows]
    world = world.beside("same", **QUICK, classes=("0", "1", "2"), gamma="scale")
    labelled = [
        ["x", text, "y", str(label)] for text, label in zip(texts, y[:LEARNED], strict=False)
    ]
    world.push([*labelled, *(["x", text] for text in texts[LEARNED:])])
    world.work()

    model = OnlineClassifier(**QUICK, settings={"metrics_every": 10})
    before = model.progressive_proba(X[:LEARNED], y[:LEARNED])
    points = [*before, *model.predict_proba(X[LEARNED:])]
    answers = [payload for _, payload in world.payloads()[0]]
    assert len(answers) == COUNT
    for payload, exact in zip(answers, points, strict=True):
        if orjson.loads(payload)["status"] == "ok":
            assert b'"probabilities":' + orjson.dumps(point(exact.tolist())) in payload
    asked = answers[LEARNED:]
    for payload, interval in zip(asked, model.predict_interval(X[LEARNED:]), strict=True):
        told = orjson.loads(payload)["intervals"]
        assert np.abs(np.array(told) - interval).max() <= 1.0001e-6
    labels = [json.loads(payload)["label"] for payload in asked]
    assert labels == [*map(str, model.predict(X[LEARNED:]))]
    assert sum(json.loads(payload)["status"] == "ok" for payload in answers) > 210


@pytest.mark.parametrize("classes", [("0", "1", "2"), None])
@pytest.mark.servers("embedded")
def test_an_estimator_goes_on_from_a_backup_of_a_feed(world, tmp_path, classes):
    frame, y = table()
    texts = [json.dumps(row).replace("NaN", "null") for row in frame.to_dict("records")]
    given = {**QUICK, "labels": "integer", "committee": "single"}
    world = world.beside("backed-up", **given, classes=classes)
    file = tmp_path / "feed.backup"
    entries = [["x", text, "y", str(label)] for text, label in zip(texts, y, strict=True)]
    world.push(entries[:LEARNED])
    world.answer().snapshot()
    backup(world.store, file)
    model = OnlineClassifier.load(file)
    assert model.get_params()["window"] == 120
    assert (model.classes_.dtype.kind, model.classes_.tolist()) == ("i", [0, 1, 2])
    assert model.feature_names_in_.tolist() == ["a", "unit", "v"]

    world.push(entries[LEARNED:])
    world.answer()
    answers = [json.loads(payload) for _, payload in world.payloads()[0][LEARNED:]]
    rows = frame[["a", "unit", "v"]][LEARNED:]
    found = model.progressive_proba(rows, y[LEARNED:])
    told = np.array([answer["probabilities"] for answer in answers])
    known = told[:, :3]  # without declared classes, the last is of labels that were never met
    shares = known if classes else known / known.sum(axis=1, keepdims=True)
    assert np.abs(found - shares).max() <= 2e-6  # the answers have six decimals
    model.save(tmp_path / "model")
    again = OnlineClassifier.load(tmp_path / "model")
    assert again.predict_proba(rows).tolist() == model.predict_proba(rows).tolist()


@pytest.mark.servers("embedded")
def test_a_backup_of_a_feed_whose_labels_come_late_is_asked_and_not_taught(world, tmp_path):
    world = world.beside("late", horizon=20, classes=("a", "b"), **QUICK)
    world.push(150)
    world.answer().snapshot()
    backup(world.store, tmp_path / "backup")
    model = OnlineClassifier.load(tmp_path / "backup")
    assert model.predict([[2.0, 0.0, 0.0]]).tolist() == ["b"]
    with pytest.raises(InvalidInput, match="the feed has a horizon"):
        model.partial_fit([[2.0, 0.0, 0.0]], ["b"])
