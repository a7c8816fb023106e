"""Every command that reads or copies a feed does so on a Redis Cluster."""

from contextlib import ExitStack

import pytest
from fleet_feeds import begun, fleet_feeds
from many_feeds import running as many_running
from redis_cluster import running_cluster
from system_tools import package
from world import drain, outcome, push, rows, session, wait_until

from workers.broker.store import Store
from workers.feed.selection import Selection
from workers.reading.registry import names
from workers.runner.shard import Shard

pytestmark = pytest.mark.scale

COUNT = 240


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running_cluster(tmp_path_factory.mktemp("cluster"), replicas=0) as cluster:
        yield cluster


@pytest.fixture
def run(cluster, run_command):
    def invoke(*arguments):
        code, *told = run_command(*arguments, "--redis", cluster.url)
        assert code == 0, told
        return "".join(told)

    return invoke


def test_a_feed_is_exported_forked_saved_restored_explained_and_reset(cluster, run, tmp_path):
    feed, copy = cluster.feed_on(0), cluster.feed_on(2, "copy")
    with Store(cluster.url, feed, block_ms=20) as store:
        push(store, rows(COUNT))
        running = session(store, keep_input=True, snapshot_every=100)
        drain(running, COUNT)
        running.snapshot()
        store.register()
        before = outcome(store)
    assert len(run("export", feed).splitlines()) > COUNT
    run("explain", feed, before[0][0][-1][0].decode())
    run("backup", feed, "--out", str(tmp_path / "saved"))
    run("fork", feed, "--to", copy)
    with Store(cluster.url, copy, block_ms=20) as other:
        drain(session(other, keep_input=True, snapshot_every=100), COUNT)
        assert outcome(other) == before, "a fork has the bytes of its source, on another node"
        assert set(names(other)) == {feed, copy}
    run("reset", feed, "--yes")
    run("restore", feed, str(tmp_path / "saved"))
    with Store(cluster.url, feed) as store:
        assert store.state().position == before[1]
    run("report", copy, "--out", str(tmp_path / "report.html"))
    assert "smaller" in run("backtest", copy, "--set", "smaller:C=0.5")


def test_a_feed_is_archived(cluster, run, tmp_path):
    package("pyarrow", "pip install 'online-svm[archive]'")
    feed = cluster.feed_on(1)
    with Store(cluster.url, feed, block_ms=20) as store:
        push(store, rows(COUNT))
        drain(session(store, keep_input=True), COUNT)
    for added in (COUNT, 0):
        assert f"{added} answers added" in run("export", feed, "--to", str(tmp_path / "archive"))


def test_a_persons_rows_are_erased(cluster, run):
    feed = cluster.feed_on(2, "erased")
    with Store(cluster.url, feed, block_ms=20) as store:
        push(store, [[*row, "id", f"p{i % 40}"] for i, row in enumerate(rows(COUNT))])
        running = session(store, keep_input=True, snapshot_every=100)
        drain(running, COUNT)
        running.snapshot()
        run("erase", feed, "--id", "p7", "--yes")
        kept = [entry[1] for page in store.pages(store.keys.input, b"0-0") for entry in page]
        assert len(kept) == COUNT - COUNT // 40
        assert not [fields for fields in kept if b"p7" in fields]
        push(store, rows(20), first=COUNT + 1)
        drain(session(store, keep_input=True), COUNT + 20)
    assert "identical" in run("verify", feed)


def test_two_shards_answer_each_feed_once_between_them(cluster, embedded_url):
    with fleet_feeds(cluster.url, "sharded", 6, 120) as feeds, ExitStack() as opened:
        feeds.push(80)
        for index in range(2):
            selection = Selection(["sharded-?"], Shard(index, 2).owns)
            opened.enter_context(many_running([], cluster.url, selection=selection))
        wait_until(feeds.is_answered)
        assert [begun(store) for store in feeds.stores] == [[1]] * 6
        opened.close()
        feeds.check(embedded_url)
