"""The compact form against the full one: what it keeps, derives and leaves out."""

import json
from dataclasses import replace
from typing import get_args

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prediction_blocks import blocks, ids

from online_svm.config import PredictorConfig
from online_svm.predictor.active_model import ARRIVAL, CROSSFIT, SELECTED
from online_svm.predictor.expert_ensemble import EXPERTS
from online_svm.predictor.frozen_predictor import warming_block
from online_svm.predictor.guarantee import CENSORED, UNLABELLED
from online_svm.predictor.joint_prediction import JointPrediction
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.pair_prediction import PairPrediction
from online_svm.stream.answer_columns import COLUMNS, Guarantee
from online_svm.stream.prediction import PredictionBlock
from workers.message.compact import (
    ABSENT,
    BUDGET_FIELDS,
    COMPACT_KEY,
    CONSTANTS,
    COUNT_FIELDS,
    DECISION_FIELDS,
    DERIVED,
    NUMBERS,
    ROWS,
    TEXTS,
    parse,
)
from workers.message.compact_encode import encode_compact
from workers.message.encode import encode_block
from workers.message.schema import CompactMessage

HALF = 0.5000001e-6  # of the last decimal


def numbers_of(value):
    """Return the numbers of nested lists, in order."""
    return [x for part in value for x in numbers_of(part)] if isinstance(value, list) else [value]


def is_close(found, told):
    """Return whether a number is that of the full answer, rounded to six decimals."""
    return found == told if abs(told) >= 1e9 else abs(found - told) <= HALF


@settings(max_examples=60, deadline=None)
@given(block=blocks(), data=st.data())
def test_an_expanded_answer_is_the_full_one_rounded_and_without_its_maps(block, data):
    seqs = [int(n) + 3 for n in block.n]
    names = data.draw(st.lists(ids, min_size=len(block), max_size=len(block)))
    full = map(orjson.loads, encode_block(block, seqs, names))
    for told, payload in zip(full, encode_compact(block, seqs, names), strict=True):
        found = parse(payload)
        assert found.pop("payload") == "compact"
        assert found.pop("maps") == {}
        told = {name: value for name, value in told.items() if name not in ABSENT}
        assert list(found) == list(told)
        two = len(told["classes"]) == 2
        for name in ("probabilities", "intervals", "venn"):
            numbers, exact = (numbers_of(message.pop(name)) for message in (found, told))
            if two:  # the first class has what the second leaves; the drawn ones need not agree
                half = len(numbers) // 2
                assert np.allclose(numbers[:half], 1 - np.array(numbers[half:])[::-1], atol=1e-12)
                numbers, exact = numbers[half:], exact[half:]
            assert all(map(is_close, numbers, exact))
        own = ("lower", "upper", "probability")
        if two and told["label"] == told["classes"][0]:
            found, told = ({k: v for k, v in m.items() if k not in own} for m in (found, told))
        for name in told:
            if name in own:
                assert is_close(found[name], told[name])
            elif name == "scores":
                assert all(map(is_close, found[name], told[name]))
            else:
                assert found[name] == told[name], name


def test_compact_numbers_are_those_of_the_full_answer():
    full, compact = of_a_feed(("a", "b"), encode_block), of_a_feed(("a", "b"), encode_compact)
    answered = 0
    for told, found in zip(map(orjson.loads, full), map(parse, compact), strict=True):
        assert found["label"] == told["label"]
        answered += told["status"] == "ok"
        for name in ("probabilities", "intervals", "venn"):
            both = zip(numbers_of(found[name]), numbers_of(told[name]), strict=True)
            assert all(abs(x - y) <= 1e-6 for x, y in both)
        assert found["lower"] <= (found["probability"] or 0) <= found["upper"]
    assert answered > 100


def of_a_feed(classes, encode, count=160):
    """Return the payloads of a small stream, made by `encode`; without classes, they are found."""
    names = classes or ("ham", "spam")
    config = PredictorConfig(
        classes=classes, window=80, refit_every=20, refit_lag=0, gamma=0.5, features=2
    )
    X = np.random.default_rng(0).normal(size=(count, 2))
    y = [names[int(abs(7 * x)) % len(names)] for x in X[:, 0]]
    predictor, found = OnlinePredictor(config), []
    for block in predictor.step_many(X, y):
        if isinstance(block, PredictionBlock):
            rows = range(len(found), len(found) + len(block))
            found += encode(block, rows, [f"tx-{10**6 + i}" for i in rows])
    return found


def test_compact_answers_stay_below_200_and_400_bytes():
    for classes, most in ((("ham", "spam"), 150), (None, 200), (tuple("abcdefg"), 400)):
        found = [p for p in of_a_feed(classes, encode_compact) if COMPACT_KEY in json.loads(p)]
        full = of_a_feed(classes, encode_block)
        assert len(found) > 100
        assert max(map(len, found)) < most < len(full[-1])


def test_while_warming_up_an_answer_has_the_full_form():
    block = warming_block(("a", "b"), np.arange(3))
    given = (block, range(3), ["x", None, None])
    assert encode_compact(*given) == encode_block(*given)
    full, compact = of_a_feed(("a", "b"), encode_block), of_a_feed(("a", "b"), encode_compact)
    warming = [payload for payload in full if json.loads(payload)["status"] == "warming"]
    assert compact[: len(warming)] == warming
    assert json.loads(warming[0])["probabilities"]


def test_every_field_of_an_answer_is_kept_derived_or_left_out():
    kept = {place.name for place in (*ROWS, *CONSTANTS, *NUMBERS)}
    names = {column.name for column in COLUMNS}
    beside = {*DECISION_FIELDS, *BUDGET_FIELDS, *COUNT_FIELDS}
    assert kept | set(ABSENT) | set(DERIVED) | beside == names | {"status"}
    assert not kept & set(ABSENT)
    assert set(DERIVED) & kept == {"label", "svm_label"}  # as an index: the text is derived


@settings(max_examples=50)
@given(block=blocks())
def test_a_compact_answer_is_as_the_schema_says(block):
    for payload in encode_compact(block, range(len(block)), [None] * len(block)):
        assert CompactMessage.model_validate_json(payload).payload() == payload


@pytest.mark.parametrize("name", ["scores", "point", "upper", "venn_lower"])
def test_a_number_that_is_not_finite_is_never_published(name):
    block = answered_block()
    broken = getattr(block, name).copy()
    broken[0, -1] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        encode_compact(replace(block, **{name: broken}), range(len(block)), [None] * len(block))


def test_the_texts_with_a_number_are_those_that_answers_have():
    reasons = (SELECTED, ARRIVAL, CROSSFIT, UNLABELLED, CENSORED)
    assert set(TEXTS[7:12]) == set(reasons)
    assert TEXTS[12:] == (EXPERTS,)
    assert TEXTS[:3] == get_args(Guarantee)
    assert {PairPrediction.method, JointPrediction.method} == set(TEXTS[4:6])
    undeclared = parse(of_a_feed(None, encode_compact)[-1])
    assert undeclared["reason"] == TEXTS[6]
    assert len(set(TEXTS)) == len(TEXTS)


@pytest.mark.parametrize("text", [*TEXTS, "an alarm is open", "6", None])
def test_a_text_comes_back_whether_it_has_a_number_or_not(text):
    block = replace(answered_block(), reason=text, method=text)
    for payload in encode_compact(block, range(len(block)), [None] * len(block)):
        found = parse(payload)
        assert (found["reason"], found["method"]) == (text, text)


def answered_block():
    config = PredictorConfig(
        classes=("a", "b"), window=40, refit_every=20, refit_lag=0, gamma=0.5, features=1
    )
    X = np.random.default_rng(1).normal(size=(40, 1))
    found = OnlinePredictor(config).step_many(X, ["ab"[int(x > 0)] for x in X[:, 0]])
    return [b for b in found if isinstance(b, PredictionBlock)][-1]
