"""Many feeds on a Redis Cluster, in one process: the answers are the same."""

from contextlib import closing

import pytest
from many_feeds import alone, contents, fill, running, settings, wait_for
from posted_alarms import raise_alarms
from redis_cluster import running_cluster
from world import push, rows, wait_until

from workers.broker.store import Store
from workers.monitor import webhook
from workers.monitor.watch import WorkerWatch
from workers.monitor.webhook import Webhooks

pytestmark = pytest.mark.scale


def test_feeds_on_three_primaries_have_the_bytes_of_workers_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(webhook, "ROUND", 1)  # nothing tells of alarms that no worker raised
    with running_cluster(tmp_path) as cluster:
        names = [cluster.feed_on(place) for place in range(3)]
        names += [f"{names[0]}-{i}" for i in range(77)]  # more than have blocked reads
        stores = [Store(cluster.url, name, block_ms=20) for name in names]
        for seed, store in enumerate(stores):
            fill(rows(80, seed)[:60], store)
        webhooks = Webhooks(cluster.url)
        posts = settings(alarm_url="http://127.0.0.1:1/")
        watch = WorkerWatch(webhooks=webhooks)
        with running(["*"], cluster.url, settings=posts, watch=watch), closing(webhooks):
            wait_for(60, *stores)
            for store in stores:
                raise_alarms(store, 1, first=10**15, closed=False)
            told = [record.posts for record in watch.feeds.values()]
            wait_until(lambda: all(one.failures["ConnectionRefusedError"] for one in told))
            assert len(told) == len(stores)
            for store in stores:  # so that the outputs are those of a feed without alarms
                store.call("DEL", store.keys.alarms)
            for seed, store in enumerate(stores):
                push(store, rows(80, seed)[60:], first=61)
            wait_for(80, *stores)
        for seed, store in enumerate(stores):
            assert contents(store) == alone(cluster.url, rows(80, seed))
            store.close()
