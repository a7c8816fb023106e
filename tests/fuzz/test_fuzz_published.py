"""Whatever stands in `out`, readers show it or say that it is no answer; none of them breaks."""

import orjson
import pytest
from fuzzing import FACTOR, fuzz
from hypothesis import given
from hypothesis import strategies as st

from workers.cli.stream_text import line, with_fields
from workers.dashboard.answer_cards import answer_row
from workers.dashboard.shown_feed import ShownAnswer
from workers.errors import StateLost
from workers.reading.answers import answer
from workers.reading.true_labels import Truth

pytestmark = pytest.mark.timeout(180 * FACTOR)  # so many times the examples

ANSWER = {
    "v": 2, "status": "ok", "id": "tx", "seq": 41, "n": 40, "label": "b", "lower": 0.5,
    "upper": 0.5, "probability": 0.5, "method": "experts", "interval_level": 0.9,
    "classes": ["a", "b"], "probabilities": [0.5, 0.5], "intervals": [[0.5, 0.5]] * 2,
    "venn": [[0.5, 0.5]] * 2, "maps": {"platt": [0.5, 0.5]}, "scores": [1.25], "svm_label": "b",
    "category": 3, "category_size": 99, "model": 7, "calibration": 7, "taxonomy": 7,
    "guarantee": "exact", "about": None,
}  # fmt: skip

values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.text(max_size=4), st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([-1, 0, 1, 2, 3, 0.5]),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)  # fmt: skip


@st.composite
def forged(draw):
    message = dict(ANSWER)
    for name in draw(st.lists(st.sampled_from(list(message)), max_size=3)):
        if draw(st.booleans()):
            message[name] = draw(values)
        else:
            message.pop(name, None)
    return orjson.dumps(message)


@fuzz(400)
@given(forged() | values.map(orjson.dumps) | st.binary(max_size=40))
def test_hostile_bytes_are_shown_or_refused_by_every_reader(data):
    entry = (b"5-0", [b"p", data])
    assert line(data)
    assert isinstance(with_fields(data, {"true_label": None}), bytes)
    try:
        message = answer(entry)
    except StateLost:
        return
    assert answer_row(ShownAnswer(entry[0], message, Truth(is_kept=True)))


def test_an_untouched_answer_is_read():
    assert "not of this program" not in line(orjson.dumps(ANSWER))


@pytest.mark.parametrize("data", [b"[]", b"7", b"{", b"\xff", b'{"c":' + b"[" * 900])
def test_what_is_no_object_is_no_answer(data):
    with pytest.raises(StateLost, match="is no answer"):
        answer((b"5-0", [b"p", data]))
