"""Scores that another model gives, in the three uses: versions and gaps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from predictor_answers import rows

from online_svm import Example, OnlinePredictor, PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.predictor.frozen_predictor import FrozenPredictor
from online_svm.stream.alarm import Alarm
from online_svm.stream.guarantee_reason import GuaranteeReason
from online_svm.stream.schema import FeatureSchema
from online_svm.stream.scores import ScoreColumns
from online_svm.stream.validity_report import ValidityReport

USES = ("alone", "member", "watched")
COUNT = 260


def config(use="alone", **further):
    settings = {"classes": ["a", "b"], "scores": "probability", "score_use": use}
    return PredictorConfig(**settings | {"refit_every": 40, "metrics_every": 50} | further)


def stream(count=COUNT, seed=0):
    """Return examples with features, scores that some lack, and a new version at half."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 2))
    odds = x[:, 0] + 0.5 * rng.normal(size=count)
    labels = np.where(rng.uniform(size=count) < 1.0 / (1.0 + np.exp(-2.0 * odds)), "b", "a")
    examples = []
    for i in range(count):
        is_new = i >= count // 2
        score = 1.0 / (1.0 + np.exp(-(3.0 * odds[i] - 4.0 if is_new else odds[i])))
        examples.append(
            Example(
                x[i],
                labels[i],
                id=str(i),
                score=None if i % 17 == 5 else score,
                score_version="new" if is_new else None,
            )
        )
    return examples


def rows_of(examples, schema):
    """Return the rows of examples, and the schema that knows their features."""
    found = []
    for one in examples:
        x = schema.scored(one.x, one.score, one.score_version)
        schema = schema.knowing(x)
        found.append(schema.row(x))
    return np.array(found), schema


@pytest.mark.parametrize("use", USES)
def test_a_frozen_predictor_answers_what_the_predictor_answers(use):
    conf, examples = config(use), stream()
    predictor = OnlinePredictor(conf)
    for one in examples[:200]:
        predictor.step(one)
    frozen = FrozenPredictor.restore(predictor.frozen().snapshot(), conf)
    asked = [*examples[200:205], Example([0.1, 0.2]), Example([0.1, 0.2], score=0.3)]
    for one in asked:
        x = frozen.schema.scored(one.x, one.score, one.score_version)
        answer = frozen.answer(frozen.schema.row(x)[None, :]).row(0)
        unlabelled = Example(one.x, score=one.score, score_version=one.score_version)
        other = OnlinePredictor(conf)
        other.restore(predictor.snapshot())
        assert answer == other.step(unlabelled)


def probabilities(conf, examples):
    X, schema = rows_of(examples, FeatureSchema(conf))
    found = OnlinePredictor(conf).step_many(X, [one.y for one in examples], schema=schema)
    return np.array([row.probabilities for row in rows(found)])[:, 1]


def loss(p, examples):
    is_second = np.array([one.y == "b" for one in examples])
    return -np.log(np.where(is_second, p, 1.0 - p))


def test_a_score_alone_ignores_features_and_a_watched_score_changes_no_answer():
    examples = stream()
    bare = [Example(None, e.y, score=e.score, score_version=e.score_version) for e in examples]
    assert np.array_equal(probabilities(config(), examples), probabilities(config(), bare))
    watched = config("watched")
    without = [Example(one.x, one.y) for one in examples]
    assert np.array_equal(probabilities(watched, examples), probabilities(watched, without))


def test_the_stated_probability_is_reported_beside_the_answers():
    examples = [Example(e.x, e.y, score=0.9 if e.score is None else e.score) for e in stream()]
    for use in USES:
        predictor = OnlinePredictor(config(use))
        answers = [predictor.step(one) for one in examples]
        assert answers[-1].maps["score"][1] == pytest.approx(examples[-1].score)
    X, schema = rows_of(examples, FeatureSchema(config()))
    found = OnlinePredictor(config()).step_many(X, [one.y for one in examples], schema=schema)
    last = [one for one in found if isinstance(one, ValidityReport)][-1]
    assert last.maps["score"].log_loss > last.headline.log_loss


def test_the_monitors_test_a_watched_score_in_place_of_the_answers():
    rng = np.random.default_rng(0)
    examples = []
    for i in range(600):
        x = rng.normal(size=2)
        label = "b" if rng.uniform() < 1.0 / (1.0 + np.exp(-x[0])) else "a"
        score = 1.0 / (1.0 + np.exp(-x[0] - (2.0 if i >= 200 else 0.0)))
        examples.append(Example(x, label, score=score))
    alarms = {}
    for use in USES:
        predictor = OnlinePredictor(config(use))
        X, schema = rows_of(examples, FeatureSchema(config(use)))
        found = predictor.step_many(X, [one.y for one in examples], schema=schema)
        alarms[use] = {one.kind for one in found if isinstance(one, Alarm)}
    assert "calibration" in alarms["watched"]
    assert "calibration" not in alarms["member"]


def test_a_missing_score_is_answered_and_counted():
    predictor = OnlinePredictor(config(metrics_every=1000))
    for one in stream():
        predictor.step(one)
    missing, sent = predictor.step(Example()), predictor.step(Example(score=0.4))
    assert missing.imputed == sent.imputed + 1
    assert abs(missing.probabilities[1] - 0.5) < 0.2
    lower, upper = missing.venn[1]
    assert lower <= missing.maps["score"][1] <= upper


def test_scores_of_an_earlier_version_keep_their_calibration():
    rng = np.random.default_rng(1)
    examples = []
    for i in range(1800):
        odds = 1.5 * rng.normal()
        label = "b" if rng.uniform() < 1.0 / (1.0 + np.exp(-odds)) else "a"
        is_new = 600 <= i < 1200
        score = 1.0 / (1.0 + np.exp(-(0.3 * odds - 2.0 if is_new else odds)))
        examples.append(Example(None, label, score=score, score_version=int(is_new)))
    found = loss(probabilities(config(refit_every=250), examples), examples)
    unnamed = [Example(None, e.y, score=e.score) for e in examples]
    without = loss(probabilities(config(refit_every=250), unnamed), unnamed)
    for begin in (600, 1200):  # soon after each change
        assert found[begin + 60 : begin + 300].mean() < without[begin + 60 : begin + 300].mean()


def test_a_score_is_checked_before_anything_is_learned():
    predictor = OnlinePredictor(config("member"))
    predictor.step(Example([1.0, 2.0], "a", score=0.5))
    before = predictor.snapshot()
    for one, reason in [
        (Example([1.0], "a", score=-0.1), "score is -0.1"),
        (Example([1.0], "a", score="high"), "neither a number"),
        (Example([1.0], "a", score=float("inf")), "not finite"),
        (Example([1.0], "a", score=[0.1, 0.2, 0.7]), "neither a number"),
        (Example([1.0], "a", score={"a": 0.1}), "neither a number"),
        (Example({"score": 1.0}, "a", score=0.1), "rename it"),
        (Example([1.0], "a", score=0.1, score_version=1.5), "version of a score"),
        (Example([1.0], "a", score=0.1, score_version="v" * 65), "version of a score"),
    ]:
        with pytest.raises(InvalidExample, match=reason):
            predictor.step(one)
    assert predictor.snapshot() == before
    with pytest.raises(InvalidExample, match="set scores"):
        OnlinePredictor(PredictorConfig()).step(Example([1.0], score=0.1))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"classes": None}, "declare the classes"),
        ({"features": 3}, "features"),
        ({"features": {"score": "number"}}, "features"),
        ({"scores": None}, "set scores"),
        ({"scores": "margin", "score_use": "watched"}, "watched"),
        ({"committee": "single"}, "committee"),
        ({"score_use": "member", "committee": "single"}, "committee"),
    ],
)
def test_settings_that_do_not_work_with_scores_are_refused(changes, reason):
    with pytest.raises(ValueError, match=reason):
        config(**changes)


@given(st.lists(st.lists(st.floats(0.001, 1.0), min_size=3, max_size=3), min_size=1, max_size=5))
def test_stated_probabilities_return_from_a_row(scores):
    conf = PredictorConfig(classes=["a", "b", "c"], scores="probability")
    columns, given_scores = ScoreColumns.of(conf), np.array(scores)
    found = columns.probabilities(columns.rows(given_scores))
    assert found == pytest.approx(given_scores / given_scores.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("use", USES)
def test_the_guarantee_is_exact_only_where_the_scored_model_is_fixed(use):
    found = {}
    for model in (None, "learning", "fixed"):
        given = {"scores": "probability", "score_use": use, "score_model": model, "monitors": "off"}
        predictor = OnlinePredictor(PredictorConfig(classes=("a", "b"), **given))
        generator = np.random.default_rng(1)
        for i in range(120):
            x, score = generator.normal(size=2).tolist(), float(generator.random())
            label = "ab"[int(generator.random() < score)]
            version = "1" if i < 60 else "2"  # an exchange is told by its version
            answer = predictor.step(Example(x, label, score=score, score_version=version))
        found[model] = (answer.guarantee, answer.reason)
    assert found["fixed"] == ("exact", None)
    other = ("approximate", str(GuaranteeReason("score_model")))
    assert found[None] == found["learning"] == (found["fixed"] if use == "watched" else other)


def test_a_model_that_is_fixed_needs_scores():
    with pytest.raises(ValueError, match="score_model: set scores"):
        PredictorConfig(classes=("a", "b"), score_model="fixed")
