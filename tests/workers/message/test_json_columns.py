"""Numbers as text: one form, whichever orjson is installed."""

import json
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workers.message.json_columns import dumps, numbers

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
    assert numbers(np.array(values)[:, None]) == [in_python(x).encode() for x in values]
    assert dumps(values) == f"[{','.join(map(in_python, values))}]".encode()


@given(VALUES)
def test_what_is_written_reads_back_and_text_stays_as_it_is(value):
    assert json.loads(dumps(value)) == value
