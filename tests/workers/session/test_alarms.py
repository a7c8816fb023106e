"""Alarms of a feed: in the commit and the digest, whatever the batches and the workers."""

import json
import time

import orjson
import pytest
from drifting import CHEAP, inverted
from history_parts import Worker, fenced
from session_steps import advance
from world import drain, push

from workers.admin import repair
from workers.admin.verify import verify
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.digest import ALARMS, MET, OUT, chain
from workers.feed.position import parse_id
from workers.message.schema import AlarmsMessage, MetricsMessage
from workers.reading.alarms import commit_times
from workers.reading.status import status
from workers.session.session import Session

COUNT, FIRST, LAST = 700, 400, 600
ORDER = [OUT, MET, ALARMS]


def entries():
    X, y = inverted(COUNT, FIRST, LAST)
    return [["x", json.dumps(x.tolist()), "y", label] for x, label in zip(X, y, strict=True)]


def settings(**changes):
    return WorkerSettings(**(CHEAP | {"replay_budget": 150} | changes))


def streams(store):
    """Return ID and payload of every entry of `out`, `met` and `alarms`."""
    return [
        [(entry_id, fields[1]) for entry_id, fields in store.call("XRANGE", key, "-", "+")]
        for key in store.keys.outputs[:3]
    ]


def answered(url, feed, count=COUNT, **changes):
    """Let one worker answer a feed; return the worker."""
    worker = Worker(url, feed, settings(**changes))
    push(worker.store, entries()[:count])
    drain(worker.session, count)
    return worker


@pytest.fixture(scope="module")
def expected(embedded_url):
    """The streams and the position of a feed that one worker answered in batches of 64."""
    with Store(embedded_url, "expected") as store:
        keys = store.call("KEYS", "osvm:{expected}:*")
        if keys:
            store.call("DEL", *keys)
    worker = answered(embedded_url, "expected", batch=64)
    found = streams(worker.store), worker.session.position
    worker.abandon()
    return found


def test_an_alarm_has_the_id_of_its_entry_and_stands_in_the_digest_after_met(expected):
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


@pytest.mark.parametrize("batch", [1, 7, 1024])
def test_batches_of_any_size_commit_the_same_alarms(embedded_url, feed, expected, batch):
    worker = answered(embedded_url, feed, batch=batch)
    assert (streams(worker.store), worker.session.position.digest) == (
        expected[0],
        expected[1].digest,
    )
    worker.abandon()


def test_workers_that_die_and_take_over_commit_the_same_alarms(embedded_url, feed, expected):
    first = Worker(embedded_url, feed, settings(batch=30))
    push(first.store, entries())
    drain(first.session, 430)  # before the first alarm or after it, with a commit under way
    second = Worker(embedded_url, feed, settings(batch=11))
    assert fenced(advance, first.session) or fenced(Session.finish_commit, first.session)
    drain(second.session, 500)
    second.abandon()  # as a kill does
    third = Worker(embedded_url, feed, settings(batch=200))
    drain(third.session, COUNT)
    assert streams(third.store) == expected[0]
    assert third.session.position.digest == expected[1].digest
    for worker in (first, third):
        worker.abandon()


@pytest.mark.parametrize("policy", ["refit", "reset"])
def test_a_policy_gives_the_same_bytes_whatever_the_workers(embedded_url, feed, policy):
    acting = {"on_drift": policy, "refit_lag": 60}
    alone = answered(embedded_url, feed, batch=64, **acting)
    expected = streams(alone.store), alone.session.position
    alone.abandon()
    assert any(b'"action":"%b"' % policy.encode() in payload for _, payload in expected[0][2])
    with Store(embedded_url, feed) as store:
        assert verify(store).is_identical
        store.call("DEL", *store.call("KEYS", f"osvm:{{{feed}}}:*"))
    first = Worker(embedded_url, feed, settings(batch=30, **acting))
    push(first.store, entries())
    drain(first.session, 445)  # an alarm was acted on; refits of before it were withdrawn
    first.abandon()  # as a kill does
    second = Worker(embedded_url, feed, settings(batch=7, **acting))
    drain(second.session, 520)
    third = Worker(embedded_url, feed, settings(batch=300, **acting))
    assert fenced(advance, second.session) or fenced(Session.finish_commit, second.session)
    drain(third.session, COUNT)
    assert (streams(third.store), third.session.position) == expected
    for worker in (second, third):
        worker.abandon()


def test_it_is_told_when_alarms_were_committed_and_no_answer_depends_on_it(
    embedded_url, feed, expected
):
    before = time.time() * 1000
    worker = answered(embedded_url, feed)
    store = worker.store
    told = commit_times(store.call("XRANGE", store.keys.raised, "-", "+"))
    assert list(told) == [entry_id for entry_id, _ in streams(store)[2]]
    assert all(before - 1000 <= at <= time.time() * 1000 + 1000 for at in told.values())
    assert (streams(store), worker.session.position) == expected
    worker.abandon()


def test_verify_compares_the_alarms(embedded_url, feed, expected):
    answered(embedded_url, feed, keep_input=True).abandon()
    with Store(embedded_url, feed) as store:
        store.call("HSET", store.keys.state, "snapshot", "", "previous", "")
        found = verify(store)
        assert found.is_identical
        assert found.alarms == len(expected[0][2])
        newest = expected[0][2][-1][0]
        store.call("XDEL", store.keys.alarms, newest)
        changed = verify(store)
        assert [d.stream for d in changed.differences] == [store.keys.alarms]
        assert changed.differences[0].id == newest


def test_repair_appends_the_alarms_that_are_missing(embedded_url, feed, expected):
    answered(embedded_url, feed, replay_budget=100_000).abandon()
    with Store(embedded_url, feed) as store:
        for key in store.keys.outputs[:3]:  # as if Redis had lost the last of them
            kept = [e for e in store.call("XRANGE", key, "-", "+") if parse_id(e[0]) <= (410, 0)]
            store.call("DEL", key)
            store.append(key, kept)
        assert not store.length(store.keys.alarms)
        assert repair.repair(store).appended == COUNT - 410
        assert streams(store) == expected[0]
        assert verify(store).is_identical


def test_status_tells_which_alarms_are_open(embedded_url, feed):
    worker = answered(embedded_url, feed, count=COUNT, metrics_every=10_000)
    raised = [a for _, p in streams(worker.store)[2] for a in orjson.loads(p)["alarms"]]
    newest = {(a["kind"], a["scope"], a["name"]): a for a in raised}
    found = status(worker.store)
    assert found.validity is None
    told = orjson.loads(orjson.dumps(found.open_alarms))
    assert told == sorted(newest.values(), key=lambda alarm: alarm["n"])
    assert 0 < len(found.open_alarms) <= len(raised) == found.alarms
    worker.abandon()
