"""A fleet on a Ray cluster of one node, from start to stop."""

import os
import signal

import pytest
from fleet_feeds import FLAGS, fleet, fleet_feeds, shards, status
from world import wait_until

COUNT = 120


@pytest.mark.slow
def test_actors_answer_feeds_outlive_a_kill_and_leave_snapshots_when_stopped(node, own_redis, feed):
    where = ("--address", node.address, "--redis", own_redis.url, "--name", feed)
    with fleet_feeds(own_redis.url, feed, 4, COUNT) as feeds:
        feeds.push(40)
        code, out, err = fleet(f"{feed}-?", *where, "--replicas", "2", *FLAGS)
        assert code == 0, err
        lines = [line.split(":")[0] for line in out.splitlines()]
        assert [line for line in lines if not line.startswith("  ")] == ["shard 0", "shard 1"]
        wait_until(feeds.is_answered)
        before = shards(*where)
        os.kill(before[0]["pid"], signal.SIGKILL)
        feeds.push(40)
        wait_until(feeds.is_answered)
        after = shards(*where)
        assert after[0]["pid"] != before[0]["pid"]
        assert after[1]["pid"] == before[1]["pid"]
        assert [sorted(each["feeds"]) for each in after] == [
            sorted(each["feeds"]) for each in before
        ]
        code, _, err = fleet(f"{feed}-?", *where)
        assert (code, "changes: settings: {" in err, "from now on {}" in err) == (0, True, True)
        assert fleet("--replicas", "0", *where)[::2] == (0, "")
        assert status(*where)[0] == 2
        feeds.check(own_redis.url)
        for store in feeds.stores:
            assert store.state().snapshot.cursor == store.state().position.cursor
            assert store.call("GET", store.keys.lease) is None
