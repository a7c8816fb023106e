"""An input stream that was deleted or renamed, and perhaps made anew: what it held is lost."""

import re

import pytest
from session_steps import advance, answer_batch
from structlog.testing import capture_logs
from world import CONFIG, drain, payloads, push, restore, rows, saved, session

from workers.admin.restore import backup_of
from workers.admin.restore import restore as put_back
from workers.broker import embedded
from workers.broker.store import Store
from workers.errors import InputLost
from workers.feed.agreement import agreement

ANSWERED, COUNT = 50, 60


@pytest.fixture
def kept(system_url, feed):
    """A feed of 60 entries on a Redis that counts them, 50 of them answered; no worker."""
    with Store(system_url, feed, block_ms=20) as store:
        answered(store)
        yield store


def answered(store):
    push(store, rows()[:COUNT])
    drain(session(store), ANSWERED)
    session(store).snapshot()


def delete(store):
    store.call("DEL", store.keys.input)


def rename(store):
    store.call("RENAME", store.keys.input, f"{store.keys.input}:moved")


def push_few(store):
    push(store, rows()[COUNT : COUNT + 5], COUNT + 1)


def push_as_many_as_there_were_and_more(store):
    push(store, rows()[COUNT : 3 * COUNT], COUNT + 1)


def push_earlier_ones(store):
    push(store, rows()[:5], 1)


def push_nothing(store):
    pass


AWAY = pytest.mark.parametrize("takes_away", [delete, rename])


def at_start(store):
    session(store)


def warned(logs):
    return [log for log in logs if "was not counted so far" in log["event"]]


@AWAY
@pytest.mark.parametrize("fills", [push_few, push_as_many_as_there_were_and_more])
def test_a_stream_made_anew_while_the_worker_was_away_is_a_loss(kept, takes_away, fills):
    before = payloads(kept), kept.state().position
    takes_away(kept)
    fills(kept)
    with pytest.raises(InputLost, match=r"input lost: .* made anew, after 50-0 was answered"):
        at_start(kept)
    assert (payloads(kept), kept.state().position) == before


@AWAY
@pytest.mark.parametrize("fills", [push_few, push_as_many_as_there_were_and_more])
def test_a_stream_made_anew_under_a_worker_is_a_loss(kept, takes_away, fills):
    running = session(kept)
    drain(running, COUNT)
    before = payloads(kept), kept.state().position
    takes_away(kept)
    fills(kept)
    with pytest.raises(InputLost, match=r"input lost: .* made anew, after 60-0 was answered"):
        answer_batch(running)
    assert (payloads(kept), kept.state().position) == before


@AWAY
@pytest.mark.parametrize("fills", [push_nothing, push_earlier_ones])
def test_a_stream_that_ends_before_the_cursor_is_a_loss_on_any_redis(store, takes_away, fills):
    answered(store)
    takes_away(store)
    fills(store)
    with pytest.raises(InputLost, match=r"input lost: .* ends before 50-0, .* renamed"):
        at_start(store)


@AWAY
@pytest.mark.parametrize("fills", [push_nothing, push_earlier_ones])
def test_a_worker_that_waits_notices_that_its_stream_is_gone(store, takes_away, fills):
    answered(store)
    running = session(store)
    drain(running, COUNT)
    takes_away(store)
    fills(store)
    with pytest.raises(InputLost, match=r"input lost: .* ends before 60-0"):
        advance(running)


def test_a_stream_that_was_put_back_is_no_loss(kept):
    rename(kept)
    with pytest.raises(InputLost):
        at_start(kept)
    kept.call("RENAME", f"{kept.keys.input}:moved", kept.keys.input)
    running = session(kept)
    drain(running, COUNT)
    assert running.position.cursor == b"60-0"


@pytest.mark.parametrize("fills", [push_nothing, push_few, push_earlier_ones])
def test_the_message_says_how_to_go_on_without_it_and_the_next_loss_stops_again(kept, fills):
    delete(kept)
    fills(kept)
    with pytest.raises(InputLost) as lost:
        at_start(kept)
    for command in re.findall(r"((?:XGROUP|XSETID|HDEL) [^,;]+)", str(lost.value)):
        kept.call(*command.split())
    push(kept, rows()[:10], 101)
    comes = {push_few: 15}.get(fills, 10)
    running = session(kept)
    drain(running, ANSWERED + comes)
    running.snapshot()
    delete(kept)
    push(kept, rows()[:10], 201)
    with pytest.raises(InputLost):
        at_start(kept)


def test_another_server_that_counts_less_is_believed_with_a_warning(kept, system_program):
    """As after a copy was loaded: the stream has all entries, under a lower count."""
    kept.call("XDEL", kept.keys.input, "10-0")  # answered; so 60 were added, and 59 are loaded
    entries = [entry for page in kept.pages(kept.keys.input, b"0-0") for entry in page]
    with (
        embedded.temporary(system_program) as other,
        Store(other.url, kept.keys.feed, block_ms=20) as moved,
    ):
        restore(moved, saved(kept))
        delete(moved)
        moved.append(moved.keys.input, entries)
        with capture_logs() as logs:
            running = session(moved)
        assert len(warned(logs)) == 1
        drain(running, COUNT)
        with capture_logs() as logs:
            running = session(moved)
        assert warned(logs) == []
        delete(moved)
        push_few(moved)
        with pytest.raises(InputLost):
            answer_batch(running)
    drain(session(kept), COUNT)
    assert running.position == kept.state().position


def test_a_feed_of_redis_6_2_goes_on_under_7_with_a_warning(embedded_url, system_url, feed):
    with Store(embedded_url, feed, block_ms=20) as old, Store(system_url, feed) as new:
        new.block_ms = 20
        answered(old)
        old.call("XTRIM", old.keys.input, "MINID", "40-0")  # so the count begins at 21, not 60
        for key in old.call("KEYS", f"{old.keys.state[:-2]}*"):
            new.call("RESTORE", key, 0, old.call("DUMP", key))
        with capture_logs() as logs:
            running = session(new)
        assert len(warned(logs)) == 1
        for store in (old, new):
            drain(session(store), COUNT)
        assert payloads(old) == payloads(new)
        running = session(new)
        delete(new)
        push_few(new)
        with pytest.raises(InputLost):
            answer_batch(running)


def test_a_feed_that_was_never_counted_goes_on_with_a_warning(kept):
    """As Redis 6.2 left it, which counts nothing."""
    kept.call("HDEL", kept.keys.state, "added", "run_id")
    with capture_logs() as logs:
        running = session(kept)
    assert len(warned(logs)) == 1
    drain(running, COUNT)
    delete(kept)
    push_few(kept)
    with pytest.raises(InputLost):
        answer_batch(running)


def test_a_restored_feed_goes_on_whatever_became_of_its_input(kept):
    backup = backup_of(kept)
    delete(kept)
    push_few(kept)
    put_back(kept, backup, overwrite=True)
    with capture_logs() as logs:
        running = session(kept)
    assert len(warned(logs)) == 1
    drain(running, ANSWERED + 5)
    assert running.position.cursor == b"65-0"


def test_a_feed_that_begins_is_counted_without_a_warning(system_url, feed):
    with Store(system_url, feed, block_ms=20) as store, capture_logs() as logs:
        running = session(store)
        push(store, rows()[:COUNT])
        drain(running, COUNT)
        session(store)
    assert warned(logs) == []


def test_a_restart_of_the_server_under_a_worker_does_not_hide_the_next_loss(counting_server, feed):
    with Store(counting_server.url, feed, block_ms=20, patience=20.0) as store:
        answered(store)
        running = session(store)
        counting_server.stop()
        counting_server.start()
        drain(running, COUNT)
        advance(running)
        delete(store)
        push_few(store)
        with pytest.raises(InputLost):
            drain(running, COUNT + 1)


def test_a_replaced_worker_that_waits_says_nothing_of_the_input(kept):
    running = session(kept)
    drain(running, COUNT)
    kept.fence("successor", agreement(CONFIG, running._limits))
    delete(kept)
    kept.check_input(running._ownership.epoch)
