"""Recomputing: it agrees with an honest feed and finds every entry that was changed."""

import pytest
from session_steps import advance

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.admin.verify import verify, verify_history
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import BadConfiguration, SnapshotsLost
from workers.feed.agreement import agreement
from workers.feed.output_retention import Retention
from workers.session.recovery import Recovery
from workers.session.session import Session
from workers.stop import Stop

CONFIG = PredictorConfig(classes=("a", "b"), window=60, refit_every=20, metrics_every=10, gamma=0.5)
COUNT = 150


def fields(i):
    """Return the i-th input entry; every 40th is refused."""
    x = b"[1]" if i % 40 == 39 else b"[%d,%d]" % (i % 7, i % 5)
    return [b"x", x, b"y", b"ab"[i % 2 : i % 2 + 1]]


def answer(store, **options):
    """Push and answer the whole stream."""
    for i in range(COUNT):
        store.call("XADD", store.keys.input, f"{i + 1}-0", *fields(i))
    stop, limits = Stop(), Limits()
    recovery = Recovery(
        store, agreement(CONFIG, limits), limits, lambda: OnlinePredictor(CONFIG), "tester", stop
    )
    session = Session(store, recovery, limits, batch=10, **options)
    while session.position.seq < COUNT:
        advance(session)
    return store


@pytest.fixture
def answered(store):
    """A feed with snapshots at 60 and 120."""
    return answer(store, snapshot_every=60)


def tamper(store, stream, change):
    """Write a stream anew, its entries passed through `change`; None leaves one out."""
    entries = store.call("XRANGE", stream, "-", "+")
    last = entries[-1][0]
    store.call("DEL", stream)
    for entry_id, (field, payload) in entries:
        changed = change(entry_id, payload)
        if changed is not None:
            store.call("XADD", stream, entry_id, field, changed)
    store.call("XSETID", stream, last)


@pytest.mark.parametrize("name", ["out", "met", "dlq"])
def test_an_answer_past_the_committed_position_is_a_difference_and_is_named(answered, name):
    stream = getattr(answered.keys, name)
    answered.call("XADD", stream, "999999999-0", "p", "forged")
    found = verify(answered)
    assert not found.is_identical
    assert [(d.stream, d.id, d.computed) for d in found.differences] == [
        (stream, b"999999999-0", None)
    ]
    assert b"forged" in found.differences[0].committed


def test_answers_of_a_worker_that_goes_on_meanwhile_are_no_difference(answered, monkeypatch):
    """A commit between the state that is verified and the look at the end of the streams."""
    before = answered.state()
    answered.call("XADD", answered.keys.out, "999999999-0", "p", "{}")
    answered.call("HSET", answered.keys.state, "cursor", "999999999-0")
    states = iter([before])
    original = answered.state
    monkeypatch.setattr(answered, "state", lambda: next(states, None) or original())
    assert verify(answered).is_identical


def test_an_honest_feed_is_identical_from_the_older_snapshot_on(answered):
    found = verify(answered)
    assert found.is_identical
    assert (found.start.seq, found.end) == (60, answered.state().position)
    assert (found.answers, found.trimmed, found.differences) == (90, 0, [])
    assert found.reports == answered.length(answered.keys.met) - 5


def test_verification_writes_nothing(answered):
    pattern = f"osvm:{{{answered.keys.feed}}}:*"
    before = {key: answered.call("DUMP", key) for key in answered.call("KEYS", pattern)}
    verify(answered)
    assert {key: answered.call("DUMP", key) for key in answered.call("KEYS", pattern)} == before


@pytest.mark.parametrize(("stream", "entry"), [("out", b"100-0"), ("met", b"102-0")])
def test_a_changed_entry_is_found_with_both_versions(answered, stream, entry):
    key = getattr(answered.keys, stream)
    tamper(answered, key, lambda i, payload: b"{}" if i == entry else payload)
    found = verify(answered)
    assert not found.is_identical
    assert found.n_differences == 1
    (difference,) = found.differences
    assert (difference.stream, difference.id, difference.committed) == (key, entry, b"{}")
    assert difference.computed.startswith(b'{"v":2')


def test_a_missing_entry_is_found(answered):
    key = answered.keys.out
    tamper(answered, key, lambda i, payload: None if i == b"100-0" else payload)
    (difference,) = verify(answered).differences
    assert (difference.id, difference.committed) == (b"100-0", None)


def test_an_entry_too_many_is_found(answered):
    key = answered.keys.met
    entries = answered.call("XRANGE", key, "-", "+")
    answered.call("DEL", key)
    for entry_id, pair in sorted(
        [*entries, [b"101-5", [b"p", b"{}"]]], key=lambda e: int(e[0].split(b"-")[0])
    ):
        answered.call("XADD", key, entry_id, *pair)
    (difference,) = verify(answered).differences
    assert (difference.id, difference.computed) == (b"101-5", None)


def test_many_differences_are_counted_and_the_first_are_kept(answered):
    tamper(answered, answered.keys.out, lambda _, payload: payload + b" ")
    found = verify(answered)
    assert found.n_differences == 90
    assert [d.id for d in found.differences] == [b"%d-0" % i for i in range(61, 81)]


def test_a_changed_digest_is_not_identical(answered):
    answered.call("HSET", answered.keys.state, "digest", "11" * 32)
    found = verify(answered)
    assert found.n_differences == 0
    assert not found.is_identical


def test_answers_that_retention_took_are_not_differences(answered):
    answered.call("XTRIM", answered.keys.out, "MINID", "100-0")
    found = verify(answered)
    assert found.is_identical
    assert (found.answers, found.trimmed) == (51, 39)


def test_it_begins_at_the_newer_snapshot_if_the_older_is_damaged(answered):
    pointer = answered.state().previous
    answered.call("SET", answered.keys.snapshot(pointer.n, pointer.sha256), "damaged")
    assert verify(answered).start.seq == 120
    pointer = answered.state().snapshot
    answered.call("DEL", answered.keys.snapshot(pointer.n, pointer.sha256))
    with pytest.raises(SnapshotsLost):
        verify(answered)


def test_a_feed_that_does_not_exist_is_said_so(store):
    with pytest.raises(BadConfiguration, match="no feed"):
        verify(store)


def test_a_feed_with_nothing_answered_is_identical(store):
    store.fence("tester", agreement(CONFIG, Limits()))
    for found in (verify(store), verify_history(store, [])):
        assert found.is_identical
        assert found.answers == 0


def test_the_whole_history_is_compared_with_a_file_of_it(answered):
    source = (fields(i) for i in range(COUNT + 10))  # more than was answered so far
    found = verify_history(answered, source)
    assert found.is_identical
    assert found.has_ids
    assert (found.start.seq, found.answers, found.end) == (0, COUNT, answered.state().position)


def test_a_history_that_differs_in_one_row_is_found(answered):
    source = [fields(i) for i in range(COUNT)]
    source[30] = [b"x", b"[6,6]", b"y", b"a"]
    found = verify_history(answered, source)
    assert not found.is_identical
    assert found.differences[0].id == b"31-0"


def test_a_history_that_is_too_short_is_not_identical(answered):
    found = verify_history(answered, (fields(i) for i in range(COUNT - 1)))
    assert not found.is_identical
    assert found.n_differences == 0
    assert found.end.seq == COUNT - 1


def test_a_history_is_compared_as_far_as_answers_are_kept(redis_url, feed):
    with Store(redis_url, feed, retention=Retention(out=40), block_ms=20) as store:
        answer(store)
        kept = store.length(store.keys.out)
        if kept == COUNT:  # Redis trims by whole nodes of 100 entries
            store.call("XTRIM", store.keys.out, "MAXLEN", kept := 40)
        found = verify_history(store, (fields(i) for i in range(COUNT)))
        assert found.is_identical
        assert not found.has_ids
        assert (found.answers, found.end.seq) == (kept, COUNT)
