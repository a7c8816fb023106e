"""Blocked reads over many feeds: what arrives, what a wrong stream or a large entry does."""

from contextlib import closing

import pytest
from shared_reads import add, next_of, wanted

from workers.broker import shared_reader
from workers.broker.connection import Connection
from workers.broker.shared_reader import SharedReader
from workers.stop import Stop


@pytest.fixture
def twelve(feeds):
    return feeds(*range(12))


FOR_EVER = 60_000
"""Milliseconds: what ends then does not end within a test."""


@pytest.fixture
def reader(redis_url, request):
    block, stop = getattr(request, "param", FOR_EVER), Stop()
    with (
        closing(Connection(redis_url, stop)) as reads,
        closing(SharedReader(reads, block, streams_per_read=4, spare=2)) as reader,
    ):
        yield reader


def test_an_entry_wakes_the_read_that_covers_its_stream_and_no_other(reader, twelve):
    asked = [wanted(store) for store in twelve[:8]]
    reader.cover(asked)
    add(twelve[5], 1)
    arrived, quiet = next_of(reader)
    assert [(one.read, one.entries, one.may_be_more) for one in arrived] == [
        (asked[5], [[b"1-0", [b"x", b"[1]"]]], False)
    ]
    assert quiet == [asked[4], *asked[6:8]]


def test_a_stream_with_more_than_a_read_returns_is_told(reader, twelve):
    add(twelve[0], *range(1, 41))
    reader.cover([wanted(twelve[0])])
    ((arrival,), _) = next_of(reader)
    assert arrival.may_be_more
    assert len(arrival.entries) == shared_reader.ENTRIES_PER_STREAM


@pytest.mark.parametrize("reader", [20], indirect=True)
def test_after_a_wait_without_input_all_are_quiet(reader, twelve):
    asked = [wanted(store) for store in twelve[:3]]
    reader.cover(asked)
    assert next_of(reader) == ([], asked)


@pytest.mark.parametrize("fault", ["type", "size"])
def test_beside_an_unreadable_stream_each_is_read_alone(reader, twelve, fault, monkeypatch):
    monkeypatch.setattr(shared_reader, "MAX_REPLY_BYTES", 10_000)
    if fault == "type":
        twelve[1].call("SET", twelve[1].keys.input, "no stream")
    else:
        twelve[1].call("XADD", twelve[1].keys.input, "1-0", "x", "1" * 100_000)
    asked = [wanted(store) for store in twelve[:3]]
    reader.cover(asked)
    arrived, quiet = next_of(reader)
    assert [(one.read, one.entries, one.may_be_more) for one in arrived] == [
        (one, [], True) for one in asked
    ]
    assert quiet == []


def test_feeds_that_come_one_by_one_are_covered_by_few_reads(reader, twelve):
    for store in twelve[:2]:
        reader.cover([wanted(store)])
    assert not reader.has_room
    _, quiet = next_of(reader)
    assert [one.feed for one in quiet] == [twelve[1].keys.feed], "the last one ends soon"
    assert reader.has_room
    reader.cover([*quiet, *(wanted(store) for store in twelve[2:])])
    assert len(reader.descriptors) <= 5


def test_a_broken_connection_is_counted_and_its_feeds_are_quiet(twelve):
    reads = Connection("unix:///nowhere/redis.sock", Stop())
    broken = SharedReader(reads, block_ms=300)
    asked = [wanted(twelve[0])]
    broken.cover(asked)
    assert broken.arrivals() == ([], asked)
    assert reads.failures == 1
    broken.close()


def awakened(reader, stores, number):
    """Give each stream an entry, and read it; return what is to be covered again."""
    again = []
    for store in stores:
        add(store, number)
    while len({one.feed for one in again}) < len(stores):
        arrived, quiet = next_of(reader)
        again += [wanted(stores[int(one.read.feed[-1])], b"%d-0" % number) for one in arrived]
        reader.cover(quiet)
    return again


@pytest.mark.parametrize(("spare", "expected"), [(64, [1, 3]), (2, [1, 1])], ids=["many", "few"])
def test_busy_streams_are_covered_by_reads_of_a_few_where_connections_are_many(
    redis_url, twelve, monkeypatch, spare, expected
):
    monkeypatch.setattr(shared_reader, "BUSY_STREAMS_PER_READ", 4)
    stop, stores = Stop(), twelve[:10]
    reads = Connection(redis_url, stop)
    with closing(SharedReader(reads, FOR_EVER, streams_per_read=64, spare=spare)) as reader:
        reader.cover([wanted(store) for store in stores])
        found = [len(reader.descriptors)]
        again = awakened(reader, stores, 1)
        reader.cover(again)
        assert [*found, len(reader.descriptors)] == expected
        add(stores[0], 2)
        arrived, quiet = next_of(reader)
        assert [one.read for one in arrived] == [again[0]]
        assert len(quiet) == (3 if spare > 2 else 9)
