"""What nodes of a Redis Cluster refuse: each command once, a move under a reset, missing rights."""

import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from many_feeds import answer_alone, contents, has_answered, running, settings
from redis.crc import key_slot
from redis_cluster import finish_move, running_cluster, start_move
from world import drain, outcome, push, rows, session, wait_until

from workers.admin.reset import reset
from workers.broker import pipeline
from workers.broker.pipeline import key_of
from workers.broker.store import Store

ACL = Path(__file__).parents[3] / "deploy" / "redis" / "users-7.acl"

COUNT = 60
REFUSALS = ("MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running_cluster(tmp_path_factory.mktemp("cluster"), replicas=0) as cluster:
        yield cluster


@pytest.fixture
def run(cluster, run_command):
    def invoke(*arguments, user=""):
        url = cluster.url.replace("://", f"://{user}@") if user else cluster.url
        code, *told = run_command(*arguments, "--redis", url)
        return code, "".join(told)

    return invoke


class Refusing:
    """Refuses each command about a feed once; it was not run then. Other feeds are let be.

    Parameters
    ----------
    is_by_name : bool
        Refuse the first command of each name and key alone.

    Attributes
    ----------
    refused : Counter of str
        Commands by name.
    """

    def __init__(self, cluster, feeds, refusal, monkeypatch, is_by_name=False):
        self._is_by_name = is_by_name
        self.refused, self._seen, self._lock = Counter(), set(), threading.Lock()
        self._keys = tuple(f"osvm:{{{feed}}}:".encode() for feed in feeds)
        self._send, self._parsed = pipeline.Pipeline.send, pipeline.Pipeline._parsed
        self._errors, self._refusal, self._cluster = {}, refusal, cluster
        monkeypatch.setattr(pipeline.Pipeline, "send", lambda link, sent: self.send(link, sent))
        monkeypatch.setattr(
            pipeline.Pipeline, "_parsed", lambda link, sent: self.parsed(link, sent)
        )

    def send(self, link, sent):
        key = key_of(sent.command)
        one = (sent.command[0], key) if self._is_by_name else sent
        if key is None or not key.startswith(self._keys) or one in self._seen:
            return self._send(link, sent)
        self._seen.add(one)
        self._errors[sent] = self._error(key)
        self.refused[sent.command[0]] += 1
        command, sent.command = sent.command, ("PING",)
        replicas, sent.replicas = sent.replicas, 0
        try:
            return self._send(link, sent)
        finally:
            sent.command, sent.replicas = command, replicas

    def parsed(self, link, sent):
        if sent not in self._errors:
            return self._parsed(link, sent)
        error = self._errors.pop(sent)
        if sent.is_asking:
            link._reply("ASKING")
        link._reply("PING")
        raise error

    def _error(self, key):
        node = self._cluster.node_of(key.decode())
        return {
            "MOVED": redis.exceptions.MovedError,
            "ASK": redis.exceptions.AskError,
            "TRYAGAIN": redis.exceptions.TryAgainError,
            "CLUSTERDOWN": redis.exceptions.ClusterDownError,
        }[self._refusal](f"{key_slot(key)} {node.address}")


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_session_whose_every_command_is_refused_once_answers_the_same(
    cluster, embedded_url, monkeypatch, refusal
):
    def answered(url, feed):
        with Store(url, feed, block_ms=20, patience=20.0) as store:
            push(store, rows(COUNT))
            with monkeypatch.context() as patched:
                refusing = (
                    Refusing(cluster, [feed], refusal, patched) if url == cluster.url else None
                )
                running = session(store, keep_input=True, batch=20, snapshot_every=30)
                drain(running, COUNT)
                running.snapshot()
            return outcome(store), refusing

    found, refusing = answered(cluster.url, cluster.feed_on(1, refusal.lower()))
    assert found == answered(embedded_url, f"alone-{refusal}")[0]
    assert refusing.refused.keys() >= {"EVALSHA", "XREAD", "HGETALL"} - (
        {"HGETALL"} if refusal in ("ASK", "TRYAGAIN") else set()
    ), refusing.refused


@pytest.mark.parametrize("refusal", REFUSALS)
def test_feeds_of_a_process_whose_commands_are_refused_answer_the_same(
    cluster, embedded_url, monkeypatch, refusal
):
    names = [cluster.feed_on(place, f"many-{refusal.lower()}") for place in range(3)]
    with ExitStack() as opened:
        stores = [opened.enter_context(Store(cluster.url, name, patience=20.0)) for name in names]
        for seed, store in enumerate(stores):
            push(store, rows(COUNT, seed)[: COUNT // 2])
            store.register()
        with running([f"many-{refusal.lower()}-*"], cluster.url, settings=settings()):
            wait_until(lambda: all(has_answered(store, COUNT // 2) for store in stores))
            with monkeypatch.context() as patched:
                refusing = Refusing(cluster, names, refusal, patched, is_by_name=True)
                for seed, store in enumerate(stores):
                    push(store, rows(COUNT, seed)[COUNT // 2 :], first=COUNT // 2 + 1)
                wait_until(lambda: all(has_answered(store, COUNT) for store in stores))
        for seed, store in enumerate(stores):
            with Store(embedded_url, f"alone-{store.keys.feed}") as alone:
                push(alone, rows(COUNT, seed))
                answer_alone(alone, COUNT, settings())
                assert contents(alone) == contents(store)
        assert refusing.refused.keys() >= {"EVALSHA", "XADD", "HGETALL"}, refusing.refused


@pytest.fixture
def moving(cluster):
    """A feed whose snapshots are on the node that its slot moves to; call it to end the move."""
    feed = cluster.feed_on(0, "reset")
    with Store(cluster.url, feed, block_ms=20) as store:
        push(store, rows(COUNT))
        worker = session(store, keep_input=True, batch=20, snapshot_every=20)
        drain(worker, COUNT)
        worker.snapshot()
        store.register()
    slot, (source, target) = key_slot(feed.encode()), cluster.primaries[:2]

    def move(part=""):
        for key in source.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 1000):
            if part in key:
                source.client.execute_command("MIGRATE", "127.0.0.1", target.port, key, 0, 5000)

    def finish():
        move()
        finish_move(slot, source, target)

    start_move(slot, source, target)
    move(":snap:")
    yield feed, finish
    # A node that holds keys of a slot does not give it away.
    for key in target.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 1000):
        target.client.delete(key)
    start_move(slot, target, source)
    finish_move(slot, target, source)


def check_is_reset(cluster, feed):
    """Check that nothing is left but that the feed may begin anew; delete that, so that the slot
    can move back.
    """
    with Store(cluster.url, feed, patience=10.0) as store:
        assert cluster.keys_of(feed).keys() == {store.keys.anew}
        store.call("DEL", store.keys.anew)


def test_a_reset_while_the_slot_moves_deletes_nothing_and_says_why(cluster, run, moving):
    feed, finish = moving
    before = cluster.keys_of(feed).keys()
    code, said = run("reset", feed, "--input", "--yes")
    assert (code, "refuses for now: Multiple keys request during rehashing" in said) == (2, True), (
        said
    )
    assert cluster.keys_of(feed).keys() == before
    finish()
    assert run("reset", feed, "--input", "--yes")[0] == 0
    check_is_reset(cluster, feed)


def test_a_reset_that_begins_while_the_slot_moves_leaves_no_snapshot(cluster, moving):
    feed, finish = moving

    class Moved(Store):
        """Its slot has moved once something is deleted."""

        is_moved = False

        def call(self, *command):
            if command[0] == "DEL" and not self.is_moved:
                finish()
                self.is_moved = True
            return super().call(*command)

    with Moved(cluster.url, feed, patience=10.0) as store:
        reset(store, with_input=True)
    check_is_reset(cluster, feed)


@pytest.fixture
def roles(cluster):
    """Lets the users of `deploy/redis` log in; called with a right, it takes that away."""

    def let(without=""):
        for node in cluster.nodes:
            for _, name, *allowed in map(str.split, ACL.read_text().splitlines()[2:]):
                rules = [rule for rule in allowed if rule not in ("off", without)]
                node.client.execute_command("ACL", "SETUSER", name, "reset", *rules, "on", ">pw")

    let()
    yield let
    let("+cluster|slots")


@pytest.mark.parametrize(("role", "command"), [
    ("worker", ("check", "FEED", "--classes", "a,b")),
    ("producer", ("push", "FEED", "Phishing", "--limit", "9")),
    ("reader", ("status", "FEED")), ("reader", ("status",)), ("scorer", ("scorer", "FEED")),
])  # fmt: skip
def test_a_user_who_may_not_ask_for_the_slots_is_told_so_in_one_line(
    cluster, run, roles, role, command
):
    roles("+cluster|slots")
    feed = cluster.feed_on(1, "denied")
    command = [feed if part == "FEED" else part for part in command]
    code, said = run(*command, user=f"osvm-{role}:pw")
    assert code == 2
    (complaint,) = [line for line in said.splitlines() if line.startswith("online-svm: ")]
    assert "no permissions to run the 'cluster|slots' command" in complaint
    assert cluster.keys_of(feed) == {}


@pytest.mark.parametrize(("right", "name"), [("+asking", "ASKING"), ("+wait", "WAIT")])
def test_a_worker_names_the_right_that_it_will_need_on_a_cluster(cluster, run, roles, right, name):
    roles(right)
    code, said = run(
        "check", "f", "--classes", "a,b", "--wait-replicas", "1", user="osvm-worker:pw"
    )
    assert (code, f"does not let this user run {name}: grant that" in said) == (2, True), said


def test_a_reader_without_asking_is_told_so_while_the_slot_moves(cluster, run, roles, moving):
    feed, finish = moving
    roles("+asking")
    source, target = cluster.primaries[:2]
    source.client.execute_command(
        "MIGRATE", "127.0.0.1", target.port, f"osvm:{{{feed}}}:st", 0, 5000
    )
    code, said = run("status", feed, user="osvm-reader:pw")
    assert (code, "no permissions to run the 'asking' command" in said) == (2, True), said
    finish()
