"""Where a combination stands in its sources, as `st` holds it: read strictly."""

import pytest

from workers.errors import StateLost
from workers.session.join.marks import SourceMark, decode_joined, encode_joined


def test_what_was_stored_is_read_back():
    marks = [SourceMark(), SourceMark(b"5-18446744073709551615", 3, (4, 7))]
    assert decode_joined(encode_joined(marks, 2)) == (marks, 2)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[]", b"null", b"{}", b"\xff", b"[" * 90_000, b'{"marks":[]}', b'{"letters":0}',
        b'{"letters":-1,"marks":[]}', b'{"letters":1e999,"marks":[]}',
        b'{"letters":true,"marks":[]}', b'{"letters":0,"marks":[["zz",0,[]]]}',
        b'{"letters":0,"marks":[[5,0,[]]]}', b'{"letters":0,"marks":[["5-0",1.5,[]]]}',
        b'{"letters":0,"marks":[["5-0",1,["a"]]]}', b'{"letters":0,"marks":[["5-0",1]]}',
        b'{"letters":0,"marks":[["5-0",1e999,[]]]}', b'{"letters":0,"marks":7}',
        b'{"letters":0,"marks":[["5-18446744073709551616",1,[]]]}',
    ],
)  # fmt: skip
def test_anything_else_is_damage_and_is_told_in_one_line(text):
    with pytest.raises(StateLost, match=r"is damaged .*reset the feed") as told:
        decode_joined(text)
    assert len(str(told.value)) < 300
    assert "\n" not in str(told.value)
