"""Recomputing: it agrees with an honest feed and finds every entry that was changed."""

import pytest
from world import drain, push, session

from online_svm.config import PredictorConfig
from workers.admin.verify import verify, verify_history
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import SnapshotsLost
from workers.feed.pinned_config import pinned_config
from workers.feed.position import parse_id
from workers.feed.retention import Retention

CONFIG = PredictorConfig(classes=("a", "b"), window=60, refit_every=20, metrics_every=10, gamma=0.5)
COUNT = 150


def fields(i):
    """Return the i-th input entry; every 40th is refused."""
    x = b"[1]" if i % 40 == 39 else b"[%d,%d]" % (i % 7, i % 5)
    return [b"x", x, b"y", b"ab"[i % 2 : i % 2 + 1]]


def answer(store, **options):
    """Push and answer the whole stream."""
    push(store, [fields(i) for i in range(COUNT)])
    drain(session(store, config=CONFIG, **options), COUNT)
    return store


@pytest.fixture
def answered(store):
    """A feed with snapshots at 60 and 120."""
    return answer(store, snapshot_every=60)


def tamper(store, stream, change):
    """Write a stream anew, its payloads by ID changed; return them before and after."""
    before = {at: payload for at, (_, payload) in store.call("XRANGE", stream, "-", "+")}
    store.call("DEL", stream)
    after = {at: payload for at, payload in change(before).items() if payload is not None}
    for at in sorted(after, key=parse_id):
        store.call("XADD", stream, at, "p", after[at])
    store.call("XSETID", stream, max(before, key=parse_id))
    return before, after


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


def test_an_honest_feed_is_identical_from_the_older_snapshot_on_and_nothing_is_written(answered):
    pattern = f"osvm:{{{answered.keys.feed}}}:*"
    before = {key: answered.call("DUMP", key) for key in answered.call("KEYS", pattern)}
    found = verify(answered)
    assert found.is_identical
    assert (found.start.seq, found.end) == (60, answered.state().position)
    assert (found.answers, found.trimmed, found.differences) == (90, 0, [])
    assert found.reports == answered.length(answered.keys.met) - 5
    assert {key: answered.call("DUMP", key) for key in answered.call("KEYS", pattern)} == before


TAMPERED = {
    "a changed answer": ("out", lambda found: found | {b"100-0": b"{}"}, b"100-0"),
    "a changed report": ("met", lambda found: found | {b"102-0": b"{}"}, b"102-0"),
    "a missing answer": ("out", lambda found: found | {b"100-0": None}, b"100-0"),
    "a report too many": ("met", lambda found: found | {b"101-5": b"{}"}, b"101-5"),
}


@pytest.mark.parametrize(("name", "change", "at"), TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_entry_is_found_with_both_versions(answered, name, change, at):
    stream = getattr(answered.keys, name)
    before, after = tamper(answered, stream, change)
    found = verify(answered)
    assert (found.is_identical, found.n_differences) == (False, 1)
    (difference,) = found.differences
    assert (difference.stream, difference.id) == (stream, at)
    assert (difference.committed, difference.computed) == (after.get(at), before.get(at))


def test_many_differences_are_counted_and_the_first_are_kept(answered):
    tamper(answered, answered.keys.out, lambda found: {at: p + b" " for at, p in found.items()})
    found = verify(answered)
    assert found.n_differences == 90
    assert [d.id for d in found.differences] == [b"%d-0" % i for i in range(61, 81)]


def test_a_changed_digest_is_not_identical(answered):
    answered.call("HSET", answered.keys.state, "digest", "11" * 32)
    found = verify(answered)
    assert (found.n_differences, found.is_identical) == (0, False)


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


def test_a_feed_with_nothing_answered_is_identical(store):
    store.fence("tester", pinned_config(CONFIG, Limits()))
    for found in (verify(store), verify_history(store, [])):
        assert found.is_identical
        assert found.answers == 0


def test_the_whole_history_is_compared_with_a_file_of_it(answered):
    source = [fields(i) for i in range(COUNT + 10)]  # more than was answered so far
    found = verify_history(answered, iter(source))
    assert (found.is_identical, found.has_ids) == (True, True)
    assert (found.start.seq, found.answers, found.end) == (0, COUNT, answered.state().position)
    too_short = verify_history(answered, source[: COUNT - 1])
    assert (too_short.is_identical, too_short.n_differences) == (False, 0)
    assert too_short.end.seq == COUNT - 1
    source[30] = [b"x", b"[6,6]", b"y", b"a"]
    found = verify_history(answered, source)
    assert (found.is_identical, found.differences[0].id) == (False, b"31-0")


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
