"""Scores through the service and the library, in all three uses."""

import json

import numpy as np
import orjson
import pytest
from six_decimals import point

from online_svm import Example, OnlinePredictor

pytestmark = pytest.mark.servers("embedded")

COUNT = 240


def scored(count=COUNT, seed=0):
    """Return examples with features and scores; some lack a score, one in fifty has a bad one."""
    rng = np.random.default_rng(seed)
    examples = []
    for i in range(count):
        x = rng.normal(size=2).round(6)
        label = "b" if x[0] + rng.normal() > 0 else "a"
        score = float(np.round(1.0 / (1.0 + np.exp(-2.0 * x[0] - rng.normal())), 6))
        is_bad, is_absent = i % 50 == 7, i % 11 == 3
        examples.append(
            Example(
                {"u": x[0], "v": x[1]},
                label,
                score=7.0 if is_bad else None if is_absent else score,
                score_version="2" if i > count // 2 else None,
            )
        )
    return examples


def entries(examples):
    found = []
    for one in examples:
        fields = ["x", json.dumps(one.x), "y", one.y]
        if one.score is not None:
            fields += ["score", json.dumps(one.score)]
        if one.score_version is not None:
            fields += ["score_version", one.score_version]
        found.append(fields)
    return found


@pytest.mark.parametrize("use", ["alone", "member", "watched"])
def test_a_worker_answers_what_the_library_answers(world, use):
    examples = scored()
    made = world.beside("same", scores="probability", score_use=use)
    made.push(entries(examples))
    made.answer(batch=40)
    predictor = OnlinePredictor(made.settings.predictor)
    answers = [orjson.loads(payload) for _, payload in made.payloads()[0]]
    for i, (one, answer) in enumerate(zip(examples, answers, strict=True)):
        if i % 50 == 7:
            assert answer["code"] == "out_of_range"
            continue
        expected = predictor.step(one)
        assert answer["probabilities"] == point(expected.probabilities)
        assert answer["maps"] == {k: point(v) for k, v in (expected.maps or {}).items()}
    assert answers[-1]["maps"]["score"][1] == pytest.approx(examples[-1].score, abs=1e-6)


def test_scores_are_pushed_from_a_table_and_reported(world, tmp_path):
    rows = tmp_path / "scored.csv"
    examples = [one for one in scored() if one.score != 7.0]
    lines = [f"{e.score if e.score is not None else ''},{e.y}" for e in examples]
    rows.write_text("\n".join(["s,y", *lines]))
    made = world.beside("pushed", scores="probability")
    pushed = ("push", made.feed, str(rows), "--score", "s", "--label", "y")
    assert made.run(*pushed)[0] == 0
    made.pushed = len(examples)
    made.answer()
    _, reports = made.payloads()
    last = orjson.loads(reports[-1][1])
    assert last["maps"]["score"]["log_loss"] > 0.0
    assert made.run("verify", made.feed)[0] == 0


def test_a_feed_without_scores_rejects_the_field_as_before(world):
    world.push([["x", "[1, 2, 3]", "score", "0.5", "y", "a"]])
    world.answer()
    (answer,) = [orjson.loads(payload) for _, payload in world.payloads()[0]]
    assert answer["about"]["case"] == "field_unknown"
