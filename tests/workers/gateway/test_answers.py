"""Answers are found by their `seq`, and awaited by entry ID, whatever was trimmed or read."""

import asyncio

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.broker.connection import Connection
from workers.feed.position import parse_id
from workers.gateway.answers import AwaitedAnswers, by_seq
from workers.gateway.awaited_connection import AwaitedConnection
from workers.stop import Stop

pytestmark = pytest.mark.servers("embedded")

LONG = 60.0
"""Seconds: a wait is over sooner, or has failed."""

MOST = 2**64 - 1
TIMES = st.integers(0, 3) | st.integers(1_700_000_000_000, 1_700_000_000_999) | st.integers(0, MOST)
COUNTS = st.integers(0, 3) | st.integers(0, MOST)


class Out:
    """A stream `out`; counts how often, and how many of its entries, were read."""

    def __init__(self, positions, first=0):
        self.entries = [
            (b"%d-%d" % at, [b"p", orjson.dumps({"status": "ok", "seq": first + i})])
            for i, at in enumerate(sorted(positions))
        ]
        self.reads = self.size = 0

    async def read(self, ranges):
        self.reads += 1
        pages = [self._page(*one) for one in ranges]
        self.size += sum(map(len, pages))
        return pages

    def _page(self, low, high, count):
        low, high = parse_id(low), parse_id(high)
        return [one for one in self.entries if low <= parse_id(one[0]) <= high][:count]


def find(out, seqs, before=b"%d-%d" % (MOST, MOST)):
    return asyncio.run(by_seq(seqs, before, out.read))


@given(
    st.sets(st.tuples(TIMES, COUNTS), min_size=1, max_size=60),
    st.integers(0, 10),
    st.lists(st.integers(0, 75), max_size=5),
)
def test_each_answer_that_is_kept_is_found_and_no_other(positions, first, seqs):
    out = Out(positions - {(MOST, MOST)}, first)
    kept = {first + i: entry for i, entry in enumerate(out.entries)}
    found = find(out, seqs)
    assert {seq: found.get(seq) for seq in seqs} == {seq: kept.get(seq) for seq in seqs}
    assert out.reads <= 35 * max(1, len(seqs))


def test_a_search_reads_a_few_hundred_answers_of_a_day():
    out = Out({(1_700_000_000_000 + i * 8640 // 7, i % 3) for i in range(10_000)})
    assert find(out, [17]) == {17: out.entries[17]}
    assert (out.reads <= 12, out.size <= 300) == (True, True), (out.reads, out.size)


def test_answers_that_follow_each_other_are_read_together():
    out = Out({(1_700_000_000_000, i) for i in range(10_000)})
    found = find(out, list(range(1000)))
    assert found == dict(enumerate(out.entries[:1000]))
    assert (out.reads <= 30, out.size <= 2000) == (True, True), (out.reads, out.size)


def test_what_another_program_wrote_is_no_answer():
    out = Out({(1, i) for i in range(9)})
    out.entries[4] = (out.entries[4][0], [b"q", b"{}"])
    assert find(out, [4]) == {}


def awaiting(store, work):
    """Run some work on the awaited answers of a feed in an event loop of its own."""

    async def run():
        calls, reads = (
            AwaitedConnection(Connection(store.url, Stop(), timeout=LONG), store.keys.state)
            for _ in range(2)
        )
        answers = AwaitedAnswers(store.keys, reads, calls)
        await asyncio.gather(calls.connected(LONG), reads.connected(LONG))
        try:
            return await work(answers)
        finally:
            await answers.close()
            await calls.close()
            await reads.close()

    return asyncio.run(run())


def answer(store, *entries):
    for entry in entries:
        store.call("XADD", store.keys.out, entry, "p", f"answer {entry}")


def test_answers_are_found_whatever_was_read_before_them(store):
    """The reader may be beyond an entry, before it, far behind it, or at rest."""

    async def work(answers):
        answer(store, "5-0", "6-0", "6-1")
        found = [await answers.wait([b"6-0"], LONG), await answers.wait([b"5-0", b"6-1"], LONG)]
        answer(store, *(f"7-{i}" for i in range(500)))
        found.append(await answers.wait([b"7-499", b"7-0"], LONG))
        found.append(await answers.wait([b"7-250", b"9-0"], 1.0))
        waiting = asyncio.create_task(answers.wait([b"9-0", b"8-0"], LONG))
        await asyncio.sleep(0.05)
        answer(store, "8-0", "8-1", "9-0")
        return [*found, await waiting]

    expected = [["6-0"], ["5-0", "6-1"], ["7-499", "7-0"], ["7-250", None], ["9-0", "8-0"]]
    assert awaiting(store, work) == [
        [None if at is None else b"answer " + at.encode() for at in row] for row in expected
    ]


def test_two_that_wait_for_one_entry_both_get_its_answer_and_nobody_is_kept(store):
    async def work(answers):
        both = [asyncio.create_task(answers.wait([b"5-0"], LONG)) for _ in range(2)]
        late = await answers.wait([b"4-0"], 0.02)
        answer(store, "5-0")
        return [late, *await asyncio.gather(*both), answers._waiting]

    assert awaiting(store, work) == [[None], [b"answer 5-0"], [b"answer 5-0"], {}]


def test_an_entry_of_another_program_holds_nobody_up(store):
    async def work(answers):
        waiting = asyncio.create_task(answers.wait([b"5-0", b"6-0"], 3.0))
        await asyncio.sleep(0.02)
        store.call("XADD", store.keys.out, "5-0", "q", "no answer")
        answer(store, "6-0")
        return await waiting

    assert awaiting(store, work) == [None, b"answer 6-0"]


def test_who_waits_when_it_closes_gets_nothing_at_once(store):
    async def work(answers):
        waiting = asyncio.create_task(answers.wait([b"5-0"], LONG))
        await asyncio.sleep(0.02)
        await answers.close()
        return await waiting

    assert awaiting(store, work) == [None]
