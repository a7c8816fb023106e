"""Payloads: the same bytes as the slow way through the schema gives."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prediction_blocks import blocks, ids
from six_decimals import rounded

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.predictor.active_model import warming_block
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import LabelReport, MethodReport, ValidityReport
from workers.message.encode import dumps, encode_block, encode_rejected, encode_report
from workers.message.schema import MetricsMessage, PredictionMessage, RejectedMessage


def message_of(block, i, seq, id_):
    """Build the payload the slow, obvious way: the rounded row, through the model of the schema."""
    row = block.row(i)
    fields = {
        name: getattr(row, name) for name in PredictionMessage.model_fields if hasattr(row, name)
    }
    return PredictionMessage(seq=seq, id=id_, **(fields | rounded(row)))


@settings(max_examples=80, deadline=None)
@given(block=blocks(), data=st.data())
def test_a_block_is_encoded_as_its_rows_are_through_the_schema(block, data):
    seqs = [int(n) + 3 for n in block.n]
    names = data.draw(st.lists(ids, min_size=len(block), max_size=len(block)))
    payloads = encode_block(block, seqs, names)
    for i, payload in enumerate(payloads):
        message = message_of(block, i, seqs[i], names[i])
        assert payload == message.payload()
        parsed = PredictionMessage.model_validate_json(payload)
        assert parsed == message
        for field in PredictionMessage.model_fields:
            assert getattr(parsed, field) == getattr(message, field), field


@pytest.mark.parametrize("map_intervals", [False, True])
def test_a_warming_block_is_encoded_through_the_schema_too(map_intervals):
    block = warming_block(("a", "b"), np.arange(3), map_intervals=map_intervals)
    names = [None, "a", None]
    payloads = encode_block(block, range(3), names)
    assert payloads == [message_of(block, i, i, name).payload() for i, name in enumerate(names)]
    assert orjson.loads(payloads[1])["probability"] is None
    assert ("map_intervals" in orjson.loads(payloads[1])) == map_intervals


@pytest.mark.parametrize("classes", [None, ("ham", "spam"), tuple("abc")])
@pytest.mark.parametrize("interval_level", [None, 0.9])
def test_answers_before_a_model_are_encoded_through_the_schema(classes, interval_level):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 2)), rng.choice(classes or ("x", "y"), 40).tolist()
    config = PredictorConfig(
        features=2, classes=classes, interval_level=interval_level, set_coverage=interval_level
    )
    answers = OnlinePredictor(config).step_many(X, y)
    warming = [b for b in answers if isinstance(b, PredictionBlock) and b.status == "warming"]
    assert max(map(len, warming)) > 1  # a block whose rows differ
    with_labels = 0
    for block in warming:
        rows = range(len(block))
        payloads = encode_block(block, rows, ["a"] * len(block))
        assert payloads == [message_of(block, i, i, "a").payload() for i in rows]
        assert payloads == [encode_block(block.part(i, i + 1), [i], ["a"])[0] for i in rows]
        with_labels += sum(bool(orjson.loads(payload)["probabilities"]) for payload in payloads)
    assert with_labels == sum(map(len, warming)) - (classes is None)


NUMBERS = ("point", "lower", "upper", "venn_lower", "venn_upper", "scores")


@pytest.mark.parametrize("name", [*NUMBERS, "maps"])
@settings(max_examples=10)
@given(block=blocks(), data=st.data())
def test_a_number_that_is_not_finite_is_never_published(name, block, data):
    values = np.array(block.point if name == "maps" else getattr(block, name))
    place = tuple(data.draw(st.integers(0, size - 1)) for size in values.shape)
    values[place] = data.draw(st.sampled_from([math.nan, math.inf, -math.inf]))
    broken = replace(block, **{name: {"platt": values} if name == "maps" else values})
    with pytest.raises(ValueError, match="not finite"):
        encode_block(broken, range(len(block)), [None] * len(block))


@given(id_=ids, label=st.text())
def test_a_rejection_is_encoded_as_the_schema_says(id_, label):
    error = InvalidExample("label_no_integer", label=label)
    payload = encode_rejected(error, 9, 4, id_)
    about = {"case": "label_no_integer", "label": label.encode(errors="backslashreplace").decode()}
    assert payload == RejectedMessage(seq=9, n=4, code="label", about=about, id=id_).payload()


def test_a_report_is_encoded_as_the_schema_says():
    label = LabelReport(accuracy=0.75, lower=None, probability=0.7, upper=None, paper_p=1.0)
    empty = LabelReport(accuracy=None, lower=None, probability=None, upper=None, paper_p=None)
    method = MethodReport(predicted=label, svm=empty, log_loss=0.5, brier=0.1, clipped=0)
    other = MethodReport(predicted=label, svm=empty, log_loss=0.75, brier=0.2, clipped=1)
    report = ValidityReport(n=100, scored=80, headline=method, venn=other, maps={"platt": method})
    payload = encode_report(report, seq=101)
    assert payload == MetricsMessage.model_validate_json(payload).payload()
    message = orjson.loads(payload)
    assert message["maps"]["platt"]["predicted"]["accuracy"] == 0.75
    assert (message["headline"]["log_loss"], message["venn"]["log_loss"]) == (0.5, 0.75)


# Numbers as text: one form, whichever orjson is installed

FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    FINITE | st.text() | st.sampled_from(["e+", '"e+5', "\\", '\\"1e+16', "1e+20"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def in_python(value):
    """Return the form of a number, from the digits that Python finds."""
    text = re.sub(r"e([+-])0?(\d+)", lambda m: "e" + m[1].replace("+", "") + m[2], repr(value))
    whole = re.fullmatch(r"(-?)(\d)\.?(\d*)e-5", text)  # Python writes these with an exponent
    return f"{whole[1]}0.0000{whole[2]}{whole[3]}" if whole else text


@given(st.lists(FINITE | FINITE.map(lambda x: x % 1e-3), min_size=1))
def test_a_number_has_the_fewest_digits_that_read_back_and_no_plus(values):
    assert dumps(values) == f"[{','.join(map(in_python, values))}]".encode()


@settings(max_examples=50)
@given(VALUES)
def test_what_is_written_reads_back_and_text_stays_as_it_is(value):
    assert json.loads(dumps(value)) == value
