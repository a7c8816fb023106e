"""Alarms of a feed: in the commit and the digest, whatever the batches and the workers."""

import json
import time
from contextlib import ExitStack

import orjson
import pytest
from drifting import CHEAP_FEED, inverted
from history_parts import Worker, fenced
from session_steps import advance
from world import drain, push

from workers.admin import repair
from workers.admin.verify import verify
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.position import ALARMS, MET, OUT, chain, parse_id
from workers.message.schema import AlarmsMessage, MetricsMessage
from workers.reading.incidents import commit_times
from workers.session.session import Session

COUNT, FIRST, LAST = 700, 400, 600
ORDER = [OUT, MET, ALARMS]


def entries():
    X, y = inverted(COUNT, FIRST, LAST)
    return [["x", json.dumps(x.tolist()), "y", label] for x, label in zip(X, y, strict=True)]


def settings(**changes):
    return WorkerSettings(**(CHEAP_FEED | {"replay_budget": 150} | changes))


def streams(store):
    """Return ID and payload of every entry of `out`, `met` and `alarms`."""
    return [
        [(entry_id, fields[1]) for entry_id, fields in store.call("XRANGE", key, "-", "+")]
        for key in store.keys.outputs[:3]
    ]


@pytest.fixture
def work(embedded_url):
    """Return a worker that answers a feed up to some entry; `pushed` more go into it before."""
    with ExitStack() as opened:

        def begin(feed, upto=COUNT, pushed=COUNT, **changes):
            worker = Worker(embedded_url, feed, settings(**changes))
            opened.callback(worker.abandon)  # as a kill does
            push(worker.store, entries()[:pushed])
            drain(worker.session, upto)
            return worker

        yield begin


def left(worker):
    """Return the streams and the position of a feed."""
    return streams(worker.store), worker.session.position


@pytest.fixture(scope="module")
def expected(embedded_url):
    """What a feed leaves that one worker answered in batches of 64."""
    worker = Worker(embedded_url, "expected-alarms", settings(batch=64))
    push(worker.store, entries())
    drain(worker.session, COUNT)
    yield left(worker)
    worker.abandon()


def test_an_alarm_has_the_id_of_its_entry_in_the_digest(expected):
    (out, met, alarms), position = expected
    assert alarms
    for entry_id, payload in alarms:
        message = AlarmsMessage(**orjson.loads(payload))
        assert message.payload() == payload
        assert b"%d-0" % (message.seq + 1) == entry_id
        assert {alarm.n for alarm in message.alarms} == {message.seq + 1}
        assert FIRST < message.seq < COUNT
    links = [
        (stream, *entry)
        for stream, entries in zip(ORDER, (out, met, alarms), strict=True)
        for entry in entries
    ]
    links.sort(key=lambda link: (parse_id(link[1]), ORDER.index(link[0])))
    assert chain(bytes(32), links) == position.digest
    reports = [MetricsMessage(**orjson.loads(payload)) for _, payload in met]
    assert [r.payload() for r in reports] == [payload for _, payload in met]
    assert reports[-1].monitors.alarms == sum(len(orjson.loads(p)["alarms"]) for _, p in alarms)


def test_when_an_alarm_was_committed_is_told_beside_it(work, feed):
    before = time.time() * 1000
    store = work(feed, batch=7).store
    told = commit_times(store.call("XRANGE", store.keys.raised, "-", "+"))
    assert list(told) == [entry[0] for entry in store.call("XRANGE", store.keys.alarms, "-", "+")]
    assert all(before - 1000 <= at <= time.time() * 1000 + 1000 for at in told.values())


def test_workers_that_die_and_take_over_commit_the_same_alarms(work, feed):
    """What an alarm begins is under way when they die; other policies: chaos/test_failpoints."""
    acting = {"on_drift": "refit"}
    expected = left(work(f"{feed}-alone", batch=64, **acting))
    assert any(b'"action":"refit"' in payload for _, payload in expected[0][2])
    # The first alarm comes before 445: refits of before it are withdrawn.
    one = work(feed, 445, batch=30, **acting)
    other = work(feed, 520, 0, batch=11, **acting)
    assert fenced(advance, one.session) or fenced(Session.finish_commit, one.session)
    other.abandon()
    worker = work(feed, COUNT, 0, batch=200, **acting)
    assert left(worker) == expected
    assert verify(worker.store).is_identical


def test_verify_compares_the_alarms(work, feed, expected):
    store = work(feed, keep_input=True).store
    store.call("HSET", store.keys.state, "snapshot", "", "previous", "")
    found = verify(store)
    assert (found.is_identical, found.alarms) == (True, len(expected[0][2]))
    newest = expected[0][2][-1][0]
    store.call("XDEL", store.keys.alarms, newest)
    (changed,) = verify(store).differences
    assert (changed.stream, changed.id) == (store.keys.alarms, newest)


def test_repair_appends_the_alarms_that_are_missing(work, feed, expected):
    worker = work(feed, replay_budget=100_000)
    worker.abandon()
    with Store(worker.store.url, feed) as store:
        for key in store.keys.outputs[:3]:  # as if Redis had lost the last of them
            kept = [e for e in store.call("XRANGE", key, "-", "+") if parse_id(e[0]) <= (410, 0)]
            store.call("DEL", key)
            store.append(key, kept)
        assert not store.length(store.keys.alarms)
        assert repair.repair(store).appended == COUNT - 410
        assert streams(store) == expected[0]
        assert verify(store).is_identical
