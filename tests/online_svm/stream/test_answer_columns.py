"""The table of columns, against what is made of it."""

from dataclasses import fields

import numpy as np
import orjson

from online_svm.predictor.active_model import warming_block
from online_svm.stream.answer_columns import COLUMNS
from online_svm.stream.prediction import Prediction, PredictionBlock
from workers.message.encode import encode_block
from workers.message.schema import PredictionMessage

HEAD = ["v", "status", "id", "seq"]


def test_a_prediction_has_the_columns_in_their_order():
    assert [f.name for f in fields(Prediction)] == ["status", *(c.name for c in COLUMNS)]


def test_a_block_has_every_attribute_that_a_column_is_read_from_and_no_other():
    read = {name for column in COLUMNS for name in column.attributes} | {"status"}
    read.add("venn_point")  # scored by the reports, and not published
    read.add("member_outputs")  # kept until a delayed label comes
    assert {f.name for f in fields(PredictionBlock)} == read


def test_a_message_has_the_columns_after_its_head():
    names = [column.name for column in COLUMNS]
    assert list(PredictionMessage.model_fields) == [*HEAD, *names, "traceparent"]


def test_every_column_has_a_line_of_documentation():
    assert all(column.description.endswith(".") for column in COLUMNS)


def test_while_warming_a_payload_has_what_the_prediction_has():
    block = warming_block(("a", "b"), np.array([3]))
    (payload,) = encode_block(block, [4], [None])
    message = orjson.loads(payload)
    row = block.row(0)
    for column in COLUMNS:
        if column.name in message:
            value = getattr(row, column.name)
            assert message[column.name] == (list(value) if isinstance(value, tuple) else value)
