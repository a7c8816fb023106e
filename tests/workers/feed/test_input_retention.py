"""Which input a feed keeps, checked against the whole list of what it learned."""

from hypothesis import given
from hypothesis import strategies as st

from workers.feed.input_retention import SPACING, keep, known_marks
from workers.feed.position import parse_id
from workers.feed.state_fields import Mark, encode_marks, parse_marks

LEARNS = st.lists(st.booleans(), min_size=1, max_size=300)
STEPS = st.lists(st.integers(min_value=1, max_value=40), min_size=1, max_size=40)


@given(learns=LEARNS, steps=STEPS, window=st.integers(min_value=1, max_value=120))
def test_the_window_stays_whatever_is_rejected_and_whenever_a_snapshot_comes(learns, steps, window):
    marks, snapshots, done, oldest = (Mark(),), [b"0-0"], 0, b"0-0"
    for step in steps:
        done = min(done + step, len(learns))
        newest = Mark(sum(learns[:done]), b"%d-0" % done)
        previous = snapshots[-1] if len(snapshots) > 1 else None
        kept = keep(marks, newest, previous, window)
        marks = parse_marks(encode_marks(kept.marks))
        snapshots.append(newest.cursor)
        if kept.trim:
            assert parse_id(oldest) <= parse_id(kept.trim) <= parse_id(previous)
            oldest = kept.trim
        first = max(parse_id(oldest)[0], 1)  # the entry under the ID itself stays
        assert sum(learns[first - 1 : done]) >= min(window, newest.n)
        assert len(marks) <= 2 * SPACING + 3


def test_a_feed_without_marks_has_those_of_its_snapshots():
    older, newer = Mark(5, b"6-0"), Mark(9, b"11-0")
    assert known_marks((), (older, newer)) == (older, newer)
    assert known_marks((), (None, newer)) == (Mark(), newer)
    assert known_marks((), (None, None)) == (Mark(),)
    assert known_marks((older,), (newer, newer)) == (older,)
