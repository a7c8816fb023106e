"""The slot of a feed moves to another node of a Redis Cluster while the feed is at work.

MIGRATE blocks both nodes while it copies one key, so the largest key says how long the feed waits.
"""

import threading
import time

import pytest
from redis.crc import key_slot
from redis_cluster import finish_move, running_cluster, start_move
from replicated_feed import Answering, Filling, lone_outcome
from world import outcome, rows

from workers.broker.store import Store

pytestmark = pytest.mark.scale

COUNT = 900
LARGE = 20_000
"""Bytes of a field that this program passes over; it makes the keys large."""


def padded(count):
    padding = "x" * LARGE
    return [[*fields, "pad", padding] for fields in rows(count)]


def move(feed, source, target, times):
    """Move the keys of a slot one after the other, slowly; note size and seconds of each."""
    slot = key_slot(feed.encode())
    start_move(slot, source, target)
    while keys := source.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
        for key in keys:
            size = source.client.memory_usage(key, samples=0)
            began = time.monotonic()
            source.client.execute_command("MIGRATE", "127.0.0.1", target.port, key, 0, 60_000)
            times.append((time.monotonic() - began, size, key))
            time.sleep(0.05)
    finish_move(slot, source, target)


def test_a_slot_is_moved_there_and_back_under_load(tmp_path):
    with running_cluster(tmp_path) as cluster:
        feed = cluster.feed_on(0)
        worker = Answering(cluster.url, feed)
        producer = Filling(cluster.url, feed, padded(COUNT), pause=0.004)
        source, target = cluster.primaries[:2]
        times = []
        for place in (COUNT // 4, COUNT // 2):
            worker.wait_for(place)
            mover = threading.Thread(target=move, args=(feed, source, target, times))
            mover.start()
            mover.join(60.0)
            assert not mover.is_alive()
            assert set(cluster.keys_of(feed).values()) == {target}
            source, target = target, source
        producer.wait()
        worker.wait_for(COUNT)
        seconds, size, key = max(times)
        print(
            f"\nlongest MIGRATE {seconds * 1000:.0f} ms: {key} of {size / 1e6:.1f} MB; "
            f"longest pause of the answers {worker.longest_pause():.2f} s"
        )
        assert worker.end() is None
        with Store(cluster.url, feed) as store:
            found = outcome(store)
        assert found == lone_outcome(COUNT, padded(COUNT))
        assert dict(found[0][0]) == worker.confirmed
