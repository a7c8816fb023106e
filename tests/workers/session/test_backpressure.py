"""A consumer group must acknowledge answers before they go: the feed waits, and loses nothing."""

import pytest
from session_steps import answer_batch, assembled, refitter
from structlog.testing import capture_logs
from world import COUNT, drain, push, rows, session

from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.position import START, parse_id
from workers.feed.retention import DOWNSTREAM, Retention
from workers.feed.state import Commit, RejectedEntry
from workers.session.flow import ConsumerBackpressure
from workers.session.preflight import open_store

BOUNDS = {
    "entries": Retention(out=50, is_held=True),
    "bytes": Retention(out_bytes=20_000, met_bytes=5_000, is_held=True),
}
SETTINGS = WorkerSettings(
    classes=("a", "b"), refit_every=20, window=60, batch=16, retain_out=50,
    downstream="block",
)  # fmt: skip


@pytest.fixture(params=BOUNDS)
def blocked(request, redis_url, feed):
    """A session whose answers a group has to acknowledge, and its store."""
    with Store(redis_url, feed, retention=BOUNDS[request.param], block_ms=1) as store:
        push(store, rows())
        backpressure = ConsumerBackpressure(store, DOWNSTREAM)
        yield session(store, batch=4, backpressure=backpressure), store


of_bytes = pytest.mark.parametrize("blocked", ["bytes"], indirect=True)


def turns(running, count=60):
    for _ in range(count):
        answer_batch(running)


def used(store, key):
    return store.call("MEMORY", "USAGE", key, "SAMPLES", 0)


def is_within(store):
    """Return whether no more answers are kept than may be, but for what was under way."""
    bound = store.retained.retention.out_bytes
    if bound == 20_000:
        return store.retained.kept.streams[0].kept < bound + 2 * 4 * 1100
    return store.length(store.keys.out) < 50 + 4


def create_group(store):
    store.call("XGROUP", "CREATE", store.keys.out, DOWNSTREAM, "0", "MKSTREAM")


def take(store, count, acknowledge=True):
    """Read as the group's one consumer; return the IDs."""
    options = ("GROUP", DOWNSTREAM, "c", "COUNT", count, "STREAMS", store.keys.out, ">")
    found = store.call("XREADGROUP", *options)
    ids = [entry[0] for entry in found[0][1]] if found else []
    if acknowledge and ids:
        store.call("XACK", store.keys.out, DOWNSTREAM, *ids)
    return ids


def first_of(store, key):
    return store.call("XRANGE", key, "-", "+", "COUNT", 1)[0]


def test_nothing_goes_that_is_not_acknowledged_and_the_feed_waits_for_it(blocked):
    running, store = blocked

    def goes_on():
        before = running.position.seq
        turns(running)
        return running.position.seq > before

    with capture_logs() as logs:
        assert goes_on()
        assert not goes_on()
    (told,) = (log for log in logs if log["log_level"] == "warning")
    assert "waiting for the consumer group" in told["event"]
    assert store.length(store.keys.out) == running.position.seq < COUNT
    assert is_within(store)
    assert store.length(store.keys.out) > 20
    create_group(store)
    assert not goes_on()
    held = take(store, 40, acknowledge=False)
    assert not goes_on()
    assert first_of(store, store.keys.out)[0] == held[0]
    store.call("XACK", store.keys.out, DOWNSTREAM, *held[1:])  # the oldest one is still pending
    assert not goes_on()
    store.call("XACK", store.keys.out, DOWNSTREAM, held[0])
    assert goes_on()


def test_a_slow_group_gets_every_answer_once_in_order_and_changes_none(blocked, redis_url, feed):
    running, store = blocked
    create_group(store)
    taken = []
    while len(taken) < COUNT:
        turns(running, 3)
        assert is_within(store)
        taken += take(store, 7)
    assert taken == [b"%d-0" % (i + 1) for i in range(COUNT)]
    assert store.length(store.keys.out) < COUNT / 2
    with Store(redis_url, f"{feed}-plain") as plain:
        push(plain, rows())
        drain(session(plain), COUNT)
        assert plain.state().position == running.position


def test_answers_within_the_retention_stay_although_they_are_acknowledged(blocked):
    running, store = blocked
    create_group(store)
    turns(running, 5)
    assert len(take(store, 100)) == 20
    turns(running, 1)
    assert store.length(store.keys.out) == 24


@of_bytes
def test_reports_stay_as_long_as_the_answers_they_belong_to(blocked):
    running, store = blocked
    turns(running)
    everything = store.call("XRANGE", store.keys.met, "-", "+")
    assert used(store, store.keys.met) > 5_000
    create_group(store)
    while running.position.seq < COUNT - 8:
        held = take(store, 5, acknowledge=False)
        turns(running, 2)
        kept = {entry[0] for entry in store.call("XRANGE", store.keys.met, "-", "+")}
        owed = [entry[0] for entry in everything if parse_id(entry[0]) >= parse_id(held[0])]
        assert kept.issuperset(owed)
        store.call("XACK", store.keys.out, DOWNSTREAM, *held)
    assert len(owed) < len(everything)
    assert first_of(store, store.keys.met) != everything[0]


@of_bytes
def test_what_back_pressure_trimmed_is_known_to_the_next_worker(blocked):
    running, store = blocked
    turns(running)
    create_group(store)
    while running.position.seq < COUNT - 8:
        take(store, 50)
        turns(running, 2)
    kept = store.retained.kept.streams[0]
    assert kept.marks[0].n > 0
    assert store.state().kept.streams[0].marks[0].n > 0
    session(store, batch=4)
    assert store.retained.kept.streams[0].total == kept.total
    assert store.retained.kept.streams[0].kept <= kept.kept + 20_000


def test_the_store_of_a_blocking_feed_trims_no_answer(redis_url, feed):
    with open_store(feed, SETTINGS, redis_url) as store:
        letter = RejectedEntry(b"1-0", "label", "{}", 0, b"")
        commit = Commit(1, START, START, [b"1-0"], [b"{}"], [(b"1-0", b"{}")], [letter])
        assert store.retained.send(commit).entries == [0, 0, 0, 1_000_000]
        assert store.retained.send(commit).entries == [0, 0, 0, 0], "not at each commit"


def test_input_is_trimmed_as_far_as_its_answers_are_acknowledged(store):
    backpressure = ConsumerBackpressure(store, DOWNSTREAM)
    assert [backpressure.trimmable(upto) for upto in (b"", b"5-0")] == [
        b"",
        b"",
    ]  # there are no answers
    create_group(store)
    for i in range(1, 6):
        store.call("XADD", store.keys.out, f"{i}-0", "p", "{}")
    assert backpressure.trimmable(b"4-0") == b"0-1"  # before the first ID that there is
    held = take(store, 3, acknowledge=False)
    store.call("XACK", store.keys.out, DOWNSTREAM, held[0])
    assert backpressure.trimmable(b"4-0") == b"2-0"
    store.call("XACK", store.keys.out, DOWNSTREAM, *held)
    assert backpressure.trimmable(b"2-0") == b"2-0"
    assert backpressure.trimmable(b"4-0") == b"3-1"


def test_a_snapshot_with_the_first_answers_waits_for_no_group_and_later_answers_do(redis_url, feed):
    settings = SETTINGS.model_copy(update={"replay_budget": 16})
    with open_store(feed, settings, redis_url) as store, refitter(settings) as refits:
        push(store, rows(20))
        running = assembled(store, settings, refits)
        turns(running, 3)
        assert store.state().snapshot is not None
        assert store.length(store.keys.input) == 20
        push(store, rows()[20:], first=21)
        turns(running)
        assert 50 <= store.length(store.keys.out) == running.position.seq < 50 + 16
