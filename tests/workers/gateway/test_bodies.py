"""Whatever a body holds, it becomes entries or is refused with a reason; nothing else happens."""

import json

import hypothesis
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.gateway.refused import Refused
from workers.gateway.rows import example, label, objects, parsed
from workers.gateway.tensors import check_outputs, inputs, labels, outputs, rows
from workers.message.entry_decode import MAX_FIELDS

INTEGERS = st.integers(-(2**65), 2**65)
CELLS = st.none() | st.booleans() | INTEGERS | st.floats() | st.text(max_size=5)
ANY = st.recursive(
    CELLS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)  # fmt: skip
NAMES = st.sampled_from(["x", "y", "p", "id", "s", "time", "a", "z"])
TENSOR = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["x", "age", "label"]) | ANY,
        "shape": st.lists(st.integers(-1, 4), max_size=3) | ANY,
        "datatype": st.sampled_from(["FP64", "INT8", "BOOL", "BYTES", "FP16"]) | ANY,
        "data": st.lists(CELLS, max_size=8) | st.lists(st.lists(CELLS, max_size=4)) | ANY,
    },
)


def take(work):
    """Do something that may be refused, with one line; any other error fails the test."""
    refused = None
    try:
        work()
    except Refused as error:
        refused = error
    if refused is not None:
        assert refused.status in (400, 413, 422)
        assert refused.reason.isprintable()


@given(st.binary(max_size=60) | ANY.map(lambda found: json.dumps(found).encode()))
def test_any_bytes_are_json_or_refused(body):
    take(lambda: parsed(body))


@given(st.dictionaries(NAMES, ANY, max_size=8), st.none() | st.text(max_size=4))
@hypothesis.example({"x": [], "y": 2**64}, None)
@hypothesis.example({"x": [], "y": 1e20}, None)
def test_any_object_becomes_the_fields_of_an_entry_or_is_refused(found, key):
    def work():
        sent = parsed(json.dumps(found).encode())
        fields = example(sent, key=key)
        assert len(fields) % 2 == 0
        assert len(fields) <= 2 * (MAX_FIELDS + 2)
        assert all(isinstance(field, bytes | str) for field in fields)
        assert orjson.loads(fields[1]) == orjson.loads(orjson.dumps(sent["x"]))

    take(work)
    take(lambda: label(parsed(json.dumps(found).encode())))
    take(lambda: objects(found))


@given(st.lists(TENSOR | ANY, max_size=3) | ANY, ANY)
def test_any_tensors_become_rows_and_labels_or_are_refused(sent, wanted):
    def work():
        tensors = inputs({"inputs": sent})
        found = rows(tensors)
        assert len(found) == sent[0]["shape"][0]

    take(work)
    take(lambda: labels(inputs({"inputs": sent})))
    take(lambda: check_outputs(wanted))


@pytest.mark.parametrize(("shape", "datatype", "data", "expected"), [
    ([2, 2], "FP64", [1.5, 2, 3, 4], [[1.5, 2], [3, 4]]),
    ([2, 2], "INT64", [[1, 2], [3, 4]], [[1, 2], [3, 4]]),
    ([1, 3], "FP32", [1.5, None, 3], [[1.5, None, 3]]),
    ([1, 3], "BOOL", [True, False, True], [[True, False, True]]),
    ([1, 3], "UINT8", [0, 255, 1], [[0, 255, 1]]),
])  # fmt: skip
def test_a_matrix_is_row_major_flat_or_nested_and_the_same_as_columns(
    shape, datatype, data, expected
):
    assert rows([{"name": "m", "shape": shape, "datatype": datatype, "data": data}]) == expected
    columns = [
        {"name": f"{j}", "shape": shape[:1], "datatype": datatype, "data": list(cells)}
        for j, cells in enumerate(zip(*expected, strict=True))
    ]
    assert [list(row.values()) for row in rows(columns)] == expected


def test_answers_of_other_classes_share_one_tensor_of_probabilities():
    answers = [
        {"status": "ok", "label": "a", "classes": ["a", "b"], "probabilities": [0.75, 0.25]},
        {"status": "ok", "label": "c", "classes": ["a", "b", "c", None],
         "probabilities": [0.125, 0.25, 0.5, 0.125]},
        {"status": "warming", "label": None, "classes": ["a"], "probabilities": []},
    ]  # fmt: skip
    (found,) = outputs(answers, ["1-0", "2-0", "3-0"], [{"name": "probabilities"}])
    assert found["parameters"] == {"classes": ["a", "b", "c", None]}
    assert found["shape"] == [3, 4]
    assert found["data"] == [0.75, 0.25, 0, 0, 0.125, 0.25, 0.5, 0.125, *[None] * 4]
