"""A Redis behind Sentinel: the primary is the one that the sentinels name, before and after."""

import time

import pytest
from redis_cluster import running_watched
from threaded_feed import Answering, Filling, lone_outcome
from world import outcome, rows, wait_until

from workers.broker.nodes import nodes_of
from workers.broker.store import Store

COUNT = 300


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    with running_watched(tmp_path_factory.mktemp("sentinel")) as watched:
        yield watched


def test_a_service_that_is_not_watched_and_a_sentinel_asked_for_data_are_named(
    watched, run_command
):
    sentinel = watched.url.partition("+sentinel")[2].partition(",")[0]
    for url, told in (
        (watched.url.replace("/main", "/mian"), "the sentinels know no service 'mian'"),
        (f"redis{sentinel}", "the URL of a Sentinel is redis+sentinel://HOST:PORT/SERVICE"),
    ):
        code, _, said = run_command("status", "--redis", url)
        assert (code, told in said) == (2, True), said


def test_a_sentinel_that_is_behind_leads_to_no_replica(watched):
    """It names the replica; ROLE says that this is no primary."""
    nodes, primary = nodes_of(watched.url), watched.primary()
    replica = next(node for node in watched.nodes if node is not primary)
    nodes._url = f"redis://{replica.address}/0"
    with Store(watched.url, "behind", retry_timeout=10.0) as store:
        assert store.call("ROLE")[0] == b"master"
        assert store.retries == {"readonly": 1}
    assert nodes._url == f"redis://{primary.address}/0"


@pytest.mark.scale
def test_the_primary_is_killed_under_load_and_nothing_acknowledged_is_lost(tmp_path):
    with running_watched(tmp_path, replicas=2, down_after=500) as watched:
        worker = Answering(watched.url, "f", wait_replicas=1)
        producer = Filling(watched.url, "f", rows(COUNT), replicas=1, pause=0.01)
        worker.wait_for(COUNT // 4)
        primary = watched.primary()
        killed = time.monotonic()
        primary.kill()
        promoted = wait_until(lambda: watched.primary() is not None, 60, "a replica is promoted")
        producer.wait()
        worker.wait_for(COUNT)
        first = min(at for at in worker.times if at > killed + 0.2)
        print(f"\npromoted {promoted:.1f} s, confirmed again {first - killed:.1f} s after the kill")
        assert worker.end() is None
        with Store(watched.url, "f") as store:
            found = outcome(store)
        assert found == lone_outcome(COUNT)
        assert dict(found[0][0]) == worker.confirmed
