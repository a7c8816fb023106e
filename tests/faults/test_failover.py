"""A primary that dies and a replica that takes its place, with all of its writes or without.

The worker reaches Redis at one address, behind which another server stands after the fail-over.
"""

import pytest
from fault_redis import Proxy, Server
from session_steps import answer_batch
from threaded_feed import refill
from world import COUNT, World, drain, wait_until

from workers.broker.store import Store
from workers.errors import Fenced, Unavailable
from workers.feed.position import MET, OUT, START, chain, parse_id


class Pair:
    """A primary, a replica, the line between them and the address of whichever is primary.

    `world` is the feed as the worker reaches it, `promoted` the feed on the replica.
    """

    def __init__(self, primary, replica):
        self.primary, self.replica = primary, replica
        self.line, self.address = Proxy(primary.port), Proxy(primary.port)
        self.world = World(f"redis://127.0.0.1:{self.address.port}/0", "f", retry_timeout=20.0)
        self.promoted = World(replica.url, "f")
        self.promoted.store.call("REPLICAOF", "127.0.0.1", str(self.line.port))
        self.agree()

    def agree(self):
        """Wait until the replica has all that the primary has."""
        with Store(self.primary.url, "f") as store:
            store.call("SET", "agreed", "1")  # WAIT is about writes of its own connection
            wait_until(lambda: store.call("WAIT", "1", "100") == 1)

    def fail_over(self):
        self.primary.kill()
        self.promoted.store.call("REPLICAOF", "NO", "ONE")
        self.address.target = self.replica.port

    def check_consistent(self, seq):
        """Position, answers and input of the replica belong together."""
        (out, met), position = self.promoted.outcome()
        assert len(out) == position.seq == seq
        assert out[-1][0] == position.cursor
        links = [(OUT, *entry) for entry in out] + [(MET, *entry) for entry in met]
        links.sort(key=lambda link: (parse_id(link[1]), link[0] == MET))
        assert chain(START.digest, links) == position.digest

    def close(self):
        for world in (self.world, self.promoted):
            with world:
                pass
        self.line.close()
        self.address.close()
        self.replica.kill()


@pytest.fixture
def pair(server, direct, tmp_path):
    pair = Pair(server, Server(tmp_path / "replica", "no"))
    yield pair
    pair.close()


def epoch(world):
    return world.store.state().epoch


@pytest.mark.parametrize("restarts", [False, True])
def test_what_the_replica_never_had_is_answered_again_with_the_same_bytes(pair, expected, restarts):
    """The commits of one minute are lost; input and answers went together."""
    running = pair.world.answer(60, snapshot_every=40)
    pair.agree()
    pair.line.is_black_hole = True
    drain(running, 150)  # two snapshots, and input given up, that the replica never hears of
    published = pair.world.payloads()[0]
    pair.fail_over()
    pair.check_consistent(60)
    refill(pair.promoted.store, pair.world.entries)
    if restarts:
        running = pair.world.session()
    drain(running, COUNT)
    assert pair.promoted.outcome() == expected
    assert pair.promoted.payloads()[0][: len(published)] == published, "no answer ever changed"
    assert epoch(pair.promoted) == 2


def test_an_idle_worker_notices_and_answers_what_is_pushed_again(pair):
    """Nothing waits, so no commit would be refused: the lost connection makes it look."""
    running = pair.world.answer(COUNT, snapshot_every=40)
    pair.agree()
    pair.line.is_black_hole = True
    again, pair.world.pushed = pair.world.entries[:20], COUNT
    pair.world.push(again)
    drain(running, COUNT + 20)
    published = pair.world.outcome()
    pair.fail_over()
    pair.check_consistent(COUNT)
    answer_batch(running)  # finds the line cut
    answer_batch(running)
    assert running.position == pair.promoted.store.state().position
    pair.promoted.pushed = COUNT
    pair.promoted.push(again)
    drain(running, COUNT + 20)
    assert pair.promoted.outcome() == published


def test_a_take_over_that_the_replica_never_heard_of_still_leaves_one_writer(pair, expected):
    first = pair.world.answer(50)
    pair.agree()
    pair.line.is_black_hole = True
    second = pair.world.session(pair.world.open())
    drain(second, 100)
    pair.fail_over()
    refill(pair.promoted.store, pair.world.entries)
    assert epoch(pair.promoted) == 1
    drain(second, 150)  # finds an older epoch than its own, and takes the feed over again
    assert epoch(pair.promoted) == 2
    with pytest.raises(Fenced):
        answer_batch(first)
    drain(second, COUNT)
    assert pair.promoted.outcome() == expected


def test_a_primary_without_replicas_takes_no_commit(pair, direct, expected):
    """min-replicas-to-write: what a fail-over can lose is what came within min-replicas-max-lag."""
    running = pair.world.answer(50, batch=1)
    ask = direct.store.call
    ask("CONFIG", "SET", "min-replicas-to-write", "1")
    ask("CONFIG", "SET", "min-replicas-max-lag", "1")
    wait_until(lambda: b"min_slaves_good_slaves:1" in ask("INFO", "replication"))
    pair.line.is_black_hole = True
    wait_until(lambda: b"min_slaves_good_slaves:0" in ask("INFO", "replication"))
    stands = direct.store.state().position
    pair.world.store._connection.retry_timeout = 0.5
    with pytest.raises(Unavailable, match="refuses for now"):
        answer_batch(running)
    assert direct.store.state().position == stands
    assert direct.store.length(direct.store.keys.out) == stands.seq == 50
    pair.fail_over()
    pair.world.store._connection.retry_timeout = 20.0
    refill(pair.promoted.store, pair.world.entries)
    pair.world.answer(COUNT)
    assert pair.promoted.outcome() == expected
