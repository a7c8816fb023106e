"""What a feed is promised holds on each kind of servers, and on each node of a Cluster."""

import json
from contextlib import ExitStack, contextmanager

import pytest
import redis
from drifting import cheap, inverted
from many_feeds import answer_alone, contents, has_answered, running, settings
from redis_cluster import feed_on
from threaded_feed import lone_outcome
from world import World, drain, push, rows, wait_until

from workers.broker.store import Store
from workers.dashboard.follower import Follower
from workers.feed.keys import FeedKeys
from workers.monitor.health import StatusCache
from workers.reading.registry import names
from workers.recording.backup import backup

pytestmark = pytest.mark.servers("embedded", "oldest", "cluster", "sentinel")

COUNT = 120


@contextmanager
def opened(url, feeds, run_command=None):
    with ExitStack() as stack:
        yield [stack.enter_context(World(url, feed, run_command)) for feed in feeds]


@pytest.fixture
def worlds(redis_url, feed, run_command):
    """Three feeds that do not exist yet: on a Cluster, one on each primary."""
    with opened(redis_url, [feed_on(place, feed) for place in range(3)], run_command) as worlds:
        yield worlds


@pytest.fixture
def answered(worlds):
    for world in worlds:
        world.push(COUNT)
        world.answer(keep_input=True).snapshot()
        world.store.register()
    return worlds


@pytest.fixture(autouse=True)
def _no_keys_of_several_slots(request, redis_url):
    """Let no test send a node of the Cluster one command for keys of several slots."""
    yield
    if redis_url.startswith("redis+cluster"):
        assert refusals(request.getfixturevalue("cluster")) == [False] * 3


def refusals(cluster):
    """Return of each primary whether it refused a command for keys of several slots."""
    found = [node.client.info("errorstats") for node in cluster.primaries]
    return ["errorstat_CROSSSLOT" in errors for errors in found]


@pytest.fixture(scope="module")
def expected():
    return lone_outcome(COUNT, rows()[:COUNT])


def test_a_feed_has_the_bytes_of_a_lone_server(answered, expected):
    assert [world.outcome() for world in answered] == [expected] * 3


def test_the_commands_see_every_feed(answered):
    world = answered[0]
    code, said, told = world.run("status")
    assert code == 0, told
    feeds = {world.feed for world in answered}
    assert set(said.split()) >= feeds
    for feed in feeds:
        assert f"{COUNT} entries" in world.run("status", feed)[1]
        assert len(world.run("tail", feed, "--json", "-n", "0")[1].splitlines()) == COUNT
        assert world.run("verify", feed)[0] == 0
        assert world.run("tail", feed, "--stream", "dlq")[0] == 0


def test_push_fills_a_feed_and_lists_it_until_a_reset(worlds):
    for world in worlds:
        code, _, said = world.run("push", world.feed, "Phishing", "--limit", "30")
        assert (code, "30 rows pushed" in said) == (0, True), said
        assert world.store.length(world.store.keys.input) == 30
        assert "waiting    30" in world.run("status", world.feed)[1]
        assert "a worker may begin" in world.run("check", world.feed)[2]
        assert world.feed in names(world.store)
        assert world.run("reset", world.feed, "--input", "--yes")[0] == 0
        assert world.feed not in names(world.store)


def test_the_page_and_the_endpoint_read_every_feed(answered, redis_url):
    feeds = [world.feed for world in answered]
    follower, cache = Follower(redis_url), StatusCache(redis_url)
    follower.read()
    seen = {one.feed: one.status.seq for one in follower.shown()}
    assert {feed: seen[feed] for feed in feeds} == dict.fromkeys(feeds, COUNT)
    found = cache.get(feeds, True)
    assert {feed: one.waiting for feed, one in found.items()} == dict.fromkeys(feeds, 0)
    assert cache.trouble is None
    follower.stop()
    cache.close()


def test_one_process_finds_feeds_by_their_input_answers_them_and_saves_each_on_demand(
    worlds, feed, own_redis, tmp_path
):
    for seed, world in enumerate(worlds):
        push(world.store, rows(COUNT, seed))
    with running([f"{feed}-*"], worlds[0].url):
        wait_until(lambda: all(has_answered(world.store, COUNT) for world in worlds))
        saved = [backup(one.store, tmp_path / one.feed, seconds=30.0) for one in worlds]
    assert [(one.snapshot.seq, one.reason) for one in saved] == [(COUNT, None)] * 3
    assert {world.feed for world in worlds} <= set(names(worlds[0].store))
    for seed, world in enumerate(worlds):
        with Store(own_redis.url, world.feed) as alone:
            push(alone, rows(COUNT, seed))
            answer_alone(alone, COUNT, settings())
            assert contents(world.store) == contents(alone)


def test_alarms_are_committed_listed_and_silenced_as_on_a_lone_server(world, own_redis):
    def alarmed(world):
        X, y = inverted(900, 450, 900)
        examples = zip(X.tolist(), y, strict=True)
        world.push([["x", json.dumps(x), "y", label] for x, label in examples])
        world.answer(config=cheap(), batch=64)
        return [entry for page in world.store.pages(world.store.keys.alarms, b"0-0")
                for entry in page]  # fmt: skip

    found = alarmed(world)
    assert found
    with World(own_redis.url, world.feed) as alone:
        assert found == alarmed(alone)
    code, said, _ = world.run("tail", world.feed, "--stream", "alarms")
    assert (code, "announced" in said) == (0, True)
    assert world.run("note", world.feed, "x", "--silence", "30m")[0] == 0


@pytest.mark.scale
@pytest.mark.servers("cluster", "sentinel")
def test_a_feed_is_exported_forked_saved_restored_explained_and_reset(answered, tmp_path):
    source, copy, _ = answered
    feed, before = source.feed, source.outcome()

    def run(*arguments):
        code, *told = source.run(*arguments)
        assert code == 0, told
        return "".join(told)

    assert len(run("export", feed).splitlines()) > COUNT
    run("explain", feed, before[0][0][-1][0].decode())
    run("backup", feed, str(tmp_path / "saved"))
    run("reset", copy.feed, "--input", "--yes")
    run("fork", feed, "--to", copy.feed)
    drain(copy.session(keep_input=True), COUNT)
    assert copy.outcome() == before, "a fork has the bytes of its source, on another node"
    assert {feed, copy.feed} <= set(names(copy.store))
    run("reset", feed, "--yes")
    run("restore", feed, str(tmp_path / "saved"))
    assert source.store.state().position == before[1]
    run("report", copy.feed, "--out", str(tmp_path / "report.html"))
    assert "smaller" in run("backtest", copy.feed, "--set", "smaller:C=0.5")


@pytest.mark.servers("cluster")
def test_a_command_for_keys_of_several_slots_is_counted_where_it_is_refused(cluster, redis_url):
    node = cluster.primaries[0]
    keys = [FeedKeys(feed_on(place)).input for place in range(3)]
    with pytest.raises(redis.ResponseError, match="same slot"):
        node.client.execute_command("DEL", *keys)
    assert refusals(cluster) == [True, False, False]
    node.client.config_resetstat()
