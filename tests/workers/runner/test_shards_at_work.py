"""Processes that answer one shard each: every feed once, and the bytes of a lone worker."""

from contextlib import ExitStack

import pytest
from fleet_feeds import begun, fleet_feeds
from many_feeds import running
from world import wait_until

from workers.feed.selection import Selection, Shard

COUNT = 120


def test_shards_answer_each_feed_once_between_them(redis_url, feed):
    with fleet_feeds(redis_url, feed, 6, COUNT) as feeds, ExitStack() as opened:
        feeds.push(80)
        for index in range(2):
            selection = Selection([f"{feed}-?"], Shard(index, 2).owns)
            opened.enter_context(running([], redis_url, selection=selection))
        wait_until(feeds.is_answered)
        assert [begun(store) for store in feeds.stores] == [[1]] * 6
        opened.close()
        feeds.check(redis_url)


@pytest.mark.parametrize("shard", ["2", "4/4", "auto/0", "1/2/3"])
def test_a_wrong_shard_ends_the_command_in_one_line(run, shard):
    code, _, complaint = run("worker", "a-*", "--shard", shard)
    assert code == 2
    assert complaint.startswith("online-svm: --shard ")
    assert shard in complaint
    assert complaint.count("\n") == 1
