"""Joining answers by id, against a brute-force reading of the definition, in any arrival order."""

import random

import pytest

from workers.errors import StateLost
from workers.session.join.rows import Join, SourceAnswer, SourceMark, decode_joined, encode_joined


def answers(ids):
    """Answers with these ids (None for none), at places 0, 1, 2..."""
    return [
        SourceAnswer(b"%d-0" % (i + 1), b"%d-0" % i, i, name, False, None, None, b"")
        for i, name in enumerate(ids)
    ]


def shape(row):
    found = tuple(None if answer is None else answer.seq for answer in row.answers)
    return found, tuple((feed, answer.seq) for feed, answer in row.dropped)


def by_definition(feeds, window):
    """Decide every answer of the first feed with all the others in hand."""
    free = [list(enumerate(ids)) for ids in feeds]
    rows = []
    for place, name in enumerate(feeds[0]):
        found, given_up = [place], []
        for feed in range(1, len(feeds)):
            near = [
                seq
                for seq, other in free[feed]
                if abs(seq - place) <= window and other == name and name is not None
            ]
            found.append(min(near, default=None))
        for feed, seq in enumerate(found):
            if feed:
                free[feed] = [pair for pair in free[feed] if pair[0] != seq]
                given_up += [(feed, s) for s, _ in free[feed] if s <= place - window]
                free[feed] = [pair for pair in free[feed] if pair[0] > place - window]
        rows.append((tuple(found), tuple(given_up)))
    return rows


def disturbed(ids, choose):
    """Drop, repeat, hide and displace some ids."""
    kept = [name for name in ids if choose.random() > 0.1]
    for _ in range(len(ids) // 10):
        kept.insert(choose.randrange(len(kept) + 1), choose.choice([None, choose.choice(ids)]))
    return [kept[i] for i in sorted(range(len(kept)), key=lambda i: i + choose.uniform(0, 4))]


@pytest.mark.parametrize("seed", range(30))
def test_any_arrival_and_any_restart_give_the_rows_of_the_definition(seed):
    choose = random.Random(seed)
    ids = [f"id-{i}" for i in range(60)]
    window = choose.choice([0, 1, 3, 10])
    feeds = [disturbed(ids, choose) for _ in range(choose.choice([2, 3]))]
    feeds[0] = feeds[0][: len(feeds[0]) - 12]  # so that the window of the last one is complete
    feeds[1:] = [feed + ["end"] * 30 for feed in feeds[1:]]
    streams = [answers(feed) for feed in feeds]
    join, rows = Join([SourceMark() for _ in feeds], window), []
    while join.next_seq(0) < len(feeds[0]) or join.waiting:
        feed = choose.randrange(len(feeds))
        begin = join.next_seq(feed)
        if join.has_room(feed, 8):
            join.add(feed, streams[feed][begin : begin + choose.randint(1, 8)])
        rows += map(shape, join.rows(choose.choice([None, 1, 3])))
        if choose.random() < 0.2:
            join = Join(join.marks(), window)
    assert rows == by_definition(feeds, window)


def test_a_feed_that_has_not_answered_past_the_window_is_waited_for():
    join = Join([SourceMark(), SourceMark()], window=2)
    join.add(0, answers(["x"]))
    join.add(1, answers(["p", "q"]))
    assert list(join.rows()) == []
    join.add(1, answers(["p", "q", "r"])[2:])
    assert [shape(row) for row in join.rows()] == [((0, None), ())]


def test_what_is_held_is_bounded():
    join = Join([SourceMark(), SourceMark()], window=5)
    join.add(1, answers(map(str, range(100)))[:20])
    assert not join.has_room(1, 4)
    join.add(0, answers(map(str, range(100)))[:4])
    assert not join.has_room(0, 4)
    assert len(list(join.rows())) == 4
    assert join.has_room(0, 4)


def test_what_was_stored_is_read_back():
    marks = [SourceMark(), SourceMark(b"5-18446744073709551615", 3, (4, 7))]
    assert decode_joined(encode_joined(marks, 2)) == (marks, 2)
    stored = encode_joined([SourceMark(b"5-0", 3, (4,))], 2)
    assert stored == b'{"letters":2,"marks":[["5-0",3,[4]]]}'


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
