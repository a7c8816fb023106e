"""A consumer group must acknowledge answers before they go: the feed waits, and loses nothing."""

import json
import threading

import pytest
from session_steps import advance, answer_batch, refitter

from workers.broker.store import Store
from workers.config.settings import WorkerSettings, load
from workers.errors import BadConfiguration
from workers.feed.commit import Commit, RejectedEntry
from workers.feed.output_retention import DOWNSTREAM, Retention
from workers.feed.position import START
from workers.refit.pooled_refitter import PooledRefitter
from workers.session import assembly
from workers.session.downstream import AcknowledgedGate
from workers.session.opening import open_store
from workers.stop import Stop

SETTINGS = WorkerSettings(
    classes=("a", "b"), refit_every=20, refit_lag=0, window=60, batch=16, retain_out=50,
    downstream="block",
)  # fmt: skip
COUNT = 200


def push(store, count=COUNT):
    for i in range(count):
        x = json.dumps([i % 7, i % 5])
        store.call("XADD", store.keys.input, f"{i + 1}-0", "x", x, "y", "ab"[i % 3 == 0])


@pytest.fixture
def running(redis_url, feed):
    """A session under `SETTINGS`, and its store."""
    stop = Stop()
    with open_store(feed, SETTINGS, redis_url, stop) as store:
        push(store)
        with refitter(SETTINGS) as refits:
            assert not isinstance(refits, PooledRefitter)
            session = assembly.assemble(store, SETTINGS, refits, stop, "tester")
            session._gate._seconds = 0.01
            yield session, store


def turns(session, count=40):
    for _ in range(count):
        answer_batch(session)


def take(store, count, acknowledge=True):
    """Read as the group's one consumer; return the IDs."""
    command = (
        "XREADGROUP",
        "GROUP",
        DOWNSTREAM,
        "c",
        "COUNT",
        count,
        "STREAMS",
        store.keys.out,
        ">",
    )
    found = store.call(*command)
    ids = [entry[0] for entry in found[0][1]] if found else []
    if acknowledge and ids:
        store.call("XACK", store.keys.out, DOWNSTREAM, *ids)
    return ids


def create_group(store):
    store.call("XGROUP", "CREATE", store.keys.out, DOWNSTREAM, "0", "MKSTREAM")


def test_without_the_group_the_feed_stops_at_the_retention_and_loses_nothing(running):
    session, store = running
    turns(session)
    assert SETTINGS.retain_out <= store.length(store.keys.out) < SETTINGS.retain_out + 16
    assert store.length(store.keys.out) == session.position.seq < COUNT


def test_answers_that_are_read_but_not_acknowledged_stay(running):
    session, store = running
    create_group(store)
    turns(session)
    held = take(store, 40, acknowledge=False)
    turns(session)
    assert store.call("XRANGE", store.keys.out, "-", "+", "COUNT", 1)[0][0] == held[0]
    stopped_at = session.position.seq
    store.call("XACK", store.keys.out, DOWNSTREAM, *held[1:])  # the oldest one is still pending
    turns(session)
    assert session.position.seq == stopped_at
    store.call("XACK", store.keys.out, DOWNSTREAM, held[0])
    turns(session)
    assert session.position.seq > stopped_at


def test_a_slow_group_gets_every_answer_once_and_in_order(running):
    session, store = running
    create_group(store)
    taken = []
    while len(taken) < COUNT:
        turns(session, 3)
        assert store.length(store.keys.out) < SETTINGS.retain_out + 16
        taken += take(store, 7)
    assert taken == [b"%d-0" % (i + 1) for i in range(COUNT)]
    assert session.position.seq == COUNT


def test_answers_within_the_retention_stay_although_they_are_acknowledged(running):
    session, store = running
    create_group(store)
    turns(session, 2)
    assert len(take(store, 100)) == 32
    answer_batch(session)
    assert store.length(store.keys.out) == 48


def test_the_policy_changes_no_answer(running, redis_url, feed):
    session, store = running
    create_group(store)
    while session.position.seq < COUNT:
        turns(session, 3)
        take(store, 100)
    plain = WorkerSettings(**SETTINGS.model_dump() | {"downstream": "trim", "redis": None})
    with open_store(f"{feed}-plain", plain, redis_url) as other:
        push(other)
        with refitter(plain) as refits:
            whole = assembly.assemble(other, plain, refits, Stop(), "tester")
            while whole.position.seq < COUNT:
                advance(whole)
    assert whole.position == session.position


def test_a_stop_is_not_held_up_by_a_closed_gate(store):
    create_group(store)
    store.call("XADD", store.keys.out, "1-0", "p", "{}")
    stop = Stop()
    store.retained.retention = Retention(out=1)
    gate = AcknowledgedGate(store, DOWNSTREAM, stop, seconds=60)
    threading.Timer(0.1, stop.request).start()
    assert not gate.is_open(1)


def test_the_setting_takes_the_two_policies_only():
    assert Retention.of(load({"downstream": "block"})).is_held
    with pytest.raises(BadConfiguration, match="setting downstream: "):
        load({"downstream": "drop"})


def test_the_store_of_a_blocking_feed_trims_no_answer(redis_url, feed):
    with open_store(feed, SETTINGS, redis_url) as store:
        assert isinstance(store, Store)
        letter = RejectedEntry(b"1-0", "label", "", 0, b"")
        commit = Commit(1, START, START, [b"1-0"], [b"{}"], [(b"1-0", b"{}")], [letter])
        assert store.retained.send(commit).entries == [0, 0, 0, 1_000_000]
        assert store.retained.send(commit).entries == [0, 0, 0, 0], "not at each commit"


@pytest.mark.parametrize("upto", [b"", b"5-0"])
def test_no_input_is_trimmed_while_there_are_no_answers(store, upto):
    gate = AcknowledgedGate(store, DOWNSTREAM, Stop(), seconds=0)
    assert gate.trimmable(upto) == b""


def test_input_is_trimmed_as_far_as_its_answers_are_acknowledged(store):
    create_group(store)
    for i in range(1, 6):
        store.call("XADD", store.keys.out, f"{i}-0", "p", "{}")
    gate = AcknowledgedGate(store, DOWNSTREAM, Stop(), seconds=0)
    assert gate.trimmable(b"4-0") == b"0-1"  # before the first ID that there is
    held = take(store, 3, acknowledge=False)
    store.call("XACK", store.keys.out, DOWNSTREAM, held[0])
    assert gate.trimmable(b"4-0") == b"2-0"
    store.call("XACK", store.keys.out, DOWNSTREAM, *held)
    assert gate.trimmable(b"2-0") == b"2-0"
    assert gate.trimmable(b"4-0") == b"3-1"


def test_a_snapshot_with_the_first_answers_waits_for_no_group(redis_url, feed):
    settings = SETTINGS.model_copy(update={"replay_budget": 16})
    with open_store(feed, settings, redis_url) as store:
        push(store, 20)
        with refitter(settings) as refits:
            session = assembly.assemble(store, settings, refits, Stop(), "tester")
            turns(session, 3)
        assert store.state().snapshot is not None
        assert store.length(store.keys.input) == 20
