"""`worker`: the answers of the predictor, and how far it came."""

import orjson
from answered_feed import ROWS, phishing

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import Example
from workers.broker.store import Store
from workers.reading.answers import newest, payload


def test_the_worker_answers_as_the_predictor_does_in_process(answered, redis_url):
    feed, _ = answered
    config = PredictorConfig(
        classes=["true", "false"], window=200, refit_every=50, refit_lag=0, metrics_every=40
    )
    predictor = OnlinePredictor(config)
    with Store(redis_url, feed) as store:
        payloads = [payload(e) for e in newest(store, store.keys.out, 1000)]
    for row, answered_with in zip(phishing(), payloads, strict=False):
        prediction = predictor.step(Example(row.x, row.y))
        message = orjson.loads(answered_with)
        assert message["label"] == prediction.label
        assert message["probabilities"] == list(prediction.probabilities)
        assert message["scores"] == list(prediction.scores)
    assert orjson.loads(payloads[-1])["status"] == "rejected"


def test_the_worker_tells_how_far_it_came_and_where_it_stopped(answered):
    _, told = answered
    counts = f"{ROWS + 1} answered, {ROWS} learned, 1 rejected"
    assert f"{counts} (online-svm tail answered --stream dlq), stopped" in told
    assert "accuracy" in told
