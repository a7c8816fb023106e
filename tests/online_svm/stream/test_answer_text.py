"""Text of answers: numbers of six decimals, whole numbers, texts between fixed parts."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from online_svm.stream.answer_text import FIRST_TEXT, LARGE, Value, write_rows

NO_TEXTS = np.zeros(0, np.uint8), np.zeros(1, np.int64)
SMALL = st.floats(-LARGE, LARGE, exclude_min=True, exclude_max=True)


def texts(*values):
    begins = np.cumsum([0, *map(len, values)])
    return np.frombuffer(b"".join(values), np.uint8), begins


def written(steps, numbers, wholes, held=NO_TEXTS, classes=0, distributions=0):
    """Return each row's text; a step is a fixed part and the value that follows."""
    fixed = b"".join(part for part, *_ in steps)
    ends = np.cumsum([len(part) for part, *_ in steps])
    plan = [(end, *value) for end, (_, *value) in zip(ends, steps, strict=True)]
    m = len(numbers)
    out, stops = np.empty(m * (len(fixed) + 40 * len(plan)), np.uint8), np.empty(m, np.int64)
    arguments = np.array(plan), np.frombuffer(fixed, np.uint8), held, classes, distributions
    write_rows(*arguments, numbers, wholes, out, stops)
    text = out.tobytes()
    return [text[i:j].decode() for i, j in zip([0, *stops[:-1]], stops, strict=True)]


def in_python(number):
    """Return the shortest digits of a number, without Python's exponent for 1e-5."""
    text = repr(number)
    head, _, exponent = text.partition("e-0")
    if exponent == "5":
        return "-" * (number < 0) + "0.0000" + head.replace("-", "").replace(".", "")
    return text.replace("e-0", "e-")


def numbers_of(values):
    steps = [(b"", Value.NUMBER, 0, 0)]
    return written(steps, np.array(values)[:, None], np.zeros((0, len(values)), np.int64))


@given(st.lists(SMALL | SMALL.map(lambda x: x * 1e-13), min_size=1))
def test_a_number_is_the_shortest_decimal_of_its_six(values):
    six = [round(x * 1e6) / 1e6 for x in values]
    assert numbers_of(values) == [in_python(x) for x in six]


def test_millionths_are_written_as_they_read_back():
    values = [k / 1e6 for k in (*range(2000), 999_999, 1_000_000, 123_456_789)]
    assert list(map(float, numbers_of(values))) == values
    assert numbers_of([0.0, -0.0, -1e-9, 9e-6, 1e-5, 0.25, 1.0, -0.1]) == [
        "0.0", "0.0", "0.0", "9e-6", "0.00001", "0.25", "1.0", "-0.1",
    ]  # fmt: skip


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1))
def test_a_rounded_distribution_keeps_its_sum_and_its_interval(rows):
    raw = np.array(rows) + 1e-3
    points = raw / raw.sum(axis=1, keepdims=True)
    numbers = np.concatenate([points, points * 0.999_999_9, points * 1.000_000_1], axis=1)
    steps = [(b"[" if k == 0 else b",", Value.NUMBER, k, 0) for k in range(9)]
    wholes = np.zeros((0, len(rows)), np.int64)
    for text in written([*steps, (b"]", Value.NOTHING, 0, 0)], numbers, wholes, NO_TEXTS, 3, 1):
        found = [round(x * 1e6) for x in json.loads(text)]
        assert sum(found[:3]) == 1_000_000
        assert all(found[3 + k] <= found[k] <= found[6 + k] for k in range(3))


def test_each_value_stands_where_the_plan_says():
    steps = [
        (b'{"n":', Value.WHOLE, 0, 0), (b',"label":', Value.TEXT, 1, 0),
        (b',"own":', Value.OWN_NUMBER, 0, 1), (b',"action":', Value.TEXT, 2, 2),
        (b',"score":', Value.NUMBER, 2, 0), (b"}", Value.NOTHING, 0, 0),
    ]  # fmt: skip
    wholes = np.array([[7, 2**62], [1, 0], [0, -1]])
    numbers = np.array([[0.125, 0.5, 3.0], [0.25, 0.75, FIRST_TEXT + 3]])
    held = texts(b'"a"', b'"b"', b'"buy"', b"1e16")
    first, second = map(json.loads, written(steps, numbers, wholes, held))
    assert first == {"n": 7, "label": "b", "own": 0.5, "action": "buy", "score": 3.0}
    assert second == {"n": 2**62, "label": "a", "own": 0.25, "action": None, "score": 1e16}
