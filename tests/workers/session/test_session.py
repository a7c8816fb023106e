"""The loop: the same bytes however the stream is cut, and what it does about refusals."""

import json
from hashlib import sha256

import numpy as np
import pytest
from session_steps import advance, answer_batch, run

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.inline import InlineRefitter
from online_svm.stream.example import Example
from workers.broker.leases import holding
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import (
    Fenced,
    InputLost,
    ReplayMismatch,
    SnapshotsLost,
    StateLost,
    Unavailable,
)
from workers.feed.agreement import agreement
from workers.feed.position import MET, OUT, chain, parse_id
from workers.feed.state import Pointer
from workers.session import session as session_module
from workers.session.preflight import check_snapshots
from workers.session.recovery import Recovery
from workers.session.session import Session
from workers.stop import Stop

CONFIG = PredictorConfig(classes=("a", "b"), window=60, refit_every=20, metrics_every=10, gamma=0.5)
COUNT = 200


def rows(count=COUNT, seed=0):
    """Return examples of two noisy classes."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 3)).round(6)
    y = np.where(X[:, 0] + generator.normal(size=count) > 0, "b", "a")
    return [(x.tolist(), str(label)) for x, label in zip(X, y, strict=True)]


def push(store, examples, first=1):
    for i, (x, y) in enumerate(examples):
        store.call("XADD", store.keys.input, f"{first + i}-0", "x", json.dumps(x), "y", y)


def session(store, batch=64, config=CONFIG, stop=None, **options):
    """Return a session that computes its refits in this process."""
    limits, stop = Limits(), stop or Stop()
    ours = agreement(config, limits)
    recovery = Recovery(store, ours, limits, lambda: OnlinePredictor(config), "tester", stop)
    return Session(store, recovery, limits, batch=batch, **options)


def drain(running, count=COUNT):
    """Let a session work until it has answered `count` entries."""
    while running.position.seq < count:
        answer_batch(running)


def payloads(store):
    """Return ID and payload of every entry of `out` and `met`."""
    return [
        [(entry[0], entry[1][1]) for page in store.pages(key, b"0-0") for entry in page]
        for key in (store.keys.out, store.keys.met)
    ]


def test_a_commit_may_be_confirmed_without_a_wait_once_its_reply_was_read(own_redis, feed):
    stop = Stop()
    with Store(own_redis.url, feed, block_ms=20) as store, Store(own_redis.url, "other") as other:
        push(store, rows(2))
        running = session(store)
        assert running.may_confirm, "there is nothing to confirm"
        other.call("CLIENT", "PAUSE", 200, "WRITE")
        running.input.hand_in((), may_be_more=True)
        running.answer(running.next_now(2))
        assert not running.may_confirm
        while not running.may_confirm:
            store._connection.read_arrived(stop.wait_for(store._connection.descriptors, 10.0))
        assert running.position.seq == 0
        assert running.finish_commit()
        assert running.position.seq == 2


@pytest.fixture
def another(redis_url, feed):
    """Make stores of further feeds on the same server."""
    stores = []

    def make(suffix):
        stores.append(Store(redis_url, f"{feed}-{suffix}", block_ms=20))
        return stores[-1]

    yield make
    for made in stores:
        made.close()


def test_answers_are_those_of_the_predictor_in_process(store):
    examples = rows()
    push(store, examples)
    drain(session(store))
    predictor = OnlinePredictor(CONFIG)
    expected = [predictor.step(Example(x, y)) for x, y in examples]
    out, met = payloads(store)
    assert [entry_id for entry_id, _ in out] == [b"%d-0" % (i + 1) for i in range(COUNT)]
    for seq, ((_, payload), prediction) in enumerate(zip(out, expected, strict=True)):
        answer = json.loads(payload)
        assert (answer["seq"], answer["n"], answer["status"]) == (seq, seq, prediction.status)
        assert (answer["label"], answer["lower"], answer["upper"]) == (
            prediction.label,
            prediction.lower,
            prediction.upper,
        )
        assert tuple(answer["scores"]) == prediction.scores
    assert [entry_id for entry_id, _ in met] == [b"%d-0" % n for n in range(10, COUNT + 1, 10)]
    assert [json.loads(report)["n"] for _, report in met] == list(range(10, COUNT + 1, 10))


def test_the_digest_is_the_chain_over_both_streams(store):
    push(store, rows())
    running = session(store)
    drain(running)
    out, met = payloads(store)
    links = [(OUT, *entry) for entry in out] + [(MET, *entry) for entry in met]
    # Stable by ID, and at one ID an answer stands before the report it completed.
    links.sort(key=lambda link: (int(link[1].split(b"-")[0]), link[0] == MET))
    assert chain(bytes(32), links) == store.state().position.digest == running.position.digest


def test_batches_of_1_7_64_and_1024_give_the_same_bytes(another):
    examples = rows()
    examples[50] = ([1.0, float("nan"), 0.0], "a")
    examples[51] = ([1.0, 2.0, 3.0], "unknown")
    results, digests = [], set()
    for batch in (1, 7, 64, 1024):
        store = another(f"batch-{batch}")
        push(store, examples)
        running = session(store, batch, snapshot_every=50)
        drain(running)
        results.append(payloads(store))
        digests.add(store.state().position.digest)
    assert all(result == results[0] for result in results)
    assert len(digests) == 1


def test_a_rejected_entry_is_answered_and_kept_and_changes_nothing_else(another):
    examples = rows()
    with_bad, without = another("with"), another("without")
    push(without, examples)
    drain(session(without))
    push(with_bad, examples[:100])
    bad = [("x", "[1,2]"), ("x", "[1,NaN,3]"), ("z", "[1,2,3]"), ("x", "[1,2,3]", "y", "c")]
    for i, fields in enumerate(bad):
        with_bad.call("XADD", with_bad.keys.input, f"100-{i + 1}", *fields)
    push(with_bad, examples[100:], first=101)
    drain(session(with_bad), COUNT + len(bad))
    out, met = payloads(with_bad)
    rejected = [(i, json.loads(p)) for i, p in out if json.loads(p)["status"] == "rejected"]
    assert [i for i, _ in rejected] == [b"100-1", b"100-2", b"100-3", b"100-4"]
    codes = [answer["code"] for _, answer in rejected]
    assert codes == ["dimension", "not_finite", "unknown_field", "label"]
    assert {answer["n"] for _, answer in rejected} == {100}
    dead = with_bad.call("XRANGE", with_bad.keys.dlq, "-", "+")
    assert [(entry[0], entry[1][1].decode()) for entry in dead] == list(
        zip((i for i, _ in rejected), codes, strict=True)
    )
    plain_out, plain_met = payloads(without)
    strip = lambda p: {k: v for k, v in json.loads(p).items() if k != "seq"}  # noqa: E731  (local)
    answered = [strip(p) for i, p in out if json.loads(p)["status"] != "rejected"]
    assert answered == [strip(p) for _, p in plain_out]
    assert [strip(p) for _, p in met] == [strip(p) for _, p in plain_met]


def test_a_restart_at_any_point_changes_no_byte(another):
    examples = rows()
    whole, parts = another("whole"), another("parts")
    for store in (whole, parts):
        push(store, examples)
    drain(session(whole))
    for until in (13, 55, 56, 120, 199, 200):
        drain(session(parts, batch=9, snapshot_every=40), until)
    assert payloads(parts) == payloads(whole)
    assert parts.state().position == whole.state().position


def test_a_restart_replays_from_the_newest_snapshot_only(store):
    push(store, rows())
    running = session(store, batch=10, snapshot_every=50)
    drain(running, 130)
    state = store.state()
    assert (state.snapshot.cursor, state.previous.cursor) == (b"100-0", b"50-0")
    drain(session(store, batch=10))


def learned_since(store):
    """Return how many learned examples are still in the input, as the answers tell."""
    oldest = store.call("XRANGE", store.keys.input, "-", "+", "COUNT", 1)[0][0]
    cursor = store.state().position.cursor
    kept = [json.loads(e[1][1]) for e in store.call("XRANGE", store.keys.out, oldest, cursor)]
    return sum(answer["status"] in ("ok", "warming") for answer in kept)


def oldest_input(store):
    return store.call("XRANGE", store.keys.input, "-", "+", "COUNT", 1)[0][0]


def test_the_input_keeps_the_window_through_restarts_and_not_much_more(store):
    push(store, rows(1000))
    for until in range(20, 1001, 35):  # a restart each time: snapshots close together
        running = session(store, batch=5, snapshot_every=20)
        drain(running, until)
        running.snapshot()
        assert learned_since(store) >= min(CONFIG.window, store.state().position.n)
        assert len(store.state().marks) <= 2 * 8 + 3
        for pointer in store.state().snapshots:
            assert parse_id(oldest_input(store)) <= parse_id(pointer.cursor)
    assert learned_since(store) <= 2 * CONFIG.window


def test_without_a_window_no_input_is_given_up(store):
    push(store, rows(120))
    config = CONFIG.model_copy(update={"window": None})
    drain(session(store, config=config, batch=5, snapshot_every=20), 120)
    assert oldest_input(store) == b"1-0"
    assert len(store.state().marks) == 1


def test_a_feed_of_a_version_that_kept_no_marks_goes_on_and_keeps_its_window_from_then(another):
    whole, store = another("whole"), another("upgraded")
    for each in (whole, store):
        push(each, rows())
    drain(session(whole))
    drain(session(store, batch=10, snapshot_every=40), 130)
    state = store.state()
    store.call("HDEL", store.keys.state, "marks")
    store.call("XTRIM", store.keys.input, "MINID", "=", state.previous.cursor)
    drain(session(store, batch=10, snapshot_every=40), 170)
    assert store.state().marks[0].cursor == state.previous.cursor
    drain(session(store, batch=10, snapshot_every=40))
    assert payloads(store) == payloads(whole)
    assert learned_since(store) >= CONFIG.window


def test_a_graceful_stop_leaves_a_snapshot_of_the_last_position(store):
    push(store, rows())
    stop = Stop()
    running = session(store, stop=stop, observe=lambda _outcome: stop.request())
    run(running, stop)
    state = store.state()
    # The stop comes when the first batch is confirmed; the second is answered then, and is sent.
    assert 16 < state.position.seq == running.position.seq < COUNT
    assert state.snapshot.cursor == state.position.cursor
    drain(session(store))


def test_a_stop_with_nothing_new_leaves_no_further_snapshot(store):
    push(store, rows(10))
    for _ in range(3):
        running = session(store)
        drain(running, 10)
        running.snapshot()
    assert store.state().previous is None


def flip(data):
    """Change one bit in the middle."""
    changed = bytearray(data)
    changed[len(data) // 2] ^= 1
    return bytes(changed)


def cut(data):
    return data[: len(data) // 2]


def of_another_feed(data):
    return data.replace(b'"feed": "', b'"feed": "not-', 1)


def of_a_newer_format(data):
    return data.replace(b'"format": 1', b'"format": 2', 1)


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


@pytest.mark.parametrize(
    ("change", "is_recorded"),
    [
        (flip, False),
        (cut, False),
        (lambda _: None, False),
        (of_another_feed, True),
        (of_a_newer_format, True),
    ],
)
def test_a_damaged_snapshot_is_passed_over_and_later_dropped(another, change, is_recorded):
    whole, store = another("whole"), another("damaged")
    for each in (whole, store):
        push(each, rows())
    drain(session(whole))
    drain(session(store, batch=10, snapshot_every=50), 130)
    damaged = damage(store, "snapshot", change, is_recorded)
    drain(session(store, batch=10, snapshot_every=50))
    assert payloads(store) == payloads(whole)
    state = store.state()
    assert store.call("GET", damaged) is None
    assert state.snapshot.n > state.previous.n >= 130
    assert check_snapshots(store, state) == ()
    drain(session(store))


def test_two_damaged_snapshots_are_state_lost_and_nothing_is_written(store):
    push(store, rows())
    drain(session(store, batch=10, snapshot_every=50), 130)
    before = payloads(store)
    for name in ("snapshot", "previous"):
        damage(store, name, flip)
    with pytest.raises(SnapshotsLost, match="damaged"):
        session(store)
    assert payloads(store) == before


def test_a_zombie_is_fenced_at_its_next_commit_and_writes_nothing(another):
    whole, store = another("whole"), another("fenced")
    for each in (whole, store):
        push(each, rows())
    drain(session(whole))
    zombie = session(store, batch=10)
    drain(zombie, 50)
    successor = session(store, batch=10)
    for attempt in (Session.snapshot, answer_batch):
        with pytest.raises(Fenced):
            attempt(zombie)
    assert store.length(store.keys.out) == 50
    drain(successor)
    zombie.snapshot()  # it has learned more than it could commit
    assert payloads(store) == payloads(whole)


def test_an_idle_zombie_learns_of_its_successor_by_the_lost_lease(store, redis_url):
    push(store, rows(20))
    with holding(redis_url, store.keys.feed, "first", 0.5, Stop()) as lease:
        zombie = session(store, lease=lease)
        drain(zombie, 20)
        session(store)
        store.call("SET", store.keys.lease, '{"name": "second"}')
        with pytest.raises(Fenced, match="tester"):
            drain(zombie, 21)


class Meddled(Store):
    """A store where somebody else changes the input right after a read."""

    meddle = None

    def receive_read(self, asked):
        return self.meddled(super().receive_read(asked))

    def meddled(self, entries):
        if self.meddle is not None:
            self.meddle()
            self.meddle = None
        return entries


@pytest.fixture
def meddled(redis_url, feed):
    with Meddled(redis_url, feed, block_ms=20) as store:
        yield store


def test_input_deleted_before_its_answer_was_committed_stops_the_worker(meddled):
    push(meddled, rows())
    running = session(meddled, batch=10)
    drain(running, 50)
    meddled.meddle = lambda: meddled.call("XDEL", meddled.keys.input, "52-0", "54-0")
    with pytest.raises(InputLost, match=r"2 of the .* that were read, from 52-0 on"):
        answer_batch(running)
    assert meddled.length(meddled.keys.out) == 50


def test_a_loss_of_input_is_looked_for_again_where_redis_did_not_answer(meddled, monkeypatch):
    push(meddled, rows())
    running = session(meddled, batch=10)
    drain(running, 50)
    meddled.meddle = lambda: meddled.call("XDEL", meddled.keys.input, "52-0", "54-0")

    def is_away(*_):
        raise Unavailable("it is away")

    with monkeypatch.context() as patched:
        patched.setattr(session_module, "check_held", is_away)
        with pytest.raises(Unavailable):
            answer_batch(running)
    with pytest.raises(InputLost, match=r"2 of the .* that were read, from 52-0 on"):
        running.resume()
    assert meddled.length(meddled.keys.out) == 50


def test_entries_that_appear_among_those_read_are_answered_too(meddled):
    """As after the stream was restored from elsewhere; XADD alone cannot do it."""
    examples = rows(20)
    push(meddled, examples)

    def refill():
        entries = meddled.call("XRANGE", meddled.keys.input, "-", "+")
        meddled.call("DEL", meddled.keys.input)
        for entry_id, fields in entries:
            meddled.call("XADD", meddled.keys.input, entry_id, *fields)
            if entry_id == b"3-0":
                meddled.call("XADD", meddled.keys.input, "3-5", "x", "[0,0,0]", "y", "a")

    meddled.meddle = refill
    drain(session(meddled), 21)
    assert [i for i, _ in payloads(meddled)[0]][2:5] == [b"3-0", b"3-5", b"4-0"]


def test_input_deleted_after_it_was_read_ahead_stops_the_worker(store):
    """The next batch is read while the last one commits; what is gone since shows all the same."""
    push(store, rows())
    running = session(store, batch=10)
    while running.position.seq < 50:
        advance(running)
    reached = store.state().position.seq
    store.call("XDEL", store.keys.input, f"{reached + 2}-0")
    with pytest.raises(InputLost, match="1 of the"):
        drain(running)
    assert store.length(store.keys.out) == reached


def test_a_refused_commit_drops_what_was_computed_ahead(another):
    """The state goes back while a commit is under way; what was learned on top of it is gone."""
    whole, store = another("whole"), another("refused")
    for each in (whole, store):
        push(each, rows())
    drain(session(whole))
    running = session(store, batch=10)
    drain(running, 50)
    earlier = store.call("HGETALL", store.keys.state)
    drain(running, 100)
    store.call("HSET", store.keys.state, *earlier)
    for key in (store.keys.out, store.keys.met):
        for entry_id in range(51, 101):
            store.call("XDEL", key, f"{entry_id}-0")
        store.call("XSETID", key, "50-0")
    advance(running)  # sent on top of what is gone
    learned = running._predictor
    assert (learned.n, running.position.seq) == (110, 100)
    advance(running)  # computed on top of that, and dropped
    assert running._predictor is not learned
    assert (running._predictor.n, running.position.seq) == (50, 50)
    drain(running)
    assert payloads(store) == payloads(whole)
    assert store.state().position == whole.state().position


@pytest.mark.parametrize("batch", [1, 7, 64, 1024])
def test_running_ahead_changes_no_byte(another, batch):
    ahead, in_turn = another("ahead"), another("in-turn")
    for each in (ahead, in_turn):
        push(each, rows())
    drain(session(in_turn))
    running = session(ahead, batch, snapshot_every=50)
    while running.position.seq < COUNT:
        advance(running)
    assert payloads(ahead) == payloads(in_turn)
    assert ahead.state().position == in_turn.state().position


def test_the_next_batch_is_answered_before_the_last_one_is_confirmed(store):
    push(store, rows())
    confirmed = []
    running = session(store, batch=10, observe=lambda outcome: confirmed.append(outcome.after.seq))
    advance(running)
    assert (running.position.seq, confirmed) == (0, [])
    advance(running)
    assert (running.position.seq, confirmed) == (10, [10])
    running.finish_commit()
    assert (running.position.seq, confirmed) == (20, [10, 20])


def test_input_deleted_after_it_was_answered_is_noticed_by_the_next_replay(store):
    push(store, rows())
    drain(session(store, batch=10), 50)
    store.call("XDEL", store.keys.input, "20-0")
    with pytest.raises(InputLost, match="50 input entries"):
        session(store)


def test_a_state_that_went_back_is_read_again(store):
    """As after a crash of Redis that lost its last writes, answers included."""
    push(store, rows())
    running = session(store, batch=10)
    drain(running, 50)
    earlier = store.call("HGETALL", store.keys.state)
    drain(running, 100)
    store.call("HSET", store.keys.state, *earlier)
    for entry_id in range(51, 101):
        store.call("XDEL", store.keys.out, f"{entry_id}-0")
        store.call("XDEL", store.keys.met, f"{entry_id}-0")
    for key, last in ((store.keys.out, "50-0"), (store.keys.met, "50-0")):
        store.call("XSETID", key, last)
    drain(running)
    assert [i for i, _ in payloads(store)[0]] == [b"%d-0" % (i + 1) for i in range(COUNT)]


def test_a_flushed_feed_is_never_begun_again_under_a_running_worker(store):
    push(store, rows())
    running = session(store, batch=10)
    drain(running, 50)
    store.call("DEL", store.keys.state)
    with pytest.raises(StateLost, match="reset"):
        answer_batch(running)
    assert store.keys.state not in store.types()


def test_other_bytes_on_replay_are_noticed(store):
    push(store, rows())
    drain(session(store, batch=10), 50)
    store.call("HSET", store.keys.state, "digest", "00" * 32)
    with pytest.raises(ReplayMismatch, match="committed 0000"):
        session(store)


class Begun(InlineRefitter):
    """Notes what is submitted and when that is begun, as if that were in the background."""

    is_busy = False

    def __init__(self, config, notes):
        super().__init__(config)
        self.notes, self.is_waiting, self.is_patient = notes, False, False

    def submit(self, task):
        self.notes.append(f"submit {task.freeze}")
        self.is_waiting = True
        super().submit(task)
        if not self.is_patient:
            self.begin()

    def begin(self):
        if self.is_waiting:
            self.notes.append("begin")
        self.is_waiting = False


def noting(store, batch):
    """Return a session, and what it does in turn."""
    notes = []
    config = CONFIG.model_copy(update={"refit_every": 100, "refit_lag": 100})
    refits = Begun(config, notes)

    def fresh():
        refits.reset(None)
        return OnlinePredictor(config, refits)

    recovery = Recovery(store, agreement(config, Limits()), Limits(), fresh, "tester", Stop())
    running = Session(store, recovery, Limits(), batch=batch, refits=refits)
    send = store.send
    store.send = lambda commit: notes.append(f"commit {commit.after.seq}") or send(commit)
    return running, notes


def test_with_more_to_answer_a_refit_begins_before_its_last_example_is_answered(store):
    push(store, rows(260))
    running, notes = noting(store, batch=50)
    drain(running, 250)
    at = notes.index("submit 200")
    assert notes[at + 1] == "begin"


def test_with_nothing_more_to_answer_the_answers_go_out_before_a_refit_begins(store):
    running, notes = noting(store, batch=50)
    for i in range(110):
        push(store, rows(110)[i : i + 1], first=i + 1)
        answer_batch(running)
    at = notes.index("submit 100")
    assert notes[at : at + 3] == ["submit 100", "commit 100", "begin"]


def test_a_stop_after_a_lost_connection_leaves_its_snapshot(store):
    push(store, rows(100))
    running = session(store)
    drain(running, 100)
    store.be_patient()
    number = store.call("CLIENT", "ID")
    with Store(store.url, "other") as other:
        assert other.call("CLIENT", "KILL", "ID", number) == 1
    running.snapshot()
    pointer = store.state().snapshot
    assert pointer.cursor == running.position.cursor
    assert store.call("TTL", store.keys.snapshot(pointer.n, pointer.sha256)) == -1


def test_what_is_left_of_a_batch_is_answered_together_with_what_comes_next(store):
    push(store, rows(400))
    running, notes = noting(store, batch=64)
    while running.position.seq < 320:
        advance(running)
    running.finish_commit()
    # Batches end where an answer waits for a refit, and are whole elsewhere.
    ends = [int(note.split()[1]) for note in notes if note.startswith("commit")]
    assert ends[-5:] == [200, 264, 300, 364, 400]
    assert payloads(store)[0][-1][0] == b"400-0"


def test_the_last_answers_of_a_backlog_go_out_before_a_refit_begins(store):
    push(store, rows(110))
    running, notes = noting(store, batch=64)  # reads 16, 32, then the rest
    while running.position.seq < 110:
        advance(running)
    at = notes.index("submit 100")
    assert notes[at:] == ["submit 100", "commit 110", "begin"]
