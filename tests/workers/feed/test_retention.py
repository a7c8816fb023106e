"""What a feed keeps: output up to its bounds in bytes, and the input that it learned from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.errors import StateLost
from workers.feed.position import parse_id
from workers.feed.retention import (
    MARKS_PER_WINDOW,
    Added,
    ByteBounds,
    KeptBytes,
    Retention,
    StreamBytes,
    counted,
    keep,
    known_marks,
)
from workers.feed.state import FeedState, PinnedConfig, initial_fields
from workers.feed.state_fields import Mark, encode_marks, parse_marks

BOUND = 3200


@given(st.lists(st.integers(1, 5000), max_size=200))
def test_a_stream_keeps_its_bound_or_the_last_commit(sizes):
    stream, written = StreamBytes(), [0]
    for i, size in enumerate(sizes, 1):
        before = stream
        stream = stream.after(Added(size, b"%d-0" % i), BOUND)
        written.append(written[-1] + size)
        # By another route: what was written after the entry up to which it is trimmed.
        upto = int(stream.marks[0].cursor.split(b"-")[0])
        held = written[i] - written[upto]
        assert held == stream.kept
        assert held <= max(BOUND, size + BOUND // 32 + max(sizes))
        assert upto < i  # what a commit wrote stays
        assert upto >= int((before.marks or (Mark(),))[0].cursor.split(b"-")[0])
        assert len(stream.marks) <= 34
    # As much is kept as the spacing of the marks allows.
    if sum(sizes) > BOUND and max(sizes) < BOUND // 32:
        assert stream.kept > BOUND - 3 * BOUND // 32


@given(st.lists(st.integers(1, 200), max_size=120), st.integers(0, 120))
def test_a_stored_count_goes_on_unchanged(sizes, at):
    kept = stored = KeptBytes()
    fields = {}
    bounds = ByteBounds(out=BOUND, met=BOUND // 2, dlq=100)
    plain = KeptBytes()
    for i, size in enumerate(sizes, 1):
        added = [Added(size, b"%d-0" % i), Added(2 * size, b"%d-0" % i), None, None]
        kept, plain = kept.after(added, bounds), plain.after(added, bounds)
        fields |= {name.encode(): value for name, value in kept.changes(stored).items()}
        stored = kept
        if i == at:
            kept = stored = parsed(fields).kept
    assert kept == plain
    assert parsed(fields).kept == plain


def parsed(fields):
    """Return the state of a feed with these fields beside the first ones."""
    flat = initial_fields(PinnedConfig("{}", "00"))
    first = {
        str(name).encode(): value if isinstance(value, bytes) else str(value).encode()
        for name, value in zip(flat[::2], flat[1::2], strict=True)
    }
    return FeedState.parse(first | {b"epoch": b"1"} | fields, "st")


def test_by_default_a_million_answers_and_64_mib_of_them_are_kept():
    assert Retention().bytes == (64 << 20, 16 << 20, 0, 16 << 20)
    assert Retention().entries == (1_000_000, 100_000, 100_000, 1_000_000)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"written", b"1 2 3"), (b"written", b"a b c d"), (b"written", b"-1 0 0 0"),
        (b"marks_out", b"5"), (b"marks_dlq", b"5:x"),
    ],
)  # fmt: skip
def test_a_damaged_count_is_named(name, value):
    with pytest.raises(StateLost, match=name.decode()):
        parsed({name: value})


def test_held_answers_are_not_trimmed_by_commits():
    stream = StreamBytes()
    for i in range(1, 101):
        stream = stream.after(Added(100, b"%d-0" % i), BOUND, is_held=True)
    assert stream.kept == 10_000
    assert stream.marks[0] == Mark(0, b"0-0")
    some = stream.room_from(BOUND, lambda entry: int(entry.split(b"-")[0]) <= 40)
    assert some.marks[0] == Mark(4000, b"40-0")
    done = some.room_from(BOUND, lambda _: True)
    assert (done.kept, done.marks[0].cursor) == (3100, b"69-0")  # below the bound, and no more
    assert done.room_from(BOUND, lambda _: True) == done
    assert stream.room_from(BOUND, lambda _: False) == stream


def test_without_a_bound_nothing_is_counted():
    kept = KeptBytes().after([Added(counted(10, 1), b"1-0"), None, None, None], ByteBounds())
    assert kept == KeptBytes()
    assert kept.changes(KeptBytes()) == {}


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
        assert len(marks) <= 2 * MARKS_PER_WINDOW + 3


def test_a_feed_without_marks_has_those_of_its_snapshots():
    older, newer = Mark(5, b"6-0"), Mark(9, b"11-0")
    assert known_marks((), (older, newer)) == (older, newer)
    assert known_marks((), (None, newer)) == (Mark(), newer)
    assert known_marks((), (None, None)) == (Mark(),)
    assert known_marks((older,), (newer, newer)) == (older,)
