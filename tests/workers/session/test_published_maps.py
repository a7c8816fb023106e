"""A feed that publishes maps beyond the default ones, through the whole worker."""

import json

import numpy as np
import pytest
from session_steps import OwnRefits
from world import work

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import Example
from workers.admin.verify import verify
from workers.broker.store import Store
from workers.message.encode import encode_block
from workers.message.schema import PredictionMessage

COUNT = 150
CONFIG = PredictorConfig(
    classes=("a", "b", "c"), maps=("mixed", "implied", "evidential-logistic"),
    split="crossfit", window=60, refit_every=20, metrics_every=50,
)  # fmt: skip
SETTINGS = {
    "classes": "a,b,c", "maps": "mixed,implied,evidential-logistic",
    "split": "crossfit", "window": "60", "refit_every": "20", "metrics_every": "50",
}  # fmt: skip


@pytest.fixture(scope="module")
def stream():
    generator = np.random.default_rng(2)
    codes = generator.integers(0, 3, COUNT)
    X = (generator.normal(size=(COUNT, 2)) + codes[:, None]).round(6)
    return X, ["abc"[code] for code in codes]


def answers(store):
    return [entry[1][1] for page in store.pages(store.keys.out, b"0-0") for entry in page]


@pytest.fixture
def one_store(embedded_url, feed):
    """What differs between servers is not tested here."""
    with Store(embedded_url, feed) as store:
        yield store


def test_a_feed_answers_with_the_maps_it_is_asked_for(one_store, stream, tmp_path):
    (X, labels), store = stream, one_store
    for i in range(COUNT):
        x = json.dumps(X[i].tolist())
        store.call("XADD", store.keys.input, f"{i + 1}-0", "x", x, "y", labels[i])
    work(store.url, store.keys.feed, SETTINGS, COUNT)
    predictor = OnlinePredictor(CONFIG)
    expected = []
    for x, label in zip(X, labels, strict=True):
        block = predictor.step_many(x[None, :], [label])[0]
        expected += encode_block(block, [len(expected)], [None])
    assert answers(store) == expected
    last = PredictionMessage.model_validate_json(answers(store)[-1])
    assert list(last.maps) == ["implied", "evidential-logistic", "mixed"]
    assert list(last.map_intervals) == ["evidential-logistic"]
    assert verify(store).is_identical


def test_a_refit_in_another_process_gives_the_same_banks(stream):
    X, labels = stream
    inline = OnlinePredictor(CONFIG)
    with OwnRefits(CONFIG) as refitter:
        apart = OnlinePredictor(CONFIG, refitter)
        for x, label in zip(X, labels, strict=True):
            assert apart.step(Example(x, label)) == inline.step(Example(x, label))
        assert apart.snapshot() == inline.snapshot()
