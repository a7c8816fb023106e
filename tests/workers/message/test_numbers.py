"""The numbers of a payload: whole millionths in order, sums of one, small, and made again."""

import json
from dataclasses import replace
from math import isclose

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prediction_blocks import blocks

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from workers.message.encode import dumps, encode_block

OF_CLASSES = ("lower", "upper", "probability", "probabilities", "intervals", "venn", "maps",
              "map_intervals")  # fmt: skip


def each(value):
    """Yield the numbers of nested lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from each(part)
    elif value is not None:
        yield value


def messages(block):
    return [orjson.loads(p) for p in encode_block(block, range(len(block)), [None] * len(block))]


@settings(max_examples=80, deadline=None)
@given(block=blocks())
def test_numbers_of_classes_are_millionths_and_make_the_same_bytes(block):
    for payload in encode_block(block, range(len(block)), [None] * len(block)):
        message = orjson.loads(payload)
        for name in OF_CLASSES:
            for number in each(message.get(name)):
                stored = np.int32(round(number * 1e6))
                assert int(stored) / 1e6 == number
                assert str(number)[0] != "-"
        assert dumps(message) == payload


@st.composite
def distributions(draw):
    """Draw a block whose rows are distributions inside their intervals."""
    block = draw(blocks())
    raw = np.maximum(block.point, 1e-9) ** draw(st.sampled_from([1, 9]))
    point = raw / raw.sum(axis=1, keepdims=True)
    wide = np.array(draw(st.lists(st.floats(0, 1), min_size=point.size, max_size=point.size)))
    lower = point * wide.reshape(point.shape)
    return replace(block, point=point, lower=lower, upper=1 - (1 - point) * (1 - lower))


@settings(max_examples=200, deadline=None)
@given(block=distributions())
def test_rounded_distributions_sum_to_one_inside_their_intervals(block):
    for i, message in enumerate(messages(block)):
        found = message["probabilities"]
        assert sum(round(number * 1e6) for number in found) == 1_000_000
        for k, (lower, upper) in enumerate(message["intervals"]):
            assert 0 <= lower <= found[k] <= upper <= 1
            assert abs(found[k] - block.point[i, k]) <= 1.0001e-6
            assert abs(lower - block.lower[i, k]) <= 1.0001e-6
        assert message["lower"] <= message["probability"] <= message["upper"]


def answers(classes=("ham", "spam"), count=2300, **settings):
    """Return answers of a feed with today's defaults, after a long while."""
    rng, k = np.random.default_rng(0), len(classes)
    X = rng.normal(size=(count, 4))
    y = np.argmax(X[:, :k] + rng.normal(size=(count, k)), axis=1)
    predictor, found = OnlinePredictor(PredictorConfig(classes=classes, **settings)), []
    for block in predictor.step_many(X, [classes[k] for k in y]):
        if isinstance(block, PredictionBlock) and block.n[0] > count - 300:
            rows = range(10**7, 10**7 + len(block))
            found += encode_block(block, rows, [f"tx-{i}" for i in rows])
    return found


@pytest.mark.parametrize(("options", "most"), [({}, 600), ({"maps": ()}, 500)])
def test_an_answer_of_two_classes_is_small(options, most):
    found = answers(**options)
    assert len(found) > 200
    assert max(map(len, found)) <= most


def test_two_classes_are_each_others_complement():
    for payload in answers(count=400):
        message = json.loads(payload)
        if message["status"] == "ok":
            first, second = message["probabilities"]
            assert isclose(first + second, 1.0, abs_tol=1e-12)
            (lower, upper), (other_lower, other_upper) = message["intervals"]
            assert isclose(lower, 1 - other_upper, abs_tol=1e-6)
            assert isclose(upper, 1 - other_lower, abs_tol=1e-6)
