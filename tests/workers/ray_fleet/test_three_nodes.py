"""A fleet on a Ray cluster of three nodes that fail, under load: the bytes of lone workers.

Every feed gets an entry each 50 ms. Ray keeps its own state in a Redis beside the head, so that the
head can be restarted.
"""

import os
import signal
import time

import pytest
from fleet_feeds import FLAGS, fleet, fleet_feeds, shards
from processes import Process, free_port
from ray_nodes import cluster
from system_tools import package, redis_server
from world import wait_until

pytestmark = [pytest.mark.scale, pytest.mark.timeout(600)]

FEEDS, COUNT, PAUSE = 8, 6000, 0.05
SERVED = 60.0
"""Seconds in which every feed is to be answered again."""


@pytest.fixture(scope="module")
def state_of_ray(tmp_path_factory):
    """The address of a Redis that keeps the state of a cluster."""
    port = free_port()
    command = [redis_server(7), "--port", str(port), "--bind", "127.0.0.1",
               "--save", "", "--dir", str(tmp_path_factory.mktemp("gcs"))]  # fmt: skip
    with Process(command, stdout=-3):
        yield f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory, state_of_ray):
    package("ray", "pip install 'online-svm[ray]'")
    with cluster([3, 3, 3], tmp_path_factory.mktemp("ray") / "notes", state_of_ray) as three:
        yield three


@pytest.fixture
def where(nodes, own_redis, feed):
    return ("--address", nodes.address, "--redis", own_redis.url, "--name", feed)


@pytest.fixture
def feeds(where, own_redis, feed):
    """Feeds under load and a fleet of four shards; in the end they have the lone workers' bytes."""
    with fleet_feeds(own_redis.url, feed, FEEDS, COUNT) as feeds:
        feeds.push(60)
        code, _, err = fleet(f"{feed}-?", *where, "--replicas", "4", *FLAGS)
        assert code == 0, err
        wait_until(feeds.is_answered, SERVED, "the first entries are answered")
        with feeds.under_load(PAUSE):
            yield feeds
        wait_until(feeds.is_answered, SERVED, "all entries are answered")
        assert feeds.pushed < COUNT, "the load was to go on all the time"
        assert fleet("--replicas", "0", *where)[::2] == (0, "")
        feeds.check(own_redis.url)


def test_a_node_that_is_removed_without_warning_loses_nothing(nodes, feeds, where):
    feeds.wait_until_each_goes_on(SERVED)
    before = {each["shard"]: each["pid"] for each in shards(*where)}
    removed = nodes.remove(0)["removed"]
    took = feeds.wait_until_each_goes_on(SERVED, settle=3.0)
    print(f"node {removed[:6]} removed: every feed is answered after {took:.1f} s")
    after = {each["shard"]: each["pid"] for each in shards(*where)}
    assert before != after, "no actor was on that node"
    nodes.add(3)


def test_a_head_that_is_restarted_interrupts_no_feed(nodes, feeds, where):
    before = shards(*where)
    nodes.restart_head(3.0)
    took = feeds.wait_until_each_goes_on(SERVED)
    print(f"head restarted: every feed is answered after {took:.1f} s")
    after = shards(*where)
    assert [each["pid"] for each in before] == [each["pid"] for each in after]
    assert all(each["problem"] is None for each in after)
    os.kill(after[0]["pid"], signal.SIGKILL)  # it restarts actors again
    feeds.wait_until_each_goes_on(SERVED, settle=1.0)


def test_the_number_of_shards_changes_under_load(feeds, where):
    for number in (7, 2, 5):
        began = time.monotonic()
        code, _, err = fleet("--replicas", str(number), *where)
        assert code == 0, err
        wait_until(lambda number=number: spread(where) == number, SERVED, "feeds are spread anew")
        feeds.wait_until_each_goes_on(SERVED)
        print(f"{number} shards: spread anew after {time.monotonic() - began:.1f} s")


def spread(where):
    """Return the number of shards once they answer all feeds; None before."""
    told = shards(*where)
    stages = [stage for each in told for stage in each.get("feeds", {}).values()]
    return len(told) if stages == ["answering"] * FEEDS else None
