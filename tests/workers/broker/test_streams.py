"""Replies about streams, as servers of several ages write them."""

import pytest

from workers.broker.streams import StreamInfo

LAST = [b"2-0", [b"id", b"b"]]


@pytest.mark.parametrize(("added", "gone"), [([b"entries-added", 7], 5), ([], 0)])
def test_a_server_that_does_not_count_entries_has_lost_none(added, gone):
    reply = [b"length", 2, b"last-generated-id", b"2-0", *added,
             b"first-entry", [b"1-0", [b"id", b"a"]], b"last-entry", LAST]  # fmt: skip
    info = StreamInfo.parse(reply)
    assert (info.length, info.gone, info.last) == (2, gone, LAST)
