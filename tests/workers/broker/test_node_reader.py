"""The input of many feeds on a Redis Cluster: few connections, nothing lost, a node that fails."""

import time
from contextlib import ExitStack, closing

import pytest
from redis.crc import key_slot
from redis_cluster import finish_move, running_cluster, start_move
from shared_reads import add, next_of, wanted

from workers.broker import node_reader
from workers.broker.connection import Connection
from workers.broker.node_reader import MIN_POLL_SECONDS, NodeReader
from workers.broker.shared_reader import ENTRIES_PER_STREAM
from workers.broker.store import Store
from workers.stop import Stop


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    options = ("--cluster-require-full-coverage", "no")
    directory = tmp_path_factory.mktemp("cluster")
    with running_cluster(directory, *options, replicas=0) as cluster:
        yield cluster


@pytest.fixture
def feeds(cluster, tmp_path):
    """Twelve feeds, four on each node."""
    names = [cluster.feed_on(i % 3, f"{tmp_path.name}-{i}") for i in range(12)]
    with ExitStack() as opened:
        stores = [
            opened.enter_context(Store(cluster.url, name, retry_timeout=10.0)) for name in names
        ]
        assert stores[0].state() is None  # so that the slots are known
        yield stores


@pytest.fixture
def reads(cluster):
    with closing(Connection(cluster.url, Stop())) as reads:
        yield reads


@pytest.fixture
def reader(cluster, reads):
    """One that has no blocked reads."""
    with closing(NodeReader(reads, block_ms=300, blocked=0)) as reader:
        yield reader


def ids(arrival):
    return [entry[0] for entry in arrival.entries]


def test_entries_arrive_once_in_order_over_one_connection_a_node(reader, feeds):
    came, stores = {}, {store.keys.feed: store for store in feeds}
    reader.cover([wanted(store) for store in feeds])
    for number in (1, 2, 3):
        for store in feeds:
            add(store, number)
        while sum(map(len, came.values())) < 12 * number:
            arrived, quiet = next_of(reader)
            assert quiet == []
            for arrival in arrived:
                name = arrival.read.feed
                came.setdefault(name, []).extend(ids(arrival))
                reader.cover([wanted(stores[name], came[name][-1])])
    assert list(came.values()) == [[b"1-0", b"2-0", b"3-0"]] * 12
    assert len(reader.descriptors) <= 3


def test_entries_that_come_when_a_poll_is_due_come_once(reader, feeds):
    stores = {store.keys.feed: store for store in feeds}
    for store in feeds:
        add(store, 1)
    reader.cover([wanted(store) for store in feeds])
    reader.arrivals()  # the first poll
    time.sleep(2 * MIN_POLL_SECONDS)
    came = []
    while len(came) < 24:
        arrived, quiet = reader.arrivals(reader.descriptors)
        assert quiet == []
        for arrival in arrived:
            store, after = stores[arrival.read.feed], ids(arrival)[-1]
            came += ids(arrival)
            reader.cover([wanted(store, after)])
            if after == b"1-0":
                add(store, 2)
    assert sorted(came) == [b"1-0"] * 12 + [b"2-0"] * 12


def test_a_feed_with_more_entries_than_one_read_returns_says_so(reader, feeds):
    add(feeds[4], *range(1, 2 * ENTRIES_PER_STREAM))
    reader.cover([wanted(store) for store in feeds])
    ((arrival,), _) = next_of(reader)
    assert (len(arrival.entries), arrival.may_be_more) == (ENTRIES_PER_STREAM, True)


def test_a_few_feeds_have_blocked_reads_alone(cluster, reads, feeds):
    with closing(NodeReader(reads, block_ms=60_000, blocked=24)) as reader:
        reader.cover([wanted(store) for store in feeds])
        assert (len(reader.descriptors), reader.seconds_left) == (12, float("inf"))
        add(feeds[7], 1)
        ((arrival,), quiet) = next_of(reader)
        assert (arrival.read.feed, quiet) == (feeds[7].keys.feed, [])


def test_busy_feeds_get_the_blocked_reads_that_are_kept_for_them(cluster, reads, feeds):
    with closing(NodeReader(reads, block_ms=60_000, blocked=4)) as reader:
        reader.cover([wanted(store) for store in feeds])
        assert len(reader.descriptors) == 2, "two blocked reads; no node was asked yet"
        add(feeds[11], 1)
        ((arrival,), _) = next_of(reader)
        reader.cover([wanted(feeds[11], ids(arrival)[-1])])
        while len(reader.descriptors) > 3:  # replies on their way
            reader.arrivals(Stop().wait_for(reader.descriptors, 0.01))
        assert len(reader.descriptors) == 3


@pytest.mark.parametrize("fault", ["type", "size", "moved"])
def test_a_stream_that_cannot_be_read_with_the_others_is_to_be_read_alone(
    cluster, reader, feeds, fault, monkeypatch
):
    asked = [wanted(store) for store in feeds]
    alone = {asked[0].feed}
    if fault == "type":
        feeds[0].call("SET", feeds[0].keys.input, "no stream")
    elif fault == "size":
        monkeypatch.setattr(node_reader, "MAX_REPLY_BYTES", 10_000)
        alone = {one.feed for one in asked[::3]}  # all of that node
        feeds[0].call("XADD", feeds[0].keys.input, "1-0", "x", "1" * 100_000)
    reader.cover(asked)
    if fault == "moved":
        slot = key_slot(feeds[0].keys.feed.encode())
        start_move(slot, *cluster.primaries[:2])
        finish_move(slot, *cluster.primaries[:2])
    arrived, quiet = next_of(reader)
    assert {(one.read.feed, bool(one.entries), one.may_be_more) for one in arrived} == {
        (feed, False, True) for feed in alone
    }
    assert quiet == []


def test_the_failure_of_a_node_counts_for_its_feeds_alone(cluster, reader, reads, feeds):
    asked = [wanted(store) for store in feeds]
    reader.cover(asked)
    assert reader.arrivals() == ([], [])
    before = [reads.failures_about(one.key) for one in asked]
    node = cluster.primaries[1]
    node.kill()
    try:
        arrived, quiet = next_of(reader)
        after = [reads.failures_about(one.key) for one in asked]
    finally:
        node.launch()
        node.wait_until_up()
    assert (arrived, quiet) == ([], asked[1::3])
    assert [a != b for a, b in zip(before, after, strict=True)] == [False, True, False] * 4
