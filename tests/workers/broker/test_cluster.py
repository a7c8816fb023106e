"""What only a Redis Cluster does: its slots move, its nodes refuse, each has rights of its own."""

import json
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import published_feed
import pytest
import redis
from fault_redis import Server
from many_feeds import answer_alone, contents, has_answered, running, settings
from redis.crc import key_slot
from redis_cluster import Move, running_cluster
from served_gateway import serving
from threaded_feed import lone_outcome
from world import World, drain, push, rows, wait_until

from workers.admin.reset import reset
from workers.broker import permissions, pipeline
from workers.broker.nodes import node_of, nodes_of
from workers.broker.pipeline import key_of
from workers.broker.store import Store
from workers.errors import Unavailable
from workers.feed.keys import REGISTRY, FeedKeys
from workers.push import ingest
from workers.push.sources import Row

ACL = Path(__file__).parents[3] / "deploy" / "redis" / "users-7.acl"
COUNT = 60
REFUSALS = {
    "MOVED": redis.exceptions.MovedError,
    "ASK": redis.exceptions.AskError,
    "TRYAGAIN": redis.exceptions.TryAgainError,
    "CLUSTERDOWN": redis.exceptions.ClusterDownError,
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def expected():
    return lone_outcome(COUNT, rows()[:COUNT])


@pytest.fixture
def world(cluster, feed, run_command):
    """A feed with input that waits for 20 seconds for a node that is away."""
    name = cluster.feed_on(0, feed)
    with World(cluster.url, name, run_command, retry_timeout=20.0) as world:
        world.push(COUNT)
        yield world


def test_all_keys_of_a_feed_are_on_one_node_and_the_feeds_on_three(cluster):
    held = {}
    for place in range(3):
        with World(cluster.url, cluster.feed_on(place, "placed")) as world:
            world.push(COUNT)
            world.answer().snapshot()
            (held[world.feed],) = set(cluster.keys_of(world.feed).values())
    urls = {feed: f"redis://{node.address}/0" for feed, node in held.items()}
    assert {feed: node_of(cluster.url, FeedKeys(feed).state) for feed in held} == urls
    assert nodes_of(cluster.url).primaries() == sorted(set(urls.values()))
    assert len(set(urls.values())) == 3


def test_every_command_of_a_worker_is_about_one_feed_or_the_list_of_feeds():
    keys = FeedKeys("f")
    others = permissions.of_webhook(keys) + permissions.of_publisher(keys)
    for command in permissions.of_worker(keys, "group") + others:
        key = key_of(command)
        if key is None:
            assert command[0] in ("INFO", "SCAN", "TIME")
        else:
            assert key_slot(key) == key_slot(b"f") or key == REGISTRY.encode()


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


# Slots that move


def test_a_worker_that_waits_for_a_replica_follows_its_slot_to_another_node(
    cluster, world, expected
):
    running = world.session(world.open(wait_replicas=1))
    drain(running, 20)
    move = Move(cluster, world.feed)
    move.finish()
    drain(running, COUNT)
    assert set(cluster.keys_of(world.feed).values()) == {move.target}
    assert world.outcome() == expected


def test_a_commit_waits_until_all_keys_of_its_feed_are_on_one_node(cluster, world, expected):
    hasty = world.open(retry_timeout=0.1)
    running = world.session(hasty)
    drain(running, 20)
    move = Move(cluster, world.feed).keys()
    with pytest.raises(Unavailable, match="refuses for now"):
        drain(running, COUNT)
    assert hasty.retries["tryagain"] >= 1
    assert world.seq == 20
    move.finish()
    world.answer()
    assert world.outcome() == expected


def test_while_a_slot_moves_its_keys_are_read_where_they_are(cluster, world):
    world.answer()
    before = world.outcome()
    move = Move(cluster, world.feed).keys()
    assert world.outcome() == before
    assert world.store._connection.retries == {}
    move.finish()
    assert world.outcome() == before


def test_scores_follow_the_slot_of_their_feed_to_another_node(cluster):
    feed, examples = cluster.feed_on(1, "scored"), published_feed.examples(60)
    with Store(cluster.url, feed, block_ms=20, retry_timeout=20.0) as store:
        published_feed.push(store, examples)
        published_feed.work(published_feed.session(store), 60)
        n = store.publication().n
        own = json.loads(published_feed.own_answer(examples, n, [1, 2, 3], "asked"))
        with serving(cluster.url, feed) as client:

            def scored():
                reply = client.post(f"/feeds/{feed}/scores", {"x": [1, 2, 3], "id": "asked"})
                return reply.status == 200 and reply.json["answers"] == [own]

            wait_until(scored)
            move = Move(cluster, feed)
            move.finish()
            wait_until(scored)
        assert set(cluster.keys_of(feed).values()) == {move.target}


def test_entries_are_appended_once_each_while_the_slot_moves(cluster):
    feed = cluster.feed_on(2, "producer")
    moving = []

    def throttle(sent, _size):
        if sent == 20:
            moving.append(Move(cluster, feed).keys())
        if sent == 60:
            moving[0].finish()

    sent = [Row([i], "a") for i in range(100)]
    pacing = ingest.Pacing(chunk=10, throttle=throttle)
    assert ingest.push(sent, cluster.url, feed, pacing=pacing) == 100
    with Store(cluster.url, feed) as store:
        found = [entry[1][1] for page in store.pages(store.keys.input, b"0-0") for entry in page]
    assert found == [f"[{i}]".encode() for i in range(100)]


@pytest.fixture
def moving(cluster, world):
    """The move of the slot of an answered feed, so far of its snapshots."""
    world.answer(keep_input=True, batch=20, snapshot_every=20).snapshot()
    world.store.register()
    return Move(cluster, world.feed).keys(":snap:")


def test_a_reset_while_the_slot_moves_deletes_nothing_and_says_why(cluster, world, moving):
    before = cluster.keys_of(world.feed).keys()
    code, *said = world.run("reset", world.feed, "--input", "--yes")
    assert code == 2
    assert "refuses for now: Multiple keys request during rehashing" in "".join(said)
    assert cluster.keys_of(world.feed).keys() == before
    moving.finish()
    assert world.run("reset", world.feed, "--input", "--yes")[0] == 0
    assert cluster.keys_of(world.feed).keys() == {world.store.keys.restart_mark}


def test_a_reset_that_begins_while_the_slot_moves_leaves_no_snapshot(cluster, world, moving):
    class Moved(Store):
        """Its slot has moved once something is deleted."""

        is_moved = False

        def call(self, *command):
            if command[0] == "DEL" and not self.is_moved:
                moving.finish()
                self.is_moved = True
            return super().call(*command)

    with Moved(cluster.url, world.feed, retry_timeout=10.0) as store:
        reset(store, with_input=True)
        assert cluster.keys_of(world.feed).keys() == {store.keys.restart_mark}


# Commands that are refused


class Refusing:
    """Refuses the first command of each name and key of some feeds; it was not run then.

    `refused` counts commands by name.
    """

    def __init__(self, cluster, feeds, refusal, monkeypatch):
        self.refused, self._seen, self._lock = Counter(), set(), threading.Lock()
        self._keys = tuple(f"osvm:{{{feed}}}:".encode() for feed in feeds)
        self._send, self._read_reply = pipeline.Pipeline.send, pipeline.Pipeline._read_reply
        self._errors, self._refusal, self._cluster = {}, refusal, cluster
        monkeypatch.setattr(pipeline.Pipeline, "send", lambda link, sent: self.send(link, sent))
        monkeypatch.setattr(
            pipeline.Pipeline, "_read_reply", lambda link, sent: self.parsed(link, sent)
        )

    def send(self, link, sent):
        key = key_of(sent.command)
        one = (sent.command[0], key)
        if key is None or not key.startswith(self._keys) or one in self._seen:
            return self._send(link, sent)
        self._seen.add(one)
        node = self._cluster.node_of(key.decode())
        self._errors[sent] = REFUSALS[self._refusal](f"{key_slot(key)} {node.address}")
        self.refused[sent.command[0]] += 1
        command, sent.command = sent.command, ("PING",)
        replicas, sent.replicas = sent.replicas, 0
        try:
            return self._send(link, sent)
        finally:
            sent.command, sent.replicas = command, replicas

    def parsed(self, link, sent):
        if sent not in self._errors:
            return self._read_reply(link, sent)
        error = self._errors.pop(sent)
        if sent.is_ask:
            link._reply("ASKING")
        link._reply("PING")
        raise error


@pytest.mark.parametrize("refusal", REFUSALS)
def test_feeds_of_a_process_whose_commands_are_refused_answer_the_same(
    cluster, embedded_url, feed, monkeypatch, refusal
):
    names = [cluster.feed_on(place, feed) for place in range(3)]
    with ExitStack() as opened:
        stores = [
            opened.enter_context(Store(cluster.url, name, retry_timeout=20.0)) for name in names
        ]
        for seed, store in enumerate(stores):
            push(store, rows(COUNT, seed)[: COUNT // 2])
            store.register()
        with running([f"{feed}-*"], cluster.url, settings=settings()):
            wait_until(lambda: all(has_answered(store, COUNT // 2) for store in stores))
            with monkeypatch.context() as patched:
                refusing = Refusing(cluster, names, refusal, patched)
                for seed, store in enumerate(stores):
                    push(store, rows(COUNT, seed)[COUNT // 2 :], first=COUNT // 2 + 1)
                wait_until(lambda: all(has_answered(store, COUNT) for store in stores))
        for seed, store in enumerate(stores):
            with Store(embedded_url, f"alone-{store.keys.feed}") as alone:
                push(alone, rows(COUNT, seed))
                answer_alone(alone, COUNT, settings())
                assert contents(alone) == contents(store)
        assert refusing.refused.keys() >= {"EVALSHA", "XADD", "HGETALL"}, refusing.refused


# Rights


@pytest.fixture
def roles(cluster, feed):
    """Lets the users of `deploy/redis` log in; called with a right, it takes that away.

    Their password is another in each test: what a process knows of servers is kept by their URL.
    """

    def let(without=""):
        for node in cluster.nodes:
            for _, name, *allowed in map(str.split, ACL.read_text().splitlines()[2:]):
                rules = [rule for rule in allowed if rule not in ("off", without)]
                node.client.execute_command(
                    "ACL", "SETUSER", name, "reset", *rules, "on", f">{feed}"
                )

    let()
    yield let
    let("+cluster|slots")


@pytest.fixture
def run_as(cluster, feed, roles, run_command):
    """Run a command as the user of a role; return its code and all that it said."""

    def run(role, *arguments):
        url = cluster.url.replace("://", f"://osvm-{role}:{feed}@")
        code, *said = run_command(*arguments, "--redis", url)
        return code, "".join(said)

    return run


def test_each_role_does_its_part_on_every_node_and_no_password_is_shown(cluster, feed, run_as):
    password, feed = feed, cluster.feed_on(2, "roles")
    assert run_as("producer", "push", feed, "Phishing", "--limit", "20")[0] == 0
    assert run_as("worker", "check", feed, "--wait-replicas", "1")[0] == 0
    assert "waiting    20" in run_as("reader", "status", feed)[1]
    code, said = run_as("producer", "check", feed)
    assert (code, password in said) == (2, False), said


@pytest.mark.parametrize(("role", "command"), [
    ("worker", ("check", "FEED", "--classes", "a,b")),
    ("producer", ("push", "FEED", "Phishing", "--limit", "9")),
    ("reader", ("status", "FEED")), ("reader", ("status",)),
])  # fmt: skip
def test_a_user_without_cluster_slots_is_told_in_one_line(cluster, roles, run_as, role, command):
    roles("+cluster|slots")
    feed = cluster.feed_on(1, "denied")
    code, said = run_as(role, *(feed if part == "FEED" else part for part in command))
    assert code == 2
    (complaint,) = [line for line in said.splitlines() if line.startswith("online-svm: ")]
    assert "no permissions to run the 'cluster|slots' command" in complaint
    assert cluster.keys_of(feed) == {}


@pytest.mark.parametrize(("right", "name"), [("+asking", "ASKING"), ("+wait", "WAIT")])
def test_a_worker_names_the_right_that_it_will_need_on_a_cluster(roles, run_as, right, name):
    roles(right)
    code, said = run_as("worker", "check", "f", "--classes", "a,b", "--wait-replicas", "1")
    assert (code, f"does not let this user run {name}: grant that" in said) == (2, True), said


def test_a_reader_without_asking_is_told_so_while_the_slot_moves(world, roles, run_as, moving):
    roles("+asking")
    moving.keys(":st")
    code, said = run_as("reader", "status", world.feed)
    assert (code, "no permissions to run the 'asking' command" in said) == (2, True), said
    moving.finish()
