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
from workers.message.compact import HEAD_VALUES, parse
from workers.offline.answer_table import flat
from workers.reading.answers import answer
from workers.reading.true_labels import Truth
from workers.session.join.sources import bounds

pytestmark = pytest.mark.timeout(180 * FACTOR)  # so many times the examples

HEAD = (40, 1, 1, 3, 99, 7, 7, 7, 0, None, 3, 0.9)
NUMBERS = {2: 6, 3: 16}
"""How many numbers an answer has, by its classes."""

values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.text(max_size=4), st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from([-1, 0, 1, 2, 3, 0.5, 10**6, 10**6 + 1]),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)  # fmt: skip


@st.composite
def forged(draw):
    k = draw(st.sampled_from([2, 3]))
    given = [*HEAD, ["a", "b", None][:k], *[500_000] * NUMBERS[k]]
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(given)))
        how = draw(st.sampled_from(["replace", "insert", "cut"]))
        if how == "cut":
            given = given[:place]
        else:
            given[place : place + (how == "replace")] = [draw(values)]
    message = {"v": 2, "id": "tx", "seq": 41, "c": given}
    for name in draw(st.lists(st.sampled_from(list(message)), max_size=2)):
        message[name] = draw(values)
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
    if message.get("payload") != "compact" or "scores" not in message:
        return
    # What was expanded has the shape of a full answer, so that readers need to know no other.
    assert "not of this program" not in line(data)
    row = flat(dict(message))
    assert row["seq"] == message["seq"]
    assert len(message["probabilities"]) == len(message["venn"]) == len(message["classes"])
    assert bounds(message, "venn") == tuple(message["venn"][-1])
    assert answer_row(ShownAnswer(entry[0], message, Truth(is_kept=True)))


@pytest.mark.parametrize("k", [2, 3])
def test_the_untouched_one_is_read(k):
    given = [*HEAD, ["a", "b", None][:k], *[500_000] * NUMBERS[k]]
    assert len(HEAD) + 1 == HEAD_VALUES
    assert parse(orjson.dumps({"v": 2, "seq": 41, "c": given}))["label"] == "b"


TWO = [*HEAD, ["a", "b"], *[1] * NUMBERS[2]]
IMPOSSIBLE = [
    (1, 2), (1, -2), (8, "sure"), (8, 99), (9, -1), (12, []), (13, 1_000_001), (13, 0.5),
    (16, True),
]  # fmt: skip
"""Place and value of what no encoder writes there."""
NO_ANSWERS = [
    b'{"c":[]}', b'{"v":2,"seq":1,"c":null}', b'{"v":3,"seq":1,"c":[1]}', b'{"c":' + b"[" * 900,
    orjson.dumps({"v": 2, "seq": -1, "c": TWO}), orjson.dumps({"v": 2, "seq": 1, "c": TWO[:-1]}),
    *(
        orjson.dumps({"v": 2, "seq": 1, "c": [*TWO[:place], value, *TWO[place + 1 :]]})
        for place, value in IMPOSSIBLE
    ),
]  # fmt: skip


@pytest.mark.parametrize("data", NO_ANSWERS)
def test_what_no_encoder_writes_is_no_answer(data):
    assert parse(orjson.dumps({"v": 2, "seq": 1, "c": TWO}))
    with pytest.raises(StateLost, match="is no answer"):
        answer((b"5-0", [b"p", data]))
