"""A worker of a feed and an estimator with the same settings give the same bytes."""

import json

import numpy as np
import orjson
import pandas as pd
import pytest

from online_svm import OnlineClassifier

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
    world = world.beside("same", **QUICK, classes=("0", "1", "2"), gamma="scale", refit_lag=39)
    labelled = [
        ["x", text, "y", str(label)] for text, label in zip(texts, y[:LEARNED], strict=False)
    ]
    world.push([*labelled, *(["x", text] for text in texts[LEARNED:])])
    world.work()

    model = OnlineClassifier(**QUICK, settings={"refit_lag": 39, "metrics_every": 10})
    before = model.progressive_proba(X[:LEARNED], y[:LEARNED])
    points = [*before, *model.predict_proba(X[LEARNED:])]
    answers = [payload for _, payload in world.payloads()[0]]
    assert len(answers) == COUNT
    for payload, point in zip(answers, points, strict=True):
        if orjson.loads(payload)["status"] == "ok":
            assert b'"probabilities":' + orjson.dumps(point.tolist()) in payload
    asked = answers[LEARNED:]
    for payload, interval in zip(asked, model.predict_interval(X[LEARNED:]), strict=True):
        assert b'"intervals":' + orjson.dumps(interval.tolist()) in payload
    labels = [json.loads(payload)["label"] for payload in asked]
    assert labels == [*map(str, model.predict(X[LEARNED:]))]
    assert sum(json.loads(payload)["status"] == "ok" for payload in answers) > 210
