"""A finished fit of the memory's trees is kept, and a later worker takes it."""

import pytest
from session_steps import shared_pool
from world import drain, payloads, push, rows, session, wait_until

from online_svm.config import PredictorConfig
from workers.admin.reset import reset
from workers.broker.store import Store
from workers.feed.state import StoredFit
from workers.recording.erasure import erase
from workers.refit.pool import PoolThread
from workers.refit.process import FIT
from workers.session.recovery import kept_fits

SUBMITTED, TOTAL = 1_050, 1_300
"""Entries of a feed: its first trees are submitted; they have answered for some time."""

CONFIG = PredictorConfig(classes=("a", "b"), refit_every=400, window=400)


@pytest.fixture
def refits():
    """Return refitters of the pool that the tests share."""
    made = []

    def begin():
        made.append(shared_pool().refitter(CONFIG))
        return made[-1]

    yield begin
    for one in made:
        one.close()


@pytest.fixture
def fitted(monkeypatch):
    """The fits that refit processes compute from now on."""
    seen, exchange = [], PoolThread._exchange

    def exchanged(thread, learner, message):
        if message[0] == FIT:
            seen.append(message)
        return exchange(thread, learner, message)

    monkeypatch.setattr(PoolThread, "_exchange", exchanged)
    return seen


@pytest.fixture
def left(store, refits):
    """A feed whose worker is gone between the fits of its first trees and the next snapshot."""
    push(store, rows(TOTAL)[:SUBMITTED])
    before = session(store, batch=50, config=CONFIG, refits=refits(), snapshot_every=300)
    drain(before, SUBMITTED)
    wait_until(lambda: before.idle() or len(kept_fits(store)) == 2)
    assert store.state().snapshot.n < 1_000
    return store


def go_on(store, refits):
    push(store, rows(TOTAL)[SUBMITTED:], SUBMITTED + 1)
    drain(session(store, batch=50, config=CONFIG, refits=refits()), TOTAL)
    return payloads(store)


@pytest.fixture(scope="module")
def expected(embedded_url):
    """What a feed answers that nothing happens to."""
    with Store(embedded_url, "unharmed", block_ms=20) as store:
        push(store, rows(TOTAL))
        drain(session(store, batch=50, config=CONFIG), TOTAL)
        yield payloads(store)
        reset(store, with_input=True, force=True)


def test_the_next_worker_takes_them_and_answers_alike(left, refits, fitted, expected):
    assert go_on(left, refits) == expected
    assert fitted == []


@pytest.mark.parametrize("damage", ["content", "name", "type", "gone"])
def test_damaged_ones_are_fitted_again(left, refits, fitted, expected, damage):
    for kind in ("long", "mid"):
        key = left.keys.fits(kind)
        (fit,) = (StoredFit.parse(kind, pairs(entry)) for entry in left.fits(kind))
        left.call("DEL", key)
        if damage == "content":
            fields = pairs(["", fit.fields()]) | {b"trees": fit.trees[:-1] + b"?"}
            left.append(key, [(b"1-0", [part for pair in fields.items() for part in pair])])
        elif damage == "name":
            left.append(key, [(b"1-0", fit._replace(task=b"another").fields())])
        elif damage == "type":
            left.call("SADD", key, "x")
    assert go_on(left, refits) == expected
    assert len(fitted) == 2


def pairs(entry):
    return dict(zip(entry[1][::2], entry[1][1::2], strict=True))


def test_two_of_a_kind_are_kept_for_an_hour(left):
    kept = kept_fits(left)
    for number in range(3):
        left.put_fit(StoredFit("long", b"%d" % number, b"trees"))
    assert [pairs(entry)[b"task"] for entry in left.fits("long")] == [b"1", b"2"]
    assert len(left.fits("mid")) == 1
    assert len(kept_fits(left).keys() & kept.keys()) == 1
    assert 3_500 < left.call("TTL", left.keys.fits("long")) <= 3_600


def test_a_worker_that_was_replaced_keeps_none(left, refits):
    before = kept_fits(left)
    with Store(left.url, left.keys.feed) as other:
        session(other, config=CONFIG, refits=refits())
        left.put_fit(StoredFit("long", b"task", b"trees"))
        assert left.call("EXISTS", left.keys.state)  # the reply follows that of the script
        assert kept_fits(other) == before


@pytest.mark.parametrize("act", ["erase", "reset"])
def test_they_are_deleted_with_what_they_learned(store, refits, act):
    push(store, [[*fields, "id", f"id-{i}"] for i, fields in enumerate(rows(SUBMITTED))])
    before = session(store, batch=50, config=CONFIG, refits=refits(), snapshot_every=300)
    drain(before, SUBMITTED)
    wait_until(lambda: before.idle() or len(kept_fits(store)) == 2)
    if act == "erase":
        erase(store, "id-5")
    else:
        reset(store, with_input=False)
    assert kept_fits(store) == {}
    before._store.put_fit(StoredFit("long", b"task", b"trees"))
    assert store.call("EXISTS", store.keys.fits("long")) == 0
