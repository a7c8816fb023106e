"""Scores with few distinct values, as words of a language model: ties through every door."""

import json

import numpy as np
import orjson
import pytest
from river import base
from six_decimals import point

from online_svm import Example, OnlineCalibrator, OnlinePredictor, PredictorConfig
from online_svm.river import calibrate

pytestmark = pytest.mark.servers("embedded")

LEVELS, OFTEN = np.array([0.25, 0.5, 0.75, 0.95]), [0.03, 0.03, 0.04, 0.9]
RIGHT = np.array([0.1, 0.35, 0.6, 0.85])
"""How often each level is right."""


def tied(count=1500, seed=0):
    """Return scores, of which nine in ten are .95, and labels."""
    rng = np.random.default_rng(seed)
    drawn = rng.choice(4, count, p=OFTEN)
    return LEVELS[drawn], rng.random(count) < RIGHT[drawn]


class Stated(base.Classifier):
    """A classifier of river that states what an example has, and learns nothing."""

    def learn_one(self, x, y):
        pass

    def predict_proba_one(self, x):
        return {False: 1.0 - x["score"], True: x["score"]}


def test_equal_scores_have_equal_answers_in_one_state():
    scores, y = tied()
    model = OnlineCalibrator().partial_fit(scores, y)
    asked = model.predict_proba(scores)
    assert len(np.unique(asked, axis=0)) == len(LEVELS)
    assert (np.diff(model.predict_proba(LEVELS)[:, 1]) > 0.0).all()
    intervals = model.predict_interval(scores)
    assert len(np.unique(intervals.reshape(len(scores), -1), axis=0)) == len(LEVELS)


def test_a_level_of_most_scores_is_calibrated_to_its_frequency():
    scores, y = tied(4000)
    model = OnlineCalibrator(window=None).partial_fit(scores, y)
    frequency = y[scores == 0.95].mean()
    lower, upper = model.predict_interval([0.95])[0, 1]
    assert model.predict_proba([0.95])[0, 1] == pytest.approx(frequency, abs=0.06)
    assert lower < frequency < upper


def test_one_value_alone_is_answered_by_the_base_rate():
    y = np.random.default_rng(1).random(800) < 0.7
    found = OnlineCalibrator().partial_fit(np.full(800, 0.95), y).predict_proba([0.95])
    assert found[0, 1] == pytest.approx(y.mean(), abs=0.06)


def test_every_door_of_the_library_gives_the_same_answers():
    scores, y = tied(500)
    before = OnlineCalibrator().progressive_proba(scores, y, classes=[False, True])[:, 1]
    one, table = OnlineCalibrator(), OnlineCalibrator()
    one.partial_fit(scores[:1], y[:1], classes=[False, True])
    for score, label in zip(scores[1:], y[1:], strict=True):
        one.update_one(score, label)
    table.partial_fit(scores, y)
    predictor = OnlinePredictor(PredictorConfig(classes=["no", "yes"], scores="probability"))
    live = calibrate(Stated())
    for i, (score, label) in enumerate(zip(scores, y, strict=True)):
        stepped = predictor.step(Example(score=score, y="yes" if label else "no"))
        assert stepped.probabilities[1] == before[i] == live.predict_proba_one({"score": score})[1]
        live.learn_one({"score": score}, bool(label))
    points = [model.predict_proba(LEVELS).tolist() for model in (one, table)]
    points.append([[*live.predict_proba_one({"score": s}).values()] for s in LEVELS])
    points.append([[*predictor.step(Example(score=s)).probabilities] for s in LEVELS])
    assert points.count(points[0]) == len(points)


@pytest.mark.parametrize("form", [lambda u: [u], lambda u: {"u": u}], ids=["array", "named"])
@pytest.mark.parametrize("use", ["alone", "member", "watched"])
def test_a_feed_gives_the_answers_of_the_library(world, use, form):
    scores, y = tied(300)
    x = np.random.default_rng(2).normal(size=len(y)).round(6)
    feed = world.beside("tied", scores="probability", score_use=use, classes=("no", "yes"))
    rows = list(zip(x, np.where(y, "yes", "no").tolist(), scores.tolist(), strict=True))
    feed.push([["x", json.dumps(form(u)), "y", label, "score", str(s)] for u, label, s in rows])
    feed.answer(batch=37)
    predictor = OnlinePredictor(feed.settings.predictor)
    for (u, label, score), (_, payload) in zip(rows, feed.payloads()[0], strict=True):
        expected = predictor.step(Example(form(u), label, score=score))
        assert orjson.loads(payload)["probabilities"] == point(expected.probabilities)


def test_scores_are_pushed_from_a_table_and_reported(world, tmp_path):
    path, (scores, y) = tmp_path / "scored.csv", tied(240)
    shown = ["" if i % 11 == 3 else str(score) for i, score in enumerate(scores)]
    lines = [f"{score},{'ab'[hit]}" for score, hit in zip(shown, y.astype(int), strict=True)]
    path.write_text("\n".join(["s,y", *lines]))
    feed = world.beside("pushed", scores="probability")
    assert feed.run("push", feed.feed, path, "--score", "s", "--label", "y")[0] == 0
    feed.pushed = len(lines)
    feed.answer()
    _, reports = feed.payloads()
    assert orjson.loads(reports[-1][1])["maps"]["score"]["log_loss"] > 0.0
    assert feed.run("verify", feed.feed)[0] == 0


@pytest.mark.parametrize("classes", [["a", "b", "c"], ["a", "b"]])
def test_scores_that_tie_between_classes_take_no_side(classes):
    y = np.random.default_rng(3).choice(classes, 600)
    level = [1 / len(classes)] * len(classes)
    model = OnlineCalibrator().partial_fit(np.tile(level, (600, 1)), y)
    found = model.predict_proba([level])[0]
    shares = [(y == label).mean() for label in classes]
    assert found == pytest.approx(shares, abs=0.05)
