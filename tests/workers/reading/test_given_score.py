"""The score as it came is judged beside the answers, in status and in the report of a feed."""

import json

import numpy as np
import pytest

from online_svm import OnlinePredictor, PredictorConfig
from online_svm.stream.validity_report import ValidityReport
from workers.message.encode import encode_report
from workers.reading.facts import score_text

COUNT = 1200


@pytest.fixture(scope="module")
def feed():
    """Return scores that are too extreme, what happened, and the last report as a message."""
    rng = np.random.default_rng(5)
    odds = rng.normal(size=COUNT)
    happened = rng.random(COUNT) < 1 / (1 + np.exp(-odds))
    scores = 1 / (1 + np.exp(-4 * odds))
    predictor = OnlinePredictor(PredictorConfig(classes=["no", "yes"], scores="probability"))
    rows = predictor.schema.scores.rows(scores[:, None])
    labels = ["yes" if y else "no" for y in happened]
    found = predictor.step_many(rows, labels, schema=predictor.schema)
    last = [each for each in found if isinstance(each, ValidityReport)][-1]
    return scores, happened, json.loads(encode_report(last, COUNT))


def test_the_line_has_the_figures_of_the_score_itself(feed):
    scores, happened, message = feed
    first = COUNT - message["scored"]
    right = ((scores > 0.5) == happened)[first:].mean()
    announced = np.maximum(scores, 1 - scores)[first:].mean()
    loss = -np.log(np.where(happened, scores, 1 - scores))[first:].mean()
    text = score_text(message)
    shown = [f"{value:.3f}".lstrip("0") for value in (right, announced, loss)]
    assert text.startswith(f"as it came {shown[0]} right where {shown[1]} was announced, off by ")
    assert f"; log loss {shown[2]}, ours ." in text
    low, high = (float(word) for word in text.split("off by ")[1].split(";")[0].split(" to "))
    assert low < announced - right < high


def test_there_is_no_line_without_a_score_or_with_few_labels(feed):
    message = feed[2]
    assert score_text({**message, "scored": 99}) is None
    assert score_text({**message, "maps": {}}) is None
    assert score_text({}) is None


def test_a_score_that_is_right_is_not_called_off(feed):
    message = feed[2]
    ours = {**message["maps"], "score": message["headline"]}
    assert "not shown off" in score_text({**message, "maps": ours})
