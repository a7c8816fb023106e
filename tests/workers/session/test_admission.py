"""Repeats, then classes too many: one entry after the other."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from pure_replay import restarted
from world import drain, push, session

from online_svm.config import PredictorConfig
from workers.config.settings import Limits

CONFIG = PredictorConfig(window=40, refit_every=10, metrics_every=7, gamma=0.5)

# Few ids and few labels: many are repeats, and many are new where there are as many as may be.
STREAMS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from("ijklmn")),
        st.integers(-4, 4),
        st.sampled_from(["a", "b", "c", "d", "e", None, ""]),
    ),
    max_size=50,
)
LIMITS = st.builds(
    Limits, max_classes=st.one_of(st.none(), st.integers(2, 5)), dedupe_window=st.integers(0, 6)
)


def fields(producer_id, value, label):
    sent = [b"x", b"[%d,1]" % value]
    sent += [] if label is None else [b"y", label.encode()]
    return sent + ([] if producer_id is None else [b"id", producer_id.encode()])


def answers(stream, limits):
    entries = [(b"%d-0" % (i + 1), fields(*entry)) for i, entry in enumerate(stream)]
    out, _, classes, _ = restarted(CONFIG, entries, limits, [17])
    return out, classes


def expected(stream, limits):
    """Return what becomes of each entry, by looking back at every one before it."""
    window, most = limits.dedupe_window, limits.max_classes
    answered, known, found = [], set(), []
    for producer_id, _, label in stream:
        if label == "":
            found.append("label")
        elif producer_id is not None and producer_id in (answered[-window:] if window else []):
            found.append("duplicate")
        elif most is not None and label is not None and len(known | {label}) > most:
            found.append("too_many_classes")
        else:
            found.append("answered")
            answered += [] if producer_id is None else [producer_id]
            known |= set() if label is None else {label}
    return found, tuple(sorted(known))


def kind(payload):
    answer = json.loads(payload)
    if answer["status"] in ("ok", "warming"):
        return "answered"
    return answer.get("code", answer["status"])


@settings(max_examples=40, deadline=None)
@given(STREAMS, LIMITS)
def test_what_becomes_of_an_entry_depends_on_those_before_it_alone(stream, limits):
    out, classes = answers(stream, limits)
    assert ([kind(payload) for payload in out], classes) == expected(stream, limits)


def test_a_take_over_writes_the_ids_that_redis_lost(store):
    push(store, [fields(f"{i}", i % 7, "ab"[i % 2]) for i in range(30)])
    options = {"config": CONFIG, "limits": Limits(dedupe_window=20)}
    drain(session(store, **options), 30)
    before = store.call("HGETALL", store.keys.answered_ids)
    assert before
    store.call("DEL", store.keys.answered_ids)
    session(store, **options)
    assert sorted(store.call("HGETALL", store.keys.answered_ids)) == sorted(before)


def test_a_repeat_of_an_entry_whose_class_was_too_many_is_no_repeat():
    stream = [(None, 0, "a"), (None, 1, "b"), ("i", 2, "c"), ("i", 3, "a"), ("i", 4, "a")]
    out, classes = answers(stream, Limits(max_classes=2, dedupe_window=5))
    assert [kind(p) for p in out[2:]] == ["too_many_classes", "answered", "duplicate"]
    assert classes == ("a", "b")
