"""Published states: whole and checked, of committed positions only, never in the way."""

import pytest
from published_feed import CONFIG, examples, predictor_at, push, session, work
from session_steps import answer_batch

from online_svm.predictor.frozen_predictor import FrozenPredictor
from workers.admin.reset import reset
from workers.errors import InvalidPublication
from workers.feed.position import Position
from workers.session import publisher
from workers.session.publisher import MAX_TIME_SHARE, Publisher


def published(store):
    found = store.publication()
    return found, FrozenPredictor.restore(store.published(found), CONFIG)


def test_the_newest_state_is_that_of_the_predictor_at_its_n(store):
    rows = examples(95)
    push(store, rows)
    work(session(store), 95)
    found, state = published(store)
    assert found.n == found.seq == state.n >= 80  # the last model became active there
    assert store.published(found) == predictor_at(rows, found.n).frozen().snapshot()
    assert found.config_hash == store.state().pinned.config_hash


SPARSE = CONFIG.model_copy(update={"committee": "single", "refit_every": 1000})
"""Refits after 10, 20, 40 and 80 of the first hundred examples."""


# Where a refit is due after a batch of 10, the state of the new model follows before the next one.
# One that is due while another is being sent, as after 30 examples, follows later, newer.
@pytest.mark.parametrize(
    ("config", "every", "expected"),
    [
        (CONFIG, 1000, [10, 20, 40, 60, 80]),
        (SPARSE, 1000, [10, 20, 40, 80]),
        (SPARSE, 5, [10, 20, 40, 60, 70, 80]),
    ],
)
def test_a_state_follows_each_new_model_and_each_so_many_examples(store, config, every, expected):
    push(store, examples(95))
    running, seen = session(store, every=every, config=config), []
    while running.position.seq < 90:
        answer_batch(running)
        found = store.publication()
        if found is not None and found.n not in seen:
            seen.append(found.n)
    assert seen == expected


def life(store):
    """Return by n how long the parts of each state live: seconds, -1 for ever."""
    return {int(key.split(":")[3]): int(store.call("TTL", key)) for key in store.published_keys()}


def test_the_newest_state_stays_and_the_others_go(store, monkeypatch):
    monkeypatch.setattr(publisher, "PART_BYTES", 4096)
    push(store, examples(95))
    work(session(store, every=5), 95)
    found, lives = store.publication(), life(store)
    assert found.parts > 1
    assert found.n == max(lives) >= 80
    assert lives.pop(found.n) == -1
    assert len(lives) > 1
    assert all(0 < seconds <= 10 for seconds in lives.values())
    assert FrozenPredictor.restore(store.published(found), CONFIG).n == found.n


def test_after_a_restart_the_state_before_is_still_replaced(store):
    rows = examples(140)
    push(store, rows[:60])
    first = session(store, every=5)
    work(first, 60)
    first.snapshot()
    push(store, rows[60:])
    work(session(store, every=5), 140)
    assert [n for n, seconds in life(store).items() if seconds < 0] == [store.publication().n]


@pytest.mark.parametrize("why", ["it is fenced", "its state is ahead of the commits"])
def test_what_is_not_the_committed_state_of_the_feeds_worker_is_not_published(store, why):
    rows = examples(60)
    push(store, rows[:40])
    running = session(store)
    work(running, 40)
    before, at = store.publication(), running.position
    if why == "it is fenced":
        session(store)  # takes the feed over
    else:
        at = Position(b"99999999999999-0", 60, 60, bytes(32))
    running._publisher.offer(predictor_at(rows, 60), at, running.epoch)
    store.call("PING")
    assert store.publication() == before


def test_damage_is_refused_and_named_and_a_reset_deletes_what_was_published(store, monkeypatch):
    monkeypatch.setattr(publisher, "PART_BYTES", 4096)
    push(store, examples(95))
    work(session(store), 95)
    found = store.publication()
    key = found.keys(store.keys)[1]
    held = bytearray(store.call("GET", key))
    held[100] ^= 1
    store.call("SET", key, bytes(held))
    with pytest.raises(InvalidPublication, match=f"{found.name} .* gone or damaged"):
        store.published(found)
    store.call("DEL", key)
    with pytest.raises(InvalidPublication):
        store.published(found)
    for field, value in ((b"sha256", b"x"), (b"parts", b"0"), (b"n", b"-1"), (b"n", b"99")):
        store.call("HSET", store.keys.published, field, value)
        with pytest.raises(InvalidPublication, match="damaged"):
            store.publication()
        store.call("HSET", store.keys.published, *found.fields())
    reset(store, with_input=True)
    assert ([*store.published_keys()], store.publication()) == ([], None)


def test_publishing_takes_a_twentieth_of_the_time_at_most(store):
    rows = examples(40)
    push(store, rows)
    work(session(store, every=0), 40)
    now, step = [0.0], 1.0

    def clock():
        now[0] += step
        return now[0]

    made, begun = Publisher(store, 1, clock=clock), 0
    for n in range(2, 400):
        made._sent = None
        made._newest = None
        before = made._not_before
        made.offer(predictor_at(rows, 2), store.state().position, epoch=n)
        begun += made._not_before != before
    spent = begun * step
    assert begun > 1
    assert spent <= MAX_TIME_SHARE * now[0] + step
