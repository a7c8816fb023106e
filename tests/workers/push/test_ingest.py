import numpy as np
import orjson
import pytest

from workers.broker import embedded
from workers.errors import Unavailable
from workers.push import ingest
from workers.push.ingest import Pacing, PushRate, PushStopped, encoded, entry, push
from workers.push.sources import Row


def stored(store):
    return [e[1] for e in store.call("XRANGE", store.keys.input, "-", "+")]


def test_a_row_becomes_the_fields_of_an_entry():
    row = Row({"b": 1, "a": 2.5}, "spam", "tx 1")
    assert entry(row) == [b"x", b'{"b":1,"a":2.5}', b"y", "spam", b"id", "tx 1"]
    assert entry(Row([1], "a", s={"country": "FR"}))[-2:] == [b"s", b'{"country":"FR"}']
    assert entry(Row([None, 1.0])) == [b"x", b"[null,1.0]"]
    assert entry(Row(np.array([1.0]).tolist(), "é"))[-1] == "é"
    assert encoded(Row([1], "é")) == [b"x", b"[1]", b"y", "é".encode()]


def test_a_number_is_sent_with_all_its_digits():
    value = 0.1 + 0.2
    assert orjson.loads(entry(Row([value]))[1]) == [value]


@pytest.mark.parametrize("chunk", [1, 3, 500])
def test_all_rows_arrive_in_order_whatever_the_chunk(store, redis_url, feed, chunk):
    told = []
    rows = [Row([i], str(i)) for i in range(10)]
    pacing = Pacing(chunk, lambda sent, _: told.append(sent))
    assert push(iter(rows), redis_url, feed, pacing=pacing) == 10
    assert stored(store) == [[b"x", b"[%d]" % i, b"y", b"%d" % i] for i in range(10)]
    assert told == sorted({min(n, 10) for n in range(chunk, 10 + chunk, chunk)})


def test_nothing_is_pushed_from_an_empty_source(store, redis_url, feed):
    assert push(iter([]), redis_url, feed) == 0
    assert stored(store) == []


def test_a_server_that_is_not_there_is_named(feed):
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1.* does not answer"):
        push([Row([1])], "redis://127.0.0.1:1", feed)


def test_a_server_that_goes_away_leaves_the_number_of_rows_that_are_certain(own_redis):
    def stop(sent, _):
        if sent == 4:
            embedded.stop(own_redis.directory)

    with pytest.raises(PushStopped, match=r"4 rows were pushed, and up to 2 more may have been"):
        push([Row([i]) for i in range(9)], own_redis.url, "f", pacing=Pacing(2, stop))


def test_a_pace_waits_until_the_rows_are_due(monkeypatch):
    now, slept = [100.0], []
    monkeypatch.setattr(ingest.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(ingest.time, "sleep", slept.append)
    pace = PushRate(50.0)
    pace(10)
    now[0] += 1.0
    pace(20)
    assert slept == pytest.approx([0.2, 0.0])


@pytest.mark.parametrize(("rate", "chunk"), [(1.0, 1), (100.0, 10), (1e6, ingest.CHUNK_ENTRIES)])
def test_the_chunk_of_a_pace_is_a_tenth_of_a_second(rate, chunk):
    assert PushRate(rate).chunk == chunk
