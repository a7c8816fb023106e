"""Whatever happens to a feed, in any order: what it has answered is what the predictor says."""

import functools
import itertools
import json
from collections import Counter

import hypothesis.strategies as st
import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from session_steps import advance, answer_batch
from world import session

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import Example
from workers.broker.feed_reader import pairs_of
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import Fenced, InputLost, Unavailable
from workers.feed.digest import ALARMS, MET, OUT, chain
from workers.feed.position import START, parse_id

CONFIG = PredictorConfig(
    classes=("a", "b"),
    features=2,
    window=20,
    refit_every=8,
    refit_lag=0,
    metrics_every=5,
    gamma=0.5,
)
SNAPSHOT_EVERY = 6
REMEMBERED = 4
LIMITS = Limits(dedupe_window=REMEMBERED)
OPTIONS = {"config": CONFIG, "limits": LIMITS, "snapshot_every": SNAPSHOT_EVERY}

_feeds = itertools.count(1)

values = st.integers(-40, 40).map(lambda i: i / 16)
good = st.tuples(st.lists(values, min_size=2, max_size=2), st.sampled_from("ab"))
bad = st.tuples(st.just([1.0]), st.just("a")) | st.tuples(st.just([1.0, 2.0]), st.just("c"))
# Three in four can be learned, so that the short histories get beyond the warm-up.
examples = st.one_of(good, good, good, bad)
# The producer's id, for one in four; of few, so that some repeat while they are remembered and
# some later.
producer_ids = st.one_of(st.none(), st.none(), st.none(), st.sampled_from("pqrstuvw"))
inputs = st.lists(st.tuples(examples, producer_ids), min_size=4, max_size=16)


RULES = set()


def counted(effect):
    """Count how often a rule had its effect: it returns False where there was nothing to do."""
    RULES.add(effect.__name__)

    @functools.wraps(effect)
    def run(self, **drawn):
        self.reached[effect.__name__] += effect(self, **drawn) is not False

    return run


class Lossy:
    """A client whose next script is run, and its reply lost."""

    def __init__(self, client):
        self._client, self._is_armed = client, True

    def parse_response(self, connection, command):
        reply = self._client.parse_response(connection, command)
        if self._is_armed and command in ("EVALSHA", "EVAL"):
            self._is_armed = False
            raise redis.ConnectionError("the reply was lost")
        return reply

    def __getattr__(self, name):
        return getattr(self._client, name)


class History(RuleBasedStateMachine):
    """A feed, its worker, perhaps a zombie, and the fold of `OnlinePredictor.step` as the model."""

    url = ""
    statuses: set[str]
    reached: Counter[str]

    def __init__(self):
        super().__init__()
        self.feed = f"history-{next(_feeds)}"
        self.store = self.connected()
        self.pushed = []  # ID, x, y, id of every entry that is still to be answered or was
        self.learned = []  # id and number of each entry that was answered and had one
        self.ids, self.steps = itertools.count(1), itertools.count()
        self.worker = session(self.store, batch=3, **OPTIONS)
        self.zombie = None
        self.model = OnlinePredictor(CONFIG)
        self.checked = START  # as far as the answers were compared with the model
        self.damaged = set()

    def connected(self):
        return Store(self.url, self.feed, block_ms=1, patience=5.0)

    def teardown(self):
        self.take(len(self.pushed))
        self.answers_are_those_of_the_model()
        assert self.store.state().position.seq == len(self.pushed)
        self.store.call("DEL", *self.store.types())
        self.store.close()
        self.dismiss()

    def take(self, count):
        """Let the worker answer until `count` entries are answered."""
        for _ in range(200):
            if self.worker.position.seq >= count:
                return
            answer_batch(self.worker)
        raise AssertionError("the feed does not get on")

    def dismiss(self):
        if self.zombie is not None:
            self.zombie._store.close()
            self.zombie = None

    @property
    def waiting(self):
        return self.pushed[self.store.state().position.seq :]

    @rule(rows=inputs)
    @counted
    def push(self, rows):
        for (x, y), producer_id in rows:
            entry_id = b"%d-0" % next(self.ids)
            fields = ["x", json.dumps(x), "y", y, *(["id", producer_id] if producer_id else [])]
            self.store.call("XADD", self.store.keys.input, entry_id, *fields)
            self.pushed.append((entry_id, x, y, producer_id))

    @rule()
    @counted
    def step(self):
        """Every second time what comes next meets a commit under way, and input read ahead."""
        if next(self.steps) % 2:
            answer_batch(self.worker)
        else:
            advance(self.worker)
            advance(self.worker)

    @rule(batch=st.integers(1, 8))
    @counted
    def crash(self, batch):
        self.worker = session(self.store, batch=batch, **OPTIONS)

    @rule()
    @counted
    def stop_in_order(self):
        self.worker.snapshot()
        self.worker = session(self.store, **OPTIONS)

    @precondition(lambda self: self.zombie is None)
    @rule()
    @counted
    def pause(self):
        """Another worker takes over; what the paused one has in mind stays in its mind."""
        self.zombie = self.worker
        self.store = self.connected()
        self.worker = session(self.store, batch=4, **OPTIONS)

    @precondition(lambda self: self.zombie is not None)
    @rule(leaves_snapshot=st.booleans())
    @counted
    def resume(self, leaves_snapshot):
        before, is_idle = self.everything(), True
        try:
            self.zombie.finish_commit()
            is_idle = not self.unread_by(self.zombie)
            self.zombie.snapshot() if leaves_snapshot else answer_batch(self.zombie)
        except Fenced:
            pass
        else:
            assert leaves_snapshot or is_idle, "it answered what is another's to answer"
        assert self.everything() == before
        self.dismiss()

    def unread_by(self, worker):
        after = parse_id(worker.position.cursor)
        return [entry for entry in self.pushed if parse_id(entry[0]) > after]

    def everything(self):
        keys = self.store.keys
        streams = [self.store.call("XRANGE", key, "-", "+") for key in (keys.out, keys.met)]
        return pairs_of(self.store.call("HGETALL", keys.state)), streams

    @rule()
    @counted
    def lose_the_reply_of_a_commit(self):
        connection, has_work = self.store._connection, bool(self.waiting)
        wire = connection._linked(connection.url)
        wire.client = Lossy(wire.client)
        answer_batch(self.worker)
        connection.close()
        return has_work

    @precondition(lambda self: self.waiting)
    @rule()
    @counted
    def run_out_of_memory(self):
        before = self.everything()
        self.store.call("CONFIG", "SET", "maxmemory", "1")
        self.store._connection.patience = 0.0
        try:
            with pytest.raises(Unavailable, match="refuses for now"):
                answer_batch(self.worker)
        finally:
            self.store._connection.patience = 5.0
            self.store.call("CONFIG", "SET", "maxmemory", "0")
        assert self.everything() == before
        self.worker = session(self.store, **OPTIONS)  # what it had learned was not committed

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    @counted
    def delete_before_it_was_read(self, data):
        """Nobody can see this on Redis 6.2: such an entry was never there."""
        self.worker = session(self.store, **OPTIONS)  # the one before may have read it ahead
        gone = data.draw(st.sampled_from(self.waiting))
        self.store.call("XDEL", self.store.keys.input, gone[0])
        self.pushed.remove(gone)

    @precondition(lambda self: self.replayed())
    @rule(data=st.data())
    @counted
    def delete_what_a_replay_needs(self, data):
        """The next worker stops, until the entries are back under their IDs."""
        key, before = self.store.keys.input, self.everything()[1]
        held = self.store.call("XRANGE", key, "-", "+")
        self.store.call("XDEL", key, data.draw(st.sampled_from(self.replayed()))[0])
        with pytest.raises(InputLost):
            session(self.store, **OPTIONS)
        assert self.everything()[1] == before
        self.store.call("DEL", key)
        for entry_id, fields in held:
            self.store.call("XADD", key, entry_id, *fields)
        self.worker = session(self.store, **OPTIONS)

    def replayed(self):
        """Return the entries that a restart would answer again whatever snapshot is damaged."""
        state = self.store.state()
        since = parse_id(state.snapshot.cursor if state.snapshot else b"0-0")
        answered = self.pushed[: state.position.seq]
        return [entry for entry in answered if parse_id(entry[0]) > since]

    @rule(kept=st.integers(0, 3))
    @counted
    def trim_outputs(self, kept):
        for key in (self.store.keys.out, self.store.keys.met):
            self.store.call("XTRIM", key, "MAXLEN", kept)

    @precondition(lambda self: self.store.state().previous is not None)
    @rule()
    @counted
    def trim_input_that_nobody_needs(self):
        oldest = self.store.state().previous.cursor
        self.store.call("XTRIM", self.store.keys.input, "MINID", oldest)

    @rule(is_newest=st.booleans(), is_gone=st.booleans(), position=st.integers(0, 10**6))
    @counted
    def damage_a_snapshot(self, is_newest, is_gone, position):
        """One of the two: with both bad the worker stops, which another test shows."""
        state = self.store.state()
        kept = {p.sha256 for p in (state.snapshot, state.previous) if p is not None}
        pointer = state.snapshot if is_newest else state.previous
        if pointer is None or self.damaged & kept:
            return False
        self.damaged.add(pointer.sha256)
        key = self.store.keys.snapshot(pointer.n, pointer.sha256)
        data = bytearray(self.store.call("GET", key))
        data[position % len(data)] ^= 1 << position % 8
        self.store.call(*(("DEL", key) if is_gone else ("SET", key, bytes(data))))
        return True

    @invariant()
    def answers_are_those_of_the_model(self):
        """Compare what was answered since the last look, entry by entry, and the digest."""
        position = self.store.state().position
        fresh = self.pushed[self.checked.seq : position.seq]
        expected = [self.expect(self.checked.seq + i, *entry) for i, entry in enumerate(fresh)]
        assert position.cursor == (fresh[-1][0] if fresh else self.checked.cursor)
        out = self.since(self.store.keys.out, position)
        for entry_id, payload in out:
            answer = json.loads(payload)
            self.statuses.add(answer["status"])
            wanted = dict(expected)[entry_id]
            assert {name: answer[name] for name in wanted} == wanted
        assert position.n == self.model.n
        if [entry_id for entry_id, _ in out] == [entry[0] for entry in fresh]:
            self.check_digest(out, position)
        self.checked = position

    def expect(self, seq, entry_id, x, y, producer_id):
        """Return the ID and the fields that an answer must have, and learn the example."""
        remembered = dict(self.learned[-REMEMBERED:])
        if producer_id in remembered and len(x) == 2 and y in CONFIG.classes:
            return entry_id, {"status": "duplicate", "first": remembered[producer_id]}
        try:
            found = self.model.step(Example(x, y))
        except InvalidExample as error:
            return entry_id, {"status": "rejected", "code": error.code}
        if producer_id is not None:
            self.learned.append((producer_id, seq))
        names = ("status", "label", "lower", "upper", "probability", "category", "guarantee")
        wanted = {name: getattr(found, name) for name in names}
        return entry_id, wanted | {"scores": list(found.scores), "n": self.model.n - 1}

    def since(self, key, position):
        """Return the entries that were added since the last look; none is beyond the position."""
        entries = self.store.call("XRANGE", key, b"(" + self.checked.cursor, "+")
        assert all(parse_id(entry[0]) <= parse_id(position.cursor) for entry in entries)
        return [(entry[0], entry[1][1]) for entry in entries]

    def check_digest(self, out, position):
        links = [(OUT, *entry) for entry in out]
        met = self.since(self.store.keys.met, position)
        links += [(MET, *entry) for entry in met]
        links += [(ALARMS, *entry) for entry in self.since(self.store.keys.alarms, position)]
        links.sort(key=lambda link: (parse_id(link[1]), (OUT, MET, ALARMS).index(link[0])))
        if len(met) == self.model.n // 5 - self.checked.n // 5:
            assert chain(self.checked.digest, links) == position.digest


def check_histories(url, count):
    """Run random histories; the seed is fixed, and shrinking one would take minutes."""

    class Here(History):
        pass

    Here.url, Here.statuses, Here.reached = url, set(), Counter()
    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=count,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert Here.statuses == {"ok", "warming", "rejected", "duplicate"}
    assert set(Here.reached) == RULES
    assert min(Here.reached.values()) > 0, f"a fault was never injected: {Here.reached}"
    return Here.reached


@pytest.mark.slow
def test_no_history_of_faults_changes_an_answer(own_redis):
    check_histories(own_redis.url, 10)


@pytest.mark.chaos
@pytest.mark.timeout(1800)  # 100 histories of 30 steps
def test_no_history_among_a_hundred_changes_an_answer(own_redis, capsys):
    reached = check_histories(own_redis.url, 100)
    with capsys.disabled():
        print(f"\n  100 histories: {', '.join(f'{n} {name}' for name, n in reached.items())}")
