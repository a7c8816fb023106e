"""Blocked reads over many feeds: what arrives, what a wrong stream or a large entry does."""

import time

import pytest

from workers.broker.batch_size import BatchSize
from workers.broker.connection import Connection
from workers.broker.store import Store
from workers.runner import shared_reader
from workers.runner.shared_reader import SharedReader, Wanted
from workers.session.read_ahead import InputReader
from workers.stop import Stop


@pytest.fixture
def feeds(redis_url, feed):
    stores = [Store(redis_url, f"{feed}-{i}", block_ms=20) for i in range(12)]
    yield stores
    for store in stores:
        store.close()


@pytest.fixture
def reader(redis_url):
    stop = Stop()
    reads = Connection(redis_url, stop)
    reader = SharedReader(redis_url, stop, reads, block_ms=300, together=4, spare=2)
    yield reader
    reader.close()
    reads.close()


def wanted(store, cursor=b"0-0"):
    return Wanted(
        store.keys.feed, store.keys.input, cursor, InputReader(store, BatchSize(64, 1 << 20))
    )


def next_of(reader, seconds=10.0):
    """Return what the next reads bring, and for whom nothing came."""
    stop, deadline = Stop(), time.monotonic() + seconds
    while time.monotonic() < deadline:
        ready = stop.wait_for(reader.descriptors, 0.1)
        found = reader.arrivals(ready)
        if found != ([], []):
            return found
    raise AssertionError("nothing ended")


def test_an_entry_wakes_the_read_that_covers_its_stream_and_no_other(reader, feeds):
    asked = [wanted(store) for store in feeds[:8]]
    reader.cover(asked)
    feeds[5].call("XADD", feeds[5].keys.input, "1-0", "x", "[1]")
    arrived, quiet = next_of(reader)
    assert [(one.wanted, one.entries, one.may_be_more) for one in arrived] == [
        (asked[5], [[b"1-0", [b"x", b"[1]"]]], False)
    ]
    assert quiet == [asked[4], *asked[6:8]]


def test_a_stream_with_more_than_a_read_returns_is_told(reader, feeds):
    for i in range(40):
        feeds[0].call("XADD", feeds[0].keys.input, f"{i + 1}-0", "x", "[1]")
    reader.cover([wanted(feeds[0])])
    ((arrival,), _) = next_of(reader)
    assert arrival.may_be_more
    assert len(arrival.entries) == shared_reader.COUNT


def test_after_a_wait_without_input_all_are_quiet(reader, feeds):
    asked = [wanted(store) for store in feeds[:3]]
    reader.cover(asked)
    assert next_of(reader) == ([], asked)


@pytest.mark.parametrize("fault", ["type", "size"])
def test_where_one_stream_cannot_be_read_with_the_others_each_is_to_be_read_alone(
    reader, feeds, fault, monkeypatch
):
    monkeypatch.setattr(shared_reader, "LIMIT", 10_000)
    if fault == "type":
        feeds[1].call("SET", feeds[1].keys.input, "no stream")
    else:
        feeds[1].call("XADD", feeds[1].keys.input, "1-0", "x", "1" * 100_000)
    asked = [wanted(store) for store in feeds[:3]]
    reader.cover(asked)
    arrived, quiet = next_of(reader)
    assert [(one.wanted, one.entries, one.may_be_more) for one in arrived] == [
        (one, [], True) for one in asked
    ]
    assert quiet == []


def test_feeds_that_come_one_by_one_are_covered_by_few_reads(reader, feeds):
    for store in feeds[:2]:
        reader.cover([wanted(store)])
    assert not reader.has_room
    began = time.monotonic()
    _, quiet = next_of(reader)
    assert time.monotonic() - began < 0.25, "the last one ends before the others"
    assert reader.has_room
    reader.cover([*quiet, *(wanted(store) for store in feeds[2:])])
    assert len(reader.descriptors) <= 5


def test_a_broken_connection_is_counted_and_its_feeds_are_quiet(redis_url, feeds, feed):
    reads = Connection(redis_url, Stop())
    broken = SharedReader("unix:///nowhere/redis.sock", Stop(), reads, block_ms=300)
    asked = [wanted(feeds[0])]
    broken.cover(asked)
    assert broken.arrivals() == ([], asked)
    assert reads.failures == 1
    broken.close()


def awakened(reader, stores, number):
    """Give each stream an entry, and read it; return what is to be covered again."""
    again = []
    for store in stores:
        store.call("XADD", store.keys.input, f"{number}-0", "x", "[1]")
    deadline = time.monotonic() + 10.0
    while len({one.feed for one in again}) < len(stores) and time.monotonic() < deadline:
        arrived, quiet = next_of(reader)
        again += [wanted(stores[int(one.wanted.feed[-1])], b"%d-0" % number) for one in arrived]
        reader.cover(quiet)
    return again


def test_streams_that_had_entries_are_covered_by_reads_of_a_few(redis_url, feeds, monkeypatch):
    monkeypatch.setattr(shared_reader, "FEW", 4)
    stop, stores = Stop(), feeds[:10]
    with_room = SharedReader(redis_url, stop, Connection(redis_url, stop), together=64, spare=64)
    with_room.cover([wanted(store) for store in stores])
    assert len(with_room.descriptors) == 1
    again = awakened(with_room, stores, 1)
    with_room.cover(again)
    assert len(with_room.descriptors) == 3
    stores[0].call("XADD", stores[0].keys.input, "2-0", "x", "[1]")
    arrived, quiet = next_of(with_room)
    assert [one.wanted for one in arrived] == [again[0]]
    assert len(quiet) == 3
    with_room.close()


def test_where_connections_are_few_reads_of_busy_streams_cover_more(redis_url, feeds, monkeypatch):
    monkeypatch.setattr(shared_reader, "FEW", 4)
    stop, stores = Stop(), feeds[:10]
    narrow = SharedReader(redis_url, stop, Connection(redis_url, stop), together=64, spare=2)
    narrow.cover([wanted(store) for store in stores])
    narrow.cover(awakened(narrow, stores, 1))
    assert len(narrow.descriptors) == 1
    narrow.close()
