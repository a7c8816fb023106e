"""A session: its batches, restarts and snapshots, and what it does about refusals."""

import json
from hashlib import sha256

import pytest
from session_steps import InlineRefits, Patient, advance, answer_batch, run, taken_over
from world import CONFIG, COUNT, SETTINGS, World, drain, payloads, rows, take_back

from online_svm.predictor.protocol import ProtocolConfig
from workers.broker.leases import holding
from workers.broker.store import Store
from workers.errors import Fenced, InputLost, Unavailable
from workers.feed.position import parse_id
from workers.feed.state import Pointer
from workers.session import session as session_module
from workers.session.preflight import check_snapshots
from workers.session.session import Session
from workers.stop import Stop


@pytest.fixture(scope="module")
def expected(embedded_url):
    """All that one session leaves that answers everything at once."""
    with World(embedded_url, "expected-of-a-session") as world:
        world.push()
        world.answer(batch=1024)
        return world.outcome()


def good(count=COUNT):
    """Return entries of which none is rejected."""
    plain = [fields for fields in rows(2 * count) if fields[1] != "[1,2]"]
    return plain[:count]


def test_a_rejected_entry_is_answered_and_kept_and_changes_nothing_else(world):
    bad = {
        "dimension": ["x", "[1,2]"],
        "not_finite": ["x", "[1,NaN,3]"],
        "unknown_field": ["z", "[1,2,3]"],
        "label": ["x", "[1,2,3]", "y", "c"],
    }
    world.push([*good()[:100], *bad.values(), *good()[100:]])
    world.answer()
    without = world.beside("without")
    without.push(good())
    without.answer()

    def told(entries):
        return [{k: v for k, v in json.loads(p).items() if k != "seq"} for _, p in entries]

    out, met = world.payloads()
    refused = told(out[100:104])
    assert [(a["status"], a["code"], a["n"]) for a in refused] == [
        ("rejected", code, 100) for code in bad
    ]
    dead = world.store.call("XRANGE", world.store.keys.dlq, "-", "+")
    assert [(i, fields[1].decode()) for i, fields in dead] == [
        (out[100 + i][0], code) for i, code in enumerate(bad)
    ]
    plain_out, plain_met = without.payloads()
    assert told(out[:100] + out[104:]) == told(plain_out)
    assert told(met) == told(plain_met)


def test_a_restart_at_any_point_changes_no_byte(world, expected):
    world.push()
    for until in (13, 30, 45, 56, 120, COUNT - 1, COUNT):
        world.answer(until, batch=9, snapshot_every=40)
        kept = world.store.state().snapshot
        saved = 0 if kept is None else parse_id(kept.cursor)[0]
        assert world.seq - saved < 40 + 9, "what was replayed counts, too"
    assert world.outcome() == expected


def oldest_input(store):
    return store.call("XRANGE", store.keys.input, "-", "+", "COUNT", 1)[0][0]


def learned_since(store):
    """Return how many learned examples are still in the input, as the answers tell."""
    kept = store.call("XRANGE", store.keys.out, oldest_input(store), "+")
    return sum(json.loads(entry[1][1])["status"] in ("ok", "warming") for entry in kept)


def test_the_input_keeps_the_window_through_restarts_and_not_much_more(world):
    world.push(rows(1000))
    store = world.store
    for until in range(20, 1001, 35):  # a restart each time: snapshots close together
        world.answer(until, batch=5, snapshot_every=20).snapshot()
        state = store.state()
        assert learned_since(store) >= min(CONFIG.window, state.position.n)
        assert len(state.marks) <= 2 * 8 + 3
        for pointer in state.snapshots:
            assert parse_id(oldest_input(store)) <= parse_id(pointer.cursor)
    assert learned_since(store) <= 2 * CONFIG.window


def test_without_a_window_no_input_is_given_up(world):
    world.push(120)
    config = CONFIG.model_copy(update={"window": None})
    world.answer(config=config, batch=5, snapshot_every=20)
    assert oldest_input(world.store) == b"1-0"
    assert len(world.store.state().marks) == 1


def test_a_graceful_stop_leaves_a_snapshot_of_the_last_position(world):
    world.push()
    stop = Stop()
    running = world.session(batch=64, stop=stop, observe=lambda _outcome: stop.request())
    run(running, stop)
    state = world.store.state()
    # The stop comes when the first batch is confirmed; the second is answered then, and is sent.
    assert 16 < state.position.seq == running.position.seq < COUNT
    assert state.snapshot.cursor == state.position.cursor
    world.answer(state.position.seq).snapshot()
    assert world.store.state().snapshots == state.snapshots, "there was nothing new"


def damage(store, name, change, is_recorded=False):
    """Change a kept snapshot, or remove it; perhaps as if it had been recorded like that."""
    pointer = getattr(store.state(), name)
    key = store.keys.snapshot(pointer.n, pointer.sha256)
    data = change(store.call("GET", key))
    assert data != store.call("GET", key)
    store.call("DEL", key)
    if is_recorded:
        pointer = Pointer(pointer.n, sha256(data).hexdigest(), pointer.cursor)
        key = store.keys.snapshot(pointer.n, pointer.sha256)
        store.call("HSET", store.keys.state, name, pointer.encode())
    if data is not None:
        store.call("SET", key, data)
    return key


def flip(data):
    """Change one bit in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize(
    ("change", "is_recorded"),
    [
        (flip, False),
        (lambda data: data[: len(data) // 2], False),
        (lambda _: None, False),
        (lambda data: data.replace(b'"feed": "', b'"feed": "not-', 1), True),
        (lambda data: data.replace(b'"format": 1', b'"format": 2', 1), True),
    ],
    ids=["a bit", "cut", "gone", "of another feed", "of a newer format"],
)
def test_a_damaged_snapshot_is_passed_over_and_later_dropped(world, expected, change, is_recorded):
    world.push()
    world.answer(130, snapshot_every=50)
    damaged = damage(world.store, "snapshot", change, is_recorded)
    world.answer(snapshot_every=50)
    assert world.outcome() == expected
    state = world.store.state()
    assert world.store.call("GET", damaged) is None
    assert state.snapshot.n > state.previous.n >= 120
    assert check_snapshots(world.store, state) == ()
    world.session()


def test_a_zombie_is_fenced_at_its_next_commit_and_writes_nothing(world, expected):
    world.push()
    zombie = world.answer(50)
    successor = world.session()
    for attempt in (Session.snapshot, answer_batch):
        with pytest.raises(Fenced):
            attempt(zombie)
    assert world.store.length(world.store.keys.out) == 50
    drain(successor, COUNT)
    zombie.snapshot()  # it has learned more than it could commit
    assert world.outcome()[0] == expected[0]


def test_an_idle_zombie_learns_of_its_successor_by_the_lost_lease(world):
    world.push(20)
    with holding(world.url, world.feed, "first", 0.5) as lease:
        zombie = world.answer(lease=lease)
        world.session()
        world.store.call("SET", world.store.keys.lease, '{"name": "second"}')
        with pytest.raises(Fenced, match="tester"):
            drain(zombie, 21)


class Meddled(Store):
    """A store where somebody else changes the input right after a read."""

    meddle = None

    def receive_read(self, asked):
        entries, meddle = super().receive_read(asked), self.meddle
        self.meddle = None
        if meddle is not None:
            meddle()
        return entries


@pytest.fixture
def meddled(world):
    """Return a store whose input is changed, and a session that answered fifty entries of it."""
    world.push()
    with Meddled(world.url, world.feed, block_ms=20) as store:
        yield store, world.answer(50, store=store)


@pytest.mark.parametrize("is_away", [False, True], ids=["at once", "after Redis was away"])
def test_input_deleted_before_its_answer_was_committed_stops_the_worker(
    meddled, monkeypatch, is_away
):
    store, running = meddled
    store.meddle = lambda: store.call("XDEL", store.keys.input, "52-0", "54-0")
    step = answer_batch
    if is_away:
        with monkeypatch.context() as patched:
            patched.setattr(session_module, "check_entries_exist", away)
            with pytest.raises(Unavailable):
                answer_batch(running)
        step = Session.resume
    with pytest.raises(InputLost, match=r"2 of the .* that were read, from 52-0 on"):
        step(running)
    assert store.length(store.keys.out) == 50


def away(*_):
    raise Unavailable("it is away")


def test_a_replaced_worker_without_answers_learns_of_it_after_redis_was_away(world):
    world.push(20)
    with holding(world.url, world.feed, "first", 0.5) as lease:
        replaced = world.answer(lease=lease)
        world.session()
        lease.lost.set()
        with pytest.raises(Fenced, match="tester"):
            replaced.resume()


def test_entries_that_appear_among_those_read_are_answered_too(meddled):
    """As after the stream was restored from elsewhere; XADD alone cannot do it."""
    store, running = meddled

    def refill():
        entries = store.call("XRANGE", store.keys.input, "-", "+")
        store.call("DEL", store.keys.input)
        for entry_id, fields in entries:
            store.call("XADD", store.keys.input, entry_id, *fields)
            if entry_id == b"53-0":
                store.call("XADD", store.keys.input, "53-5", "x", "[0,0,0]", "y", "a")

    store.meddle = refill
    drain(running, COUNT + 1)
    assert [i for i, _ in payloads(store)[0]][52:55] == [b"53-0", b"53-5", b"54-0"]


def test_input_deleted_after_it_was_read_ahead_stops_the_worker(world):
    """The next batch is read while the last one commits; what is gone since shows all the same."""
    world.push()
    running, store = world.session(), world.store
    while running.position.seq < 50:
        advance(running)
    reached = store.state().position.seq
    store.call("XDEL", store.keys.input, f"{reached + 2}-0")
    with pytest.raises(InputLost, match="1 of the"):
        drain(running, COUNT)
    assert store.length(store.keys.out) == reached


def test_a_refused_commit_drops_what_was_computed_ahead(world, expected):
    """Redis loses its last writes, answers included; what was learned on top of them is gone."""
    world.push()
    store, running = world.store, world.answer(50)
    earlier = store.call("HGETALL", store.keys.state)
    drain(running, 100)
    store.call("HSET", store.keys.state, *earlier)
    for key in (store.keys.out, store.keys.met, store.keys.dlq):
        take_back(store, key, "50-0")
    advance(running)  # sent on top of what is gone
    learned = running._predictor
    assert running.position.seq == 100
    advance(running)  # computed on top of that, and dropped
    taken_over(running)
    assert running._predictor is not learned
    assert running.position.seq == 50
    drain(running, COUNT)
    assert world.outcome() == expected


def test_the_next_batch_is_answered_before_the_last_one_is_confirmed(world):
    world.push()
    confirmed = []
    running = world.session(observe=lambda outcome: confirmed.append(outcome.after.seq))
    steps = (advance, advance, Session.finish_commit)
    for step, reached in zip(steps, ([], [10], [10, 20]), strict=True):
        step(running)
        assert (running.position.seq, confirmed) == (max(reached, default=0), reached)


def test_a_commit_may_be_confirmed_without_a_wait_once_its_reply_was_read(own_redis, feed):
    stop = Stop()
    with World(own_redis.url, feed) as world, Store(own_redis.url, "other") as other:
        world.push(2)
        running = world.session()
        assert running.can_confirm, "there is nothing to confirm"
        other.call("CLIENT", "PAUSE", 200, "WRITE")
        running.input.put((), may_be_more=True)
        running.answer(running.next_now(2))
        assert not running.can_confirm
        connection = world.store._connection
        while not running.can_confirm:
            connection.read_arrived(stop.wait_for(connection.descriptors, 10.0))
        assert running.position.seq == 0
        assert running.finish_commit()
        assert running.position.seq == 2


def test_a_stop_after_a_lost_connection_leaves_its_snapshot(world):
    world.push(100)
    store, running = world.store, world.answer()
    store.retry_forever()
    number = store.call("CLIENT", "ID")
    assert world.beside("other").store.call("CLIENT", "KILL", "ID", number) == 1
    running.snapshot()
    pointer = store.state().snapshot
    assert pointer.cursor == running.position.cursor
    assert store.call("TTL", store.keys.snapshot(pointer.n, pointer.sha256)) == -1


def test_a_batch_that_needs_a_refit_is_paused_until_its_result_is_taken(world, monkeypatch):
    monkeypatch.setattr(Patient, "waits", lambda *_: True)  # the refit is still being computed
    world.push(good(16))
    running = world.session(batch=16)
    running.input.put((), may_be_more=True)
    running.answer(running.next_now(16))
    assert (running.is_paused, running.may_snapshot) == (True, False)
    while running.is_paused:
        running.take_refit()
    assert running.may_snapshot
    assert running.finish_commit()
    assert running.position.seq == 16


class Begun(InlineRefits):
    """Notes what is submitted and when that is begun, as if that were in the background."""

    def __init__(self, config, notes):
        super().__init__(config)
        self.notes, self.is_waiting, self.is_deferring = notes, False, False

    def submit(self, task):
        self.notes.append(f"submit {task.freeze}")
        self.is_waiting = True
        super().submit(task)
        if not self.is_deferring:
            self.begin()

    def begin(self):
        if self.is_waiting:
            self.notes.append("begin")
        self.is_waiting = False


@pytest.fixture
def noted(world):
    """Make a session with batches of a size; return it, and what it does in turn."""

    def make(batch):
        notes, send = [], world.store.send
        config = ProtocolConfig(**SETTINGS).model_copy(
            update={"refit_every": 100, "refit_lag": 100}
        )
        refits = Begun(config, notes)

        running = world.session(batch=batch, refits=refits, config=config)
        world.store.send = lambda commit: notes.append(f"commit {commit.after.seq}") or send(commit)
        return running, notes

    return make


def test_with_more_to_answer_a_refit_begins_before_its_last_example_is_answered(world, noted):
    world.push(good(260))
    running, notes = noted(50)
    drain(running, 250)
    assert notes[notes.index("submit 200") + 1] == "begin"


def test_with_nothing_more_to_answer_the_answers_go_out_before_a_refit_begins(world, noted):
    running, notes = noted(50)
    for fields in good(110):
        world.push([fields])
        answer_batch(running)
    at = notes.index("submit 100")
    assert notes[at : at + 3] == ["submit 100", "commit 100", "begin"]


def test_the_last_answers_of_a_backlog_go_out_before_a_refit_begins(world, noted):
    world.push(good(110))
    running, notes = noted(64)  # reads 16, 32, then the rest
    while running.position.seq < 110:
        advance(running)
    assert notes[notes.index("submit 100") :] == ["submit 100", "commit 110", "begin"]


def test_what_is_left_of_a_batch_is_answered_together_with_what_comes_next(world, noted):
    world.push(good(400))
    running, notes = noted(64)
    while running.position.seq < 320:
        advance(running)
    running.finish_commit()
    # Batches end where an answer waits for a refit, and are whole elsewhere.
    ends = [int(note.split()[1]) for note in notes if note.startswith("commit")]
    assert ends[-5:] == [200, 264, 300, 364, 400]
