"""How fast feeds are answered on a Redis Cluster, beside one server in the same run."""

import statistics
import time

import pytest
from drifting import cheap
from fault_redis import Server
from redis_cluster import running_cluster
from session_steps import advance
from system_tools import redis_server
from world import rows, session

from workers.broker.store import Store

pytestmark = pytest.mark.scale

COUNT = 4000
PAIRS = 6
"""The first of them loads what both use, and does not count."""


def answered(url, feed, wait_replicas=0):
    """Fill a feed and answer it; return examples a second, and the digest."""
    with Store(url, feed, block_ms=20, wait_replicas=wait_replicas) as store:
        store.append(store.keys.input, [(f"{i + 1}-0", row) for i, row in enumerate(rows(COUNT))])
        running = session(store, batch=256, keep_input=True, config=cheap())
        began = time.perf_counter()
        while running.position.seq < COUNT:
            advance(running)
        return COUNT / (time.perf_counter() - began), running.position.digest


def test_a_cluster_answers_nearly_as_fast_as_one_server_with_the_same_bytes(tmp_path):
    lone = Server(tmp_path / "lone", program=redis_server(7))
    rates = []
    try:
        with running_cluster(tmp_path) as cluster:
            modes = ((lone.url, 0), (cluster.url, 0), (cluster.url, 1))
            for i in range(PAIRS):
                order = modes if i % 2 else modes[::-1]  # what runs first is a little slower
                found = {
                    mode: answered(mode[0], cluster.feed_on(i % 3, f"f{i}-{mode[1]}"), mode[1])
                    for mode in order
                }
                assert len({digest for _, digest in found.values()}) == 1
                rates.append([found[mode][0] for mode in modes])
    finally:
        lone.kill()
    ratios = [statistics.median(rate[i] / rate[0] for rate in rates[1:]) for i in (1, 2)]
    print(
        f"\none server {statistics.median(rate[0] for rate in rates[1:]):,.0f} examples a second; "
        f"a cluster {ratios[0]:.2f} of that, with wait_replicas = 1 {ratios[1]:.2f}"
    )
    assert min(ratios) > 0.2
