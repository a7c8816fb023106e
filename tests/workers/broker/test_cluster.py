"""Feeds on a Redis Cluster: three primaries, each with a replica, that this file starts."""

import json
from contextlib import ExitStack, closing
from pathlib import Path

import published_feed
import pytest
import redis
from drifting import cheap, inverted
from fault_redis import Server
from many_feeds import answer_alone, contents, has_answered, running, settings
from redis.crc import key_slot
from redis_cluster import finish_move, running_cluster, start_move
from world import drain, outcome, push, rows, session, wait_until

from workers.admin.backup_request import current_backup
from workers.broker import permissions
from workers.broker.feed_reader import FeedReader
from workers.broker.nodes import node_of, nodes_of
from workers.broker.pipeline import key_of
from workers.broker.request_queue import RequestQueue
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.dashboard.follower import Follower
from workers.errors import Unavailable
from workers.feed.keys import REGISTRY, FeedKeys
from workers.monitor.standings import Standings
from workers.push import ingest
from workers.push.sources import Row
from workers.reading.registry import names
from workers.runner import combination
from workers.scorer.asker import Asker
from workers.scorer.newest_state import NewestState
from workers.scorer.scorer import Scorer
from workers.scorer.settings import ScorerSettings
from workers.stop import Stop

ACL = Path(__file__).parents[3] / "deploy" / "redis" / "users-7.acl"
COUNT = 120


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def feeds(cluster):
    """A feed on each primary, answered."""
    found = [cluster.feed_on(place) for place in range(3)]
    for feed in found:
        answer(cluster.url, feed)
    return found


def answer(url, feed, count=COUNT):
    """Fill a feed and answer it, in this process; return what it answered."""
    with Store(url, feed, block_ms=20) as store:
        push(store, rows(count))
        running = session(store, keep_input=True)
        store.register()
        drain(running, count)
        running.snapshot()
        return outcome(store)


def test_a_feed_on_any_node_has_the_bytes_of_one_on_a_lone_server(cluster, feeds, embedded_url):
    found = []
    for feed in feeds:
        with Store(cluster.url, feed) as store:
            found.append(outcome(store))
    assert found == [answer(embedded_url, "clustered-lone")] * 3


def test_all_keys_of_a_feed_are_on_one_node_and_the_feeds_on_three(cluster, feeds):
    nodes = [set(cluster.keys_of(feed).values()) for feed in feeds]
    assert [len(one) for one in nodes] == [1, 1, 1]
    assert len(set.union(*nodes)) == 3
    found = {node_of(cluster.url, FeedKeys(feed).state) for feed in feeds}
    assert found == {f"redis://{node.address}/0" for node in set.union(*nodes)}


def test_the_commands_see_feeds_on_every_node(cluster, feeds, run_command):
    at = ("--redis", cluster.url)
    code, said, told = run_command("status", *at)
    assert code == 0, told
    assert {line.split()[0] for line in said.splitlines()[1:]} >= set(feeds)
    for feed in feeds:
        assert f"{COUNT} entries" in run_command("status", feed, *at)[1]
        assert len(run_command("tail", feed, "--json", "-n", "0", *at)[1].splitlines()) == COUNT
        assert run_command("verify", feed, *at)[0] == 0
        assert run_command("tail", feed, "--stream", "dlq", *at)[0] == 0


def test_push_reaches_the_node_of_the_feed_and_the_list_of_feeds(cluster, run_command):
    feed = cluster.feed_on(1, "pushed")
    code, _, said = run_command("push", feed, "Phishing", "--limit", "30", "--redis", cluster.url)
    assert (code, "30 rows pushed" in said) == (0, True), said
    with Store(cluster.url, feed) as store:
        assert store.length(store.keys.input) == 30
        assert feed in names(store)
        assert run_command("reset", feed, "--input", "--yes", "--redis", cluster.url)[0] == 0
        assert feed not in names(store)


def test_the_page_and_the_endpoint_read_feeds_of_every_node(cluster, feeds):
    follower = Follower(cluster.url)
    follower.read()
    seen = {view.feed: view.seq for view in follower.views()}
    assert {feed: seen[feed] for feed in feeds} == dict.fromkeys(feeds, COUNT)
    follower.stop()
    for feed in feeds:
        standings = Standings(cluster.url)
        assert standings.look({feed: None}, True).lags[feed].entries == 0
        assert standings.trouble is None
        standings.close()


def test_feeds_of_three_slots_are_combined_as_on_a_lone_server(cluster, feeds, embedded_url):
    def combined(url, sources, into):
        replicas = int(url == cluster.url)
        settings = WorkerSettings(wait_replicas=replicas)
        done = combination.run(
            combination.Combined(sources), into, url, settings=settings, once=True
        )
        assert done == 0
        with Store(url, into) as store:
            return outcome(store)

    for feed in feeds[:2]:
        answer(embedded_url, feed)
    into = cluster.feed_on(2, "clustered-both")
    found = combined(cluster.url, feeds[:2], into)
    assert found == combined(embedded_url, feeds[:2], into)
    assert len(found[0][0]) == COUNT


def test_one_process_answers_feeds_of_every_node_as_workers_of_their_own(cluster, embedded_url):
    names = [cluster.feed_on(place, f"together-{place}") for place in (0, 0, 1, 2)]
    names = sorted({*names, *(cluster.feed_on(place, "together") for place in range(3))})
    found, alone = [], []
    with ExitStack() as opened:
        for seed, name in enumerate(names):
            store = opened.enter_context(Store(cluster.url, name))
            push(store, rows(COUNT, seed))
            store.register()
            found.append(store)
            lone = opened.enter_context(Store(embedded_url, f"alone-{name}"))
            push(lone, rows(COUNT, seed))
            answer_alone(lone, COUNT, settings())
            alone.append(contents(lone))
        with running(["together-*"], cluster.url, settings=settings(wait_replicas=1)):
            wait_until(lambda: all(has_answered(store, COUNT) for store in found))
        assert [contents(store) for store in found] == alone


def test_a_pattern_finds_feeds_on_every_primary_that_only_have_input_and_backs_them_up(cluster):
    unlisted = [cluster.feed_on(place, "by-input") for place in range(3)]
    with ExitStack() as opened:
        stores = [opened.enter_context(Store(cluster.url, name)) for name in unlisted]
        for seed, store in enumerate(stores):
            push(store, rows(COUNT, seed))
        assert nodes_of(cluster.url).primaries() == sorted(
            f"redis://{node.address}/0" for node in cluster.primaries
        )
        with running(["by-input-*"], cluster.url):
            wait_until(lambda: all(has_answered(store, COUNT) for store in stores))
            saved = [current_backup(store, 30.0) for store in stores]
        assert set(unlisted) <= set(names(stores[0]))
        assert [(one.backup.position.seq, one.reason) for one in saved] == [(COUNT, None)] * 3


def move_slot(cluster, feed, finish=True):
    """Move the slot of a feed, with its keys, to the next primary; return slot and both nodes."""
    slot = key_slot(feed.encode())
    source = cluster.node_of(f"{{{feed}}}")
    target = next(node for node in cluster.primaries if node is not source)
    start_move(slot, source, target)
    for key in source.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 1000):
        source.client.execute_command("MIGRATE", "127.0.0.1", target.port, key, 0, 5000)
    if finish:
        finish_move(slot, source, target)
    return slot, source, target


def test_a_worker_follows_its_slot_to_another_node(cluster, embedded_url):
    feed = cluster.feed_on(0, "moved")
    with Store(cluster.url, feed, block_ms=20, patience=20.0) as store:
        push(store, rows(COUNT))
        running = session(store)
        drain(running, 40)
        _, _, target = move_slot(cluster, feed)
        drain(running, COUNT)
        assert set(cluster.keys_of(feed).values()) == {target}
        found = outcome(store)
    assert found == answer(embedded_url, "clustered-stays")


def test_scorers_follow_the_slot_of_their_feed_to_another_node(cluster):
    feed, examples = cluster.feed_on(1, "scored"), published_feed.examples(60)
    with Store(cluster.url, feed, block_ms=20, patience=20.0) as store, ExitStack() as opened:
        published_feed.push(store, examples)
        published_feed.work(published_feed.session(store), 60)
        n = store.publication().n
        asker = opened.enter_context(closing(Asker(cluster.url, feed)))
        reader = opened.enter_context(FeedReader(cluster.url, feed, patience=20.0))
        queue = RequestQueue(cluster.url, feed, "one", Stop(), patience=20.0)
        opened.enter_context(closing(queue))
        scorer = Scorer(queue, NewestState(reader), ScorerSettings(), Stop())
        queue.begin()
        for turn in range(2):
            (id,) = asker.send([b"[1,2,3]"])
            assert scorer.turn() == 1
            own = published_feed.own_answer(examples, n, [1, 2, 3], id)
            assert asker.receive([id], timeout=5.0)[id].payload == own
            if turn == 0:
                _, _, target = move_slot(cluster, feed)
        assert set(cluster.keys_of(feed).values()) == {target}


def test_while_a_slot_moves_its_keys_are_read_where_they_are(cluster):
    feed = cluster.feed_on(1, "moving")
    answer(cluster.url, feed)
    with Store(cluster.url, feed) as store:
        before = outcome(store)
        moving = move_slot(cluster, feed, finish=False)
        assert outcome(store) == before
        assert store._connection.retries == {}
        finish_move(*moving)
        assert outcome(store) == before


def test_a_commit_waits_until_all_keys_of_its_feed_are_on_one_node(cluster, embedded_url):
    feed = cluster.feed_on(0, "waiting")
    with Store(cluster.url, feed, block_ms=20, patience=0.1) as store:
        push(store, rows(COUNT))
        running = session(store)
        drain(running, 40)
        moving = move_slot(cluster, feed, finish=False)
        with pytest.raises(Unavailable, match="refuses for now"):
            drain(running, COUNT)
        assert store.retries["tryagain"] >= 1
        assert store.state().position.seq == 40
        finish_move(*moving)
        drain(session(store), COUNT)
        found = outcome(store)
    assert found == answer(embedded_url, "clustered-waits")


def test_alarms_are_committed_listed_and_silenced_as_on_a_lone_server(
    cluster, embedded_url, run_command
):
    def alarmed(url, feed):
        X, y = inverted(900, 450, 900)
        with Store(url, feed, block_ms=20) as store:
            examples = zip(X.tolist(), y, strict=True)
            fields = [["x", json.dumps(x), "y", label] for x, label in examples]
            store.append(store.keys.input, [(f"{i}-0", one) for i, one in enumerate(fields, 1)])
            drain(session(store, batch=64, config=cheap()), 900)
            return [entry for page in store.pages(store.keys.alarms, b"0-0") for entry in page]

    feed = cluster.feed_on(2, "alarmed")
    found = alarmed(cluster.url, feed)
    assert found
    assert found == alarmed(embedded_url, "clustered-alarmed")
    code, said, _ = run_command("tail", feed, "--stream", "alarms", "--redis", cluster.url)
    assert (code, "calibration" in said) == (0, True)
    assert run_command("note", feed, "x", "--silence", "30m", "--redis", cluster.url)[0] == 0


def test_entries_are_appended_once_each_while_the_slot_moves(cluster):
    feed = cluster.feed_on(2, "producer")
    moving = []

    def throttle(sent):
        if sent == 20:
            moving.append(move_slot(cluster, feed, finish=False))
        if sent == 60:
            finish_move(*moving[0])

    sent = [Row([i], "a") for i in range(100)]
    assert ingest.push(sent, cluster.url, feed, throttle=throttle, chunk=10) == 100
    with Store(cluster.url, feed) as store:
        found = [entry[1][1] for page in store.pages(store.keys.input, b"0-0") for entry in page]
    assert found == [f"[{i}]".encode() for i in range(100)]


def test_a_url_of_one_node_names_the_url_to_write(cluster, feeds, run_command):
    for node in cluster.primaries:
        url = f"redis://{node.address}/0"
        for command in (("worker", feeds[0], "--classes", "a,b"), ("check", feeds[0])):
            code, _, said = run_command(*command, "--redis", url)
            assert code == 2
            assert f"is part of a Redis Cluster: write redis+cluster://{node.address}" in said


def test_a_cluster_url_of_a_lone_server_says_what_it_is(tmp_path, run_command):
    server = Server(tmp_path)
    url = f"redis+cluster://127.0.0.1:{server.port}?client_name=hunter2"
    try:
        for command in (("status",), ("worker", "f"), ("push", "f", "Phishing")):
            code, _, said = run_command(*command, "--redis", url)
            assert code == 2
            assert "is not part of a Redis Cluster (cluster-enabled no)" in said
            assert "hunter2" not in said
    finally:
        server.kill()


def test_each_role_does_its_part_on_every_node(cluster, run_command):
    rules = [line.split() for line in ACL.read_text().splitlines()]
    for node in cluster.nodes:
        for _, name, *allowed in rules[2:]:
            allowed = [rule for rule in allowed if rule != "off"]
            node.client.execute_command("ACL", "SETUSER", name, *allowed, "on", ">pw-of-the-test")

    def at(role):
        return "--redis", cluster.url.replace("://", f"://osvm-{role}:pw-of-the-test@")

    feed = cluster.feed_on(2, "roles")
    assert run_command("push", feed, "Phishing", "--limit", "20", *at("producer"))[0] == 0
    assert run_command("check", feed, "--wait-replicas", "1", *at("worker"))[0] == 0
    assert "waiting    20" in run_command("status", feed, *at("reader"))[1]
    code, _, said = run_command("check", feed, *at("producer"))
    assert (code, "pw-of-the-test" in said) == (2, False)


def test_every_command_of_a_worker_is_about_one_feed_or_the_list_of_feeds():
    keys = FeedKeys("f")
    scorers = permissions.of_publisher(keys) + permissions.of_scorer(keys)
    for command in permissions.of_worker(keys, "group") + permissions.of_webhook(keys) + scorers:
        key = key_of(command)
        if key is None:
            assert command[0] in ("INFO", "SCAN", "TIME")
        else:
            assert key_slot(key) == key_slot(b"f") or key == REGISTRY.encode()


def test_no_node_refused_a_command_for_keys_of_several_slots(cluster, feeds):
    assert nodes_of(cluster.url) is nodes_of(cluster.url)
    for node in cluster.primaries:
        assert "errorstat_CROSSSLOT" not in node.client.info("errorstats")
    with redis.Redis(port=cluster.nodes[0].port) as client, pytest.raises(redis.ResponseError):
        client.execute_command("DEL", *(FeedKeys(feed).input for feed in feeds))
    assert "errorstat_CROSSSLOT" in cluster.nodes[0].client.info("errorstats"), "it counts them"
