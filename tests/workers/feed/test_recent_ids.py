"""Repeated ids: answered as duplicates, learned once."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pure_replay import restarted
from session_steps import answer_batch
from world import session

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.broker.streams import pairs_of
from workers.cli.stream_text import line
from workers.config.settings import Limits
from workers.errors import InvalidStoredSnapshot
from workers.feed.position import START
from workers.feed.recent_ids import RecentIds
from workers.message.schema import DuplicateMessage
from workers.session.answer import process

CONFIG = PredictorConfig(classes=("a", "b"), window=40, refit_every=10, metrics_every=7, gamma=0.5)

WINDOWS = st.integers(0, 12)
# Few ids, so that many repeat within the window and beyond it; some entries cannot be used.
STREAMS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from("abcdefghijklmnop")),
        st.integers(-4, 4),
        st.sampled_from(["a", "b", "unknown"]),
    ),
    max_size=60,
)


def fields(entry):
    producer_id, value, label = entry
    sent = [b"x", b"[%d,1]" % value, b"y", label.encode()]
    return sent if producer_id is None else [*sent, b"id", producer_id.encode()]


def numbered(stream):
    return [(b"%d-0" % (i + 1), fields(entry)) for i, entry in enumerate(stream)]


def expected(stream, window):
    """Tell of each entry whether it is a repeat, and of which: by looking back at every one."""
    answered, found = [], []
    for seq, (producer_id, _, label) in enumerate(stream):
        remembered = dict(answered[-window:] if window else [])
        is_repeat = label != "unknown" and producer_id in remembered
        found.append(remembered[producer_id] if is_repeat else None)
        if label != "unknown" and producer_id is not None and not is_repeat:
            answered.append((producer_id, seq))
    return found


def answers(stream, window, cuts):
    return restarted(CONFIG, numbered(stream), Limits(dedupe_window=window), cuts)


@settings(max_examples=30)
@given(STREAMS, WINDOWS)
def test_a_repeated_id_is_a_duplicate_and_changes_no_other_answer(stream, window):
    out, position, _, duplicates = answers(stream, window, [19])
    once, others, learned, first = [], [], 0, expected(stream, window)
    for i, payload in enumerate(out):
        answer = json.loads(payload)
        assert (answer.pop("seq"), answer["n"]) == (i, learned)
        learned += answer["status"] in ("ok", "warming")
        if first[i] is None:
            assert answer["status"] != "duplicate"
            once.append(stream[i])
            others.append(answer)
        else:
            assert payload == DuplicateMessage(
                seq=i, n=learned, id=stream[i][0], first=first[i]
            ).payload()  # fmt: skip
    assert (position.n, duplicates) == (learned, len(stream) - first.count(None))
    alone = [json.loads(payload) for payload in answers(once, 0, [19])[0]]
    assert others == [{k: v for k, v in answer.items() if k != "seq"} for answer in alone]


def test_without_a_window_an_id_may_be_repeated():
    assert Limits().dedupe_window == 0
    stream = [("a", 1, "a")] * 3
    plain = process(OnlinePredictor(CONFIG), Limits(), START, numbered(stream), RecentIds(0))
    assert [json.loads(p)["status"] for p in plain.out] == ["warming"] * 3


def framed(text):
    return len(text).to_bytes(8, "big") + text


@pytest.mark.parametrize("body", [
    b"", b"\xff" * 9, (1).to_bytes(8, "big") + b"[", *map(framed, (
        b'{"a":x}', b"[]", b"[0]", b"[{},0]", b"[{},{}]", b"[{},{},{},0]", b'{"a":1,"b":0}',
        b'[{},{},-1]', b"[{},{},1.5]", b"[{},{},true]", b'[{},{"a":1},0]', b"[1,2,0]",
        b'[{},{"a":"1"},0]', b'[{},{"a":"1 x"},0]', b'[{},{"a":"-1 1-0"},0]',
        b'[{},{"a":"1.5 1-0"},0]', b'[{},{"a":"1 1-0","b":"0 0-1"},0]',
        b'[{},{"a":"1 1-0","b":"2 2-0","c":"3 3-0"},0]', b'[{"a":"1 1-0","b":"1 1-1"},{},0]',
        b'[{},{"a":"1 1-18446744073709551616"},0]',
    )),
])  # fmt: skip
def test_a_body_that_is_none_of_this_window_is_refused(body):
    assert RecentIds(2).restore_from(framed(b'[{},{"a":"1 1-0"},7]') + b"x") == b"x"
    with pytest.raises(InvalidStoredSnapshot):
        RecentIds(2).restore_from(body)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 15), st.sets(st.integers(0, 15))), max_size=40), WINDOWS)
def test_changes_of_batches_together_are_all_ids(steps, window):
    """Each step adds an id, of examples of which some wait; changes alone keep the hash right."""
    recent, held = RecentIds(window, keeps_waiting=True), {}
    for seq, (number, waiting) in enumerate(steps):
        recent.begin(seq, [b"%d-0" % (seq + 1)])
        name = f"id{number}"
        if recent.first(name) is None:
            recent.add(name, seq, [f"id{each}" for each in waiting])
        for id, value in recent.changes().items():
            held.pop(id, None)
            if value:
                held[id] = value
        again = RecentIds(window, keeps_waiting=True)
        assert again.restore_from(recent.prepend_to(b"body")) == b"body"
        assert again.all() == recent.all() == held
        assert again.prepend_to(b"") == recent.prepend_to(b"")


def test_ids_of_settled_examples_are_dropped_in_time():
    recent = RecentIds(0, keeps_waiting=True)
    for seq in range(5000):
        recent.begin(seq, [b"%d-0" % (seq + 1)])
        recent.add(f"id{seq}", seq, [f"id{each}" for each in range(max(0, seq - 9), seq + 1)])
        assert len(recent.all()) <= 1021
    assert set(recent.all()) >= {f"id{each}" for each in range(4990, 5000)}


def hash_of(store):
    return dict(pairs_of(store.call("HGETALL", store.keys.answered_ids)))


@pytest.mark.parametrize("horizon", [0, 30])
def test_the_hash_of_ids_is_that_of_the_state_after_take_overs_and_a_flush(store, horizon):
    limits = Limits(dedupe_window=20)
    config = PredictorConfig(**CONFIG.model_dump(exclude={"horizon"}), horizon=horizon)
    options = {"config": config, "limits": limits, "batch": 16, "snapshot_every": 30}
    for i in range(120):
        store.call(
            "XADD", store.keys.input, f"{i + 1}-0", *fields((f"{i % 70}", i % 7, "ab"[i % 2]))
        )
    while (running := session(store, **options)).position.seq < 120:
        if running.position.seq == 48:
            store.call("DEL", store.keys.answered_ids)
            running = session(store, **options)  # a take-over writes the whole hash
        answer_batch(running)
        held = {name.decode(): value for name, value in hash_of(store).items()}
        assert held == running._recent.all()
        assert len(held) >= min(20, running.position.seq)
        for name, value in held.items():
            _, entry = value.split(b" ")
            ((_, found),) = store.call("XRANGE", store.keys.out, entry, entry)
            assert json.loads(found[1])["id"] == name


def test_tail_says_what_a_duplicate_repeats():
    message = DuplicateMessage(id="tx", seq=1043, n=1041, first=1041)
    assert line(message.payload()) == "     1,043  duplicate: id 'tx' was answered at 1,041"
