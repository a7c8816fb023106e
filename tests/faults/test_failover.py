"""A primary that dies and a replica that takes its place, with all of its writes or without.

The worker reaches Redis at one address, behind which another server stands after the fail-over.
"""

import pytest
from fault_proxy import Proxy
from fault_redis import Server
from session_steps import answer_batch
from world import COUNT, drain, outcome, payloads, push, session, wait_until

from workers.broker.store import Store
from workers.errors import Fenced, Unavailable
from workers.feed.position import MET, OUT, START, chain, parse_id


class Pair:
    """A primary, a replica, the line between them and the address of whichever is primary."""

    def __init__(self, primary, replica):
        self.primary, self.replica = primary, replica
        self.line, self.address = Proxy(primary.port), Proxy(primary.port)
        self.url = f"redis://127.0.0.1:{self.address.port}/0"
        with Store(replica.url, "f") as store:
            store.call("REPLICAOF", "127.0.0.1", str(self.line.port))
        self.agree()

    def agree(self):
        """Wait until the replica has all that the primary has."""
        with Store(self.primary.url, "f") as store:
            wait_until(lambda: store.call("WAIT", "1", "100") == 1)

    def cut(self):
        """From now on nothing of what the primary sends arrives."""
        self.line.is_black_hole = True

    def fail_over(self):
        """Kill the primary and promote the replica."""
        self.primary.kill()
        with Store(self.replica.url, "f", patience=10.0) as store:
            store.call("REPLICAOF", "NO", "ONE")
        self.address.target = self.replica.port

    def close(self):
        self.line.close()
        self.address.close()
        self.replica.kill()


@pytest.fixture
def pair(server, direct, tmp_path):
    pair = Pair(server, Server(tmp_path / "replica", "no"))
    yield pair
    pair.close()


@pytest.fixture
def worker_store(pair):
    with Store(pair.url, "f", patience=20.0, block_ms=20) as store:
        yield store


@pytest.fixture
def promoted(pair):
    """The replica, asked directly."""
    with Store(pair.replica.url, "f", block_ms=20) as store:
        yield store


def refill(store, examples):
    """Push again what the producer finds missing."""
    last = store.call("XREVRANGE", store.keys.input, "+", "-", "COUNT", 1)
    held = int(last[0][0].split(b"-")[0]) if last else 0
    push(store, examples[held:], held + 1)


def check_consistent(store):
    """Position, answers and input of one server belong together."""
    (out, met), position = outcome(store)
    assert len(out) == position.seq
    assert out[-1][0] == position.cursor
    links = [(OUT, *entry) for entry in out] + [(MET, *entry) for entry in met]
    links.sort(key=lambda link: (parse_id(link[1]), link[0] == MET))
    assert chain(START.digest, links) == position.digest


def test_a_fail_over_to_a_replica_that_has_everything_is_a_lost_connection(
    pair, worker_store, promoted, expected
):
    running = session(worker_store, snapshot_every=40)
    for goal in (50, 100):
        drain(running, goal)
    pair.agree()
    pair.fail_over()
    drain(running, COUNT)
    assert outcome(promoted) == expected
    assert promoted.state().epoch == 1, "the same worker, which had nothing to read again"


@pytest.mark.parametrize("restarts", [False, True])
def test_what_the_replica_never_had_is_answered_again_with_the_same_bytes(
    pair, worker_store, promoted, examples, expected, restarts
):
    """The commits of one minute are lost; input and answers went together."""
    running = session(worker_store, snapshot_every=40)
    drain(running, 60)
    pair.agree()
    pair.cut()
    drain(running, 150)  # two snapshots, and input given up, that the replica never hears of
    published = payloads(worker_store)[0]
    pair.fail_over()
    check_consistent(promoted)
    assert promoted.state().position.seq == 60
    refill(promoted, examples)
    if restarts:
        running = session(worker_store)
    drain(running, COUNT)
    assert outcome(promoted) == expected
    assert payloads(promoted)[0][: len(published)] == published, "no answer ever changed"
    assert promoted.state().epoch == 2


def test_an_idle_worker_notices_and_answers_what_is_pushed_again(
    pair, worker_store, promoted, examples
):
    """Nothing waits, so no commit would be refused: the lost connection makes it look."""
    running = session(worker_store, snapshot_every=40)
    drain(running, COUNT)
    pair.agree()
    pair.cut()
    push(worker_store, examples[:20], COUNT + 1)
    drain(running, COUNT + 20)
    published = outcome(worker_store)
    pair.fail_over()
    check_consistent(promoted)
    answer_batch(running)  # finds the line cut
    answer_batch(running)
    assert running.position == promoted.state().position
    assert running.position.seq == COUNT
    push(promoted, examples[:20], COUNT + 1)
    drain(running, COUNT + 20)
    assert outcome(promoted) == published


def test_a_take_over_that_the_replica_never_heard_of_still_leaves_one_writer(
    pair, worker_store, promoted, examples, expected
):
    first = session(worker_store)
    drain(first, 50)
    pair.agree()
    pair.cut()
    with Store(pair.url, "f", patience=20.0, block_ms=20) as store:
        second = session(store)
        drain(second, 100)
        pair.fail_over()
        refill(promoted, examples)
        assert promoted.state().epoch == 1
        drain(second, 150)  # finds an older epoch than its own, and takes the feed over again
        assert promoted.state().epoch == 2
        with pytest.raises(Fenced):
            answer_batch(first)
        drain(second, COUNT)
    assert outcome(promoted) == expected


def test_a_primary_that_lost_its_replicas_soon_takes_no_commit_where_it_is_told_so(
    pair, worker_store, promoted, direct, examples, expected
):
    """min-replicas-to-write: what a fail-over can lose is what came within min-replicas-max-lag."""
    running = session(worker_store, batch=1)
    drain(running, 50)
    direct.call("CONFIG", "SET", "min-replicas-to-write", "1")
    direct.call("CONFIG", "SET", "min-replicas-max-lag", "1")
    wait_until(lambda: b"min_slaves_good_slaves:1" in direct.call("INFO", "replication"))
    pair.cut()
    wait_until(lambda: b"min_slaves_good_slaves:0" in direct.call("INFO", "replication"))
    stands = direct.state().position
    worker_store._connection.patience = 0.5
    with pytest.raises(Unavailable, match="refuses for now"):
        answer_batch(running)
    assert direct.state().position == stands
    assert direct.length(direct.keys.out) == stands.seq == 50
    pair.fail_over()
    worker_store._connection.patience = 20.0
    refill(promoted, examples)
    drain(session(worker_store), COUNT)
    assert outcome(promoted) == expected
