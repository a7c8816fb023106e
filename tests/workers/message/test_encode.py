"""Payloads: the same bytes as the slow way through the schema gives."""

import math
from dataclasses import replace

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prediction_blocks import blocks, ids

from online_svm.errors import InvalidExample
from online_svm.stream.prediction import LabelReport, MethodReport, PredictionBlock, ValidityReport
from workers.message.encode import encode_block, encode_rejected, encode_report
from workers.message.schema import MetricsMessage, PredictionMessage, RejectedMessage


def message_of(block, i, seq, id_):
    """Build the payload the slow, obvious way: the row, through the model of the schema."""
    row = block.row(i)
    fields = {
        name: getattr(row, name)
        for name in PredictionMessage.model_fields
        if name not in ("v", "id", "seq")
    }
    return PredictionMessage(seq=seq, id=id_, **fields)


@settings(max_examples=200, deadline=None)
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


@settings(max_examples=100, deadline=None)
@given(block=blocks(), data=st.data())
def test_a_row_alone_is_encoded_as_it_is_among_others(block, data):
    names = data.draw(st.lists(ids, min_size=len(block), max_size=len(block)))
    among = encode_block(block, block.n, names)
    alone = [
        encode_block(block.part(i, i + 1), block.n[i : i + 1], names[i : i + 1])
        for i in range(len(block))
    ]
    assert [[payload] for payload in among] == alone


def warming_block(m=3, map_intervals=None):
    empty = np.empty((m, 0))
    none = np.full(m, -1)
    return PredictionBlock(
        status="warming", classes=("a", "b"), n=np.arange(m), label=none, svm_label=none,
        point=empty, lower=empty, upper=empty,
        venn_point=empty, venn_lower=empty, venn_upper=empty, maps={}, map_intervals=map_intervals,
        scores=empty, category=none, category_size=np.zeros(m, dtype=np.int64),
        model=0, calibration=0, taxonomy=0, guarantee="none",
        reason="no proper training set had two classes yet", method=None, interval_level=None,
    )  # fmt: skip


@pytest.mark.parametrize("map_intervals", [None, {}], ids=["points only", "intervals"])
def test_a_warming_block_is_encoded_through_the_schema_too(map_intervals):
    block = warming_block(map_intervals=map_intervals)
    payloads = encode_block(block, range(3), [None, "a", None])
    assert payloads == [
        message_of(block, i, i, name).payload() for i, name in enumerate([None, "a", None])
    ]
    assert orjson.loads(payloads[1])["probability"] is None
    assert ("map_intervals" in orjson.loads(payloads[1])) == (map_intervals is not None)


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize(
    "name", ["point", "lower", "upper", "venn_lower", "venn_upper", "scores", "maps"]
)
def test_a_number_that_is_not_finite_is_never_published(name, m):
    fine, ones = np.full((m, 2), 0.5), np.ones(m, dtype=np.int64)
    block = PredictionBlock(
        status="ok", classes=("a", "b"), n=ones, label=ones, svm_label=ones, point=fine,
        lower=fine, upper=fine,
        venn_point=fine, venn_lower=fine, venn_upper=fine,
        maps={"platt": fine}, map_intervals=None, scores=fine,
        category=ones, category_size=ones, model=1, calibration=1, taxonomy=1,
        guarantee="exact", reason=None, method="venn", interval_level=None,
    )  # fmt: skip
    values = fine.copy()
    values[-1, 0] = math.nan
    broken = replace(block, **{name: {"platt": values} if name == "maps" else values})
    assert encode_block(block, range(m), [None] * m)
    with pytest.raises(ValueError, match="not finite"):
        encode_block(broken, range(m), [None] * m)


@given(id_=ids, reason_=st.text(st.characters(exclude_categories=["Cs"])))
def test_a_rejection_is_encoded_as_the_schema_says(id_, reason_):
    payload = encode_rejected(InvalidExample("label", reason_), 9, 4, id_)
    assert payload == RejectedMessage(seq=9, n=4, code="label", reason=reason_, id=id_).payload()


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
