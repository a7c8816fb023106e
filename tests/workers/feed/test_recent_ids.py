"""Repeated ids: answered as duplicates, learned once, whatever the batches and restarts."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pure_replay import restarted
from session_steps import answer_batch
from world import session

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.admin.verify import verify
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
CUTS = st.lists(st.integers(1, 20), min_size=1, max_size=6)


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
    return restarted(CONFIG, numbered(stream), Limits(dedupe_window=window), cuts)[:2]


@settings(max_examples=30)
@given(STREAMS, WINDOWS, CUTS)
def test_a_repeated_id_is_a_duplicate_and_changes_no_other_answer(stream, window, cuts):
    out, position = answers(stream, window, [1000])
    assert answers(stream, window, cuts) == (out, position), "batches and restarts change no byte"
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
    assert position.n == learned
    alone = [json.loads(payload) for payload in answers(once, 0, [1000])[0]]
    assert others == [{k: v for k, v in answer.items() if k != "seq"} for answer in alone]


def test_without_a_window_no_byte_changes_and_the_snapshot_is_the_predictors():
    recent = RecentIds(0)
    recent.add("a", 1)
    assert recent.prepend_to(b"body") == b"body"
    assert recent.restore_from(b"body") == b"body"
    assert Limits().dedupe_window == 0
    stream = [("a", 1, "a")] * 3
    plain = process(OnlinePredictor(CONFIG), Limits(), START, numbered(stream))
    assert [json.loads(p)["status"] for p in plain.out] == ["warming"] * 3


@pytest.mark.parametrize("body", [
    b"", b"\xff" * 9, *(len(text).to_bytes(8, "big") + text for text in (
        b'{"a":x}', b'{"a":"0"}', b'{"a":1,"b":0}', b'{"a":0,"b":1,"c":2}', b"[]",
    )), (1).to_bytes(8, "big") + b"[",
])  # fmt: skip
def test_a_body_that_is_none_of_this_window_is_refused(body):
    with pytest.raises(InvalidStoredSnapshot):
        RecentIds(2).restore_from(body)


def test_a_worker_that_is_replaced_again_and_again_learns_each_id_once(store):
    limits = Limits(dedupe_window=20)
    for i in range(120):
        entry = (f"{i % 15}-{i // 30}", i % 7 - 3, "ab"[i % 2])
        store.call("XADD", store.keys.input, f"{i + 1}-0", *fields(entry))
    options = {"config": CONFIG, "limits": limits, "batch": 16, "snapshot_every": 30}
    while (running := session(store, **options)).position.seq < 120:
        answer_batch(running)  # and away: the next one takes over
    assert running.position.n == 60
    assert verify(store).is_identical


def test_tail_says_what_a_duplicate_repeats():
    message = DuplicateMessage(id="tx", seq=1043, n=1041, first=1041)
    assert line(message.payload()) == "     1,043  duplicate: id 'tx' was answered at 1,041"
