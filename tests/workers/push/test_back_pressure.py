"""A push that waits for the worker."""

import time
from operator import sub

import pytest
from world import Worker, wait_until

from workers.cli.progress import waiting_progress
from workers.push import back_pressure, ingest
from workers.push.back_pressure import HighWater
from workers.push.ingest import PushStopped
from workers.push.sources import Row


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(back_pressure, "CHECK_SECONDS", 0.0)


ROWS = [Row([i], "a") for i in range(300)]


def answer(store, seq):
    """Move the feed's cursor as a worker's commit does: `seq` entries are answered."""
    found = store.call("XRANGE", store.keys.input, "-", "+", "COUNT", seq)
    store.call("HSET", store.keys.state, "cursor", found[-1][0], "seq", seq)


def test_a_push_waits_at_the_mark_and_goes_on_when_half_is_answered(store, redis_url, feed):
    seen = []

    def work(waiting):
        length = store.length(store.keys.input)
        seen.append((length, waiting))
        answer(store, length - 40)

    with HighWater(redis_url, feed, 100, work) as wait:
        wait(0)
        assert ingest.push(ROWS, redis_url, feed, pacing=ingest.Pacing(10, wait)) == 300
    assert seen == [(100, 100), (160, 100), (220, 100), (280, 100)]
    assert store.length(store.keys.input) == 300


def test_what_waits_already_counts_before_the_first_row(store, redis_url, feed):
    ingest.push(ROWS[:50], redis_url, feed)
    told = []

    def work(waiting):
        told.append(waiting)
        answer(store, 10 * len(told))

    with HighWater(redis_url, feed, 40, work) as wait:
        wait(0)
    assert told == [40, 30]


def test_entries_of_another_producer_are_seen_at_the_next_count(store, redis_url, feed):
    told = []
    with HighWater(redis_url, feed, 100, lambda n: (told.append(n), answer(store, 90))) as wait:
        wait(0)
        ingest.push(ROWS[:100], redis_url, feed)  # the other one
        wait(99)
        assert told == []
        wait(100)
    assert told == [100]


def test_a_feed_that_is_reset_while_a_push_waits_is_counted_anew(store, redis_url, feed):
    ingest.push(ROWS[:50], redis_url, feed)
    answer(store, 10)

    told = []

    def reset(waiting):
        told.append(waiting)
        store.call("DEL", store.keys.state, store.keys.input)

    with HighWater(redis_url, feed, 20, reset) as wait:
        wait(0)
    assert told == [20], "it waited, and the reset let it go"


def bytes_beyond(store):
    """Return the bytes of what waits, by reading all of it."""
    cursor = store.call("HGET", store.keys.state, "cursor") or b"0-0"
    found = store.call("XRANGE", store.keys.input, b"(" + cursor, "+")
    return sum(len(part) for _, fields in found for part in fields)


@pytest.mark.parametrize("mark", [0, 10_000])
def test_a_push_waits_for_bytes_as_for_entries(store, redis_url, feed, mark):
    rows, seen = [Row(list(range(i % 60)), "a") for i in range(300)], []

    def work(waiting):
        seen.append(bytes_beyond(store))
        answer(store, store.length(store.keys.input) - waiting // 3)

    with HighWater(redis_url, feed, mark, work, mark_bytes=5_000) as wait:
        wait(0)
        sent = ingest.push(rows, redis_url, feed, pacing=ingest.Pacing(10, wait))
    assert sent == store.length(store.keys.input) == 300
    assert len(seen) > 3
    largest = 10 * max(len(part) for row in rows for part in ingest.encoded(row)) + 100
    assert all(5_000 <= found < 5_000 + largest for found in seen[::2])


def test_one_entry_above_the_mark_of_bytes_is_waited_for(store, redis_url, feed):
    ingest.push([Row([1.0] * 1000, "a")], redis_url, feed)
    told = []
    with HighWater(
        redis_url, feed, 0, lambda n: (told.append(n), answer(store, 1)), mark_bytes=100
    ) as wait:
        wait(0)
    assert told == [1]


def test_large_rows_are_sent_in_chunks_of_few(redis_url, feed, monkeypatch):
    monkeypatch.setattr(ingest, "CHUNK_BYTES", 10_000)
    sent = []
    rows = [Row([1.0] * 1000, "a")] * 9 + [Row([1.0], "a")] * 50
    ingest.push(rows, redis_url, feed, pacing=ingest.Pacing(throttle=lambda *at: sent.append(at)))
    assert [rows for rows, _ in sent] == [3, 6, 9, 59]  # an entry of the first kind has 4,006 bytes
    sizes = [size for _, size in sent]
    assert max(map(sub, sizes, [0, *sizes])) < 10_000 + 4_100


def test_a_refusal_says_how_to_go_on(store, redis_url, feed):
    store.call("SET", store.keys.input, "no stream")
    with (
        HighWater(redis_url, feed, 5, pytest.fail) as wait,
        pytest.raises(PushStopped, match=r"another type.*7 rows were pushed; go on with --skip 7"),
    ):
        wait(7)


def test_the_wait_is_told_once_in_a_while_and_names_the_marks(capsys):
    tell = waiting_progress(1000)
    tell(1234)
    tell(1200)
    waiting_progress(0, 1 << 28)(7)
    waiting_progress(50, 1000)(60)
    waits = "waiting for the worker: "
    assert capsys.readouterr().err.splitlines() == [
        waits + "1,234 entries are beyond its cursor (high water 1,000)",
        waits + "7 entries are beyond its cursor (high water 268,435,456 bytes)",
        waits + "60 entries are beyond its cursor (high water 50 or 1,000 bytes)",
    ]


@pytest.mark.servers("embedded")
def test_the_command_waits_and_says_so(store, redis_url, feed):
    command = ["push", feed, "Phishing", "--limit", "150", "--high-water", "100"]
    with Worker(*command, "--redis", redis_url) as pushing:
        wait_until(lambda: "waiting for the worker: 100 entries" in pushing.said)
        assert store.length(store.keys.input) == 100
        while pushing.poll() is None:
            answer(store, store.length(store.keys.input))
            time.sleep(0.02)
        assert "150 rows pushed" in pushing.said
    assert store.length(store.keys.input) == 150


def test_a_worker_that_answers_all_while_waiting_is_counted_is_not_waited_for(
    store, redis_url, feed
):
    """Nothing more is answered after that: whoever missed it would wait for ever."""
    ingest.push(ROWS[:40], redis_url, feed)

    class AnsweredMeanwhile(HighWater):
        def _waiting(self):
            found = super()._waiting()
            answer(store, 40)
            return found

    def tell(_waiting):
        pytest.fail("it waits for a worker that has nothing left to do")

    with AnsweredMeanwhile(redis_url, feed, 40, tell) as wait:
        wait(0)
