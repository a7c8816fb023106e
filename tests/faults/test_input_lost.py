"""Input taken away before anybody read it: where Redis keeps a trace of it, the worker stops."""

import re

import pytest
from session_steps import answer_batch
from world import drain, payloads, push, rows, session

from workers.broker.store import Store
from workers.errors import InputLost

ANSWERED, COUNT = 50, 100


@pytest.fixture
def kept(system_url, feed):
    """A feed of 100 entries, to be answered there."""
    with Store(system_url, feed, block_ms=20) as store:
        push(store, rows()[:COUNT])
        yield store


@pytest.fixture
def half_answered(system_url, feed):
    """A feed of 100 entries, and a worker that answered 50 and read none of the others."""
    with Store(system_url, feed, block_ms=20) as store:
        push(store, rows()[:ANSWERED])
        running = session(store)
        drain(running, ANSWERED)
        push(store, rows()[ANSWERED:COUNT], ANSWERED + 1)
        yield store, running


def delete_one_that_comes_next(store):
    store.call("XDEL", store.keys.input, "53-0")


def delete_one_that_comes_later(store):
    store.call("XDEL", store.keys.input, "90-0")


def delete_all_and_add_one(store):
    waiting = [f"{i}-0" for i in range(ANSWERED + 1, COUNT + 1)]
    store.call("XDEL", store.keys.input, *waiting)
    push(store, rows()[COUNT : COUNT + 1], COUNT + 1)


def trim(store):
    store.call("XTRIM", store.keys.input, "MINID", "70-0")


def push_with_a_bound(store):
    """As a producer may, and Redis cannot forbid it."""
    fields = rows()[COUNT]
    store.call("XADD", store.keys.input, "MAXLEN", "20", f"{COUNT + 1}-0", *fields)


FAULTS = [
    delete_one_that_comes_next, delete_one_that_comes_later, delete_all_and_add_one, trim,
    push_with_a_bound,
]  # fmt: skip


@pytest.mark.parametrize("takes_away", FAULTS)
@pytest.mark.parametrize("restarts", [False, True])
def test_from_redis_7_on_unread_input_that_is_gone_stops_the_worker(
    half_answered, takes_away, restarts
):
    kept, running = half_answered
    if restarts:
        running = session(kept)
    before = payloads(kept), kept.state().position
    takes_away(kept)
    with pytest.raises(InputLost, match=r"input lost: entries .* after 50-0 .* before they were"):
        drain(running, COUNT)
    assert (payloads(kept), kept.state().position) == before


@pytest.mark.parametrize("takes_away", FAULTS)
def test_the_message_says_how_to_go_on_without_it_and_the_next_loss_stops_again(
    half_answered, takes_away
):
    kept, running = half_answered
    running.snapshot()  # so that the next worker needs none of the input before it
    takes_away(kept)
    with pytest.raises(InputLost) as lost:
        answer_batch(session(kept))
    key, gone = re.search(r"HSET (\S+) gone '(\S+ \S+)'", str(lost.value)).groups()
    kept.call("HSET", key, "gone", gone)
    left = [entry[0] for page in kept.pages(kept.keys.input, b"50-0") for entry in page]
    running = session(kept)
    drain(running, ANSWERED + len(left))
    assert [entry_id for entry_id, _ in payloads(kept)[0]][ANSWERED:] == left
    push(kept, rows()[-10:], 201)
    kept.call("XDEL", kept.keys.input, "205-0")
    with pytest.raises(InputLost):
        drain(running, running.position.seq + 9)


def test_what_was_gone_before_the_feed_began_is_not_missed(kept):
    kept.call("XDEL", kept.keys.input, "30-0")
    kept.call("XTRIM", kept.keys.input, "MINID", "20-0")
    running = session(kept)
    drain(running, 80)
    trim(kept)  # by now all of it is answered
    kept.call("XDEL", kept.keys.input, "100-0")
    push(kept, rows()[:10], 101)
    drain(running, 90)
    assert kept.state().position.cursor == b"110-0"


def test_answered_input_may_go(kept):
    running = session(kept, snapshot_every=20)  # trims the input itself
    drain(running, 60)
    kept.call("XTRIM", kept.keys.input, "MINID", "61-0")
    drain(running, 80)
    kept.call("XDEL", kept.keys.input, "80-0", "79-0")
    drain(running, COUNT)
    kept.call("XTRIM", kept.keys.input, "MAXLEN", "0")
    push(kept, rows()[:10], 101)
    drain(running, COUNT + 10)
    assert kept.length(kept.keys.out) == COUNT + 10


def test_a_feed_that_begins_before_its_input_misses_none_of_it(system_url, feed):
    with Store(system_url, feed, block_ms=20) as store:
        running = session(store)
        push(store, rows()[:COUNT])
        trim(store)
        with pytest.raises(InputLost):
            answer_batch(running)


def test_before_redis_7_an_entry_that_is_deleted_unread_was_never_there(embedded_url, feed):
    """Nothing tells it from one that was not pushed: there is no answer, and no empty example."""
    outcomes = []
    for name, takes_away in (("never", False), ("deleted", True)):
        with Store(embedded_url, f"{feed}-{name}", block_ms=20) as store:
            push(store, rows()[:ANSWERED])
            running = session(store)
            drain(running, ANSWERED)
            if takes_away:
                push(store, rows()[ANSWERED : ANSWERED + 1], ANSWERED + 1)
                assert store.call("XDEL", store.keys.input, f"{ANSWERED + 1}-0") == 1
            push(store, rows()[ANSWERED + 1 : COUNT], ANSWERED + 2)
            drain(running, COUNT - 1)
            outcomes.append((payloads(store), store.state().position))
    assert outcomes[0] == outcomes[1]
