"""Input taken away before it was answered: where Redis keeps a trace of it, the worker stops."""

import re

import pytest
from session_steps import advance, answer_batch
from structlog.testing import capture_logs
from world import CONFIG, World, drain, push, restore, rows, saved

from workers.admin.restore import backup_of
from workers.admin.restore import restore as put_back
from workers.errors import InputLost
from workers.feed.agreement import agreement

ANSWERED, COUNT = 50, 100


def half_answered(world):
    """Let 50 of 100 entries be answered, and none of the others be read."""
    world.push(ANSWERED)
    world.answer().snapshot()  # so that the next worker needs none of the input before it
    world.push(COUNT - ANSWERED)
    return world


@pytest.fixture
def half(system_url, feed):
    """Such a feed, on a Redis that counts what a stream got and lost."""
    with World(system_url, feed) as world:
        yield half_answered(world)


def delete_one_that_comes_next(world):
    world.store.call("XDEL", world.store.keys.input, "53-0")


def delete_one_that_comes_later(world):
    world.store.call("XDEL", world.store.keys.input, "90-0")


def delete_all_and_add_one(world):
    waiting = [f"{i}-0" for i in range(ANSWERED + 1, COUNT + 1)]
    world.store.call("XDEL", world.store.keys.input, *waiting)
    world.push(1)


def trim(world):
    world.store.call("XTRIM", world.store.keys.input, "MINID", "70-0")


def push_with_a_bound(world):
    """As a producer may, and Redis cannot forbid it."""
    world.store.call("XADD", world.store.keys.input, "MAXLEN", "20", "101-0", *rows()[COUNT])


def delete(world):
    world.store.call("DEL", world.store.keys.input)


def rename(world):
    world.store.call("RENAME", world.store.keys.input, f"{world.store.keys.input}:moved")


def delete_and_begin_anew(world):
    delete(world)
    world.push(5)


def rename_and_fill_anew(world):
    """With more entries than there were."""
    rename(world)
    world.push(120)


TAKEN = r"input lost: entries .* after 50-0 .* before they were"
MADE_ANEW = r"input lost: .* made anew, after 50-0 was answered"
FAULTS = {
    delete_one_that_comes_next: TAKEN, delete_one_that_comes_later: TAKEN,
    delete_all_and_add_one: TAKEN, trim: TAKEN, push_with_a_bound: TAKEN,
    delete_and_begin_anew: MADE_ANEW, rename_and_fill_anew: MADE_ANEW,
}  # fmt: skip


@pytest.mark.parametrize("takes_away", FAULTS)
@pytest.mark.parametrize("is_away", [False, True])
def test_from_redis_7_on_unread_input_that_is_gone_stops_the_worker_which_says_how_to_go_on(
    half, takes_away, is_away
):
    store, before = half.store, half.outcome()
    running = None if is_away else half.session()
    takes_away(half)
    with pytest.raises(InputLost, match=FAULTS[takes_away]) as lost:
        drain(running or half.session(), COUNT)
    assert half.outcome() == before
    for key, gone in re.findall(r"HSET (\S+) gone '(\S+ \S+)'", str(lost.value)):
        store.call("HSET", key, "gone", gone)
    for command in re.findall(r"((?:XGROUP|XSETID|HDEL) [^,;]+)", str(lost.value)):
        store.call(*command.split())
    left = [entry[0] for page in store.pages(store.keys.input, b"50-0") for entry in page]
    running = half.session()
    drain(running, ANSWERED + len(left))
    assert [entry_id for entry_id, _ in half.payloads()[0]][ANSWERED:] == left
    push(store, rows()[-10:], 1001)
    store.call("XDEL", store.keys.input, "1005-0")
    with pytest.raises(InputLost):
        drain(running, running.position.seq + 9)


def push_nothing(world):
    pass


def push_earlier_ones(world):
    push(world.store, rows()[:5], 1)


@pytest.mark.parametrize("is_away", [False, True])
@pytest.mark.parametrize("takes_away", [delete, rename])
@pytest.mark.parametrize("fills", [push_nothing, push_earlier_ones])
def test_a_stream_that_ends_before_the_cursor_is_a_loss_on_any_redis(
    world, takes_away, fills, is_away
):
    """A worker that waits for input notices it as one that starts does."""
    half_answered(world)
    running = None if is_away else world.answer()
    takes_away(world)
    fills(world)
    with pytest.raises(InputLost, match=rf"input lost: .* ends before {world.seq}-0, .* renamed"):
        advance(running or world.session())


@pytest.mark.parametrize("fills", [push_nothing, push_earlier_ones])
def test_where_it_ends_before_the_cursor_the_message_says_how_to_go_on_without_it(half, fills):
    delete(half)
    fills(half)
    with pytest.raises(InputLost, match="ends before 50-0") as lost:
        half.session()
    for command in re.findall(r"((?:XGROUP|XSETID|HDEL) [^,;]+)", str(lost.value)):
        half.store.call(*command.split())
    push(half.store, rows()[:10], 101)
    running = half.session()
    drain(running, ANSWERED + 10)
    running.snapshot()
    delete(half)
    push(half.store, rows()[:10], 201)
    with pytest.raises(InputLost):
        half.session()


def test_a_stream_that_was_put_back_is_no_loss(half):
    rename(half)
    with pytest.raises(InputLost):
        half.session()
    half.store.call("RENAME", f"{half.store.keys.input}:moved", half.store.keys.input)
    assert half.answer().position.cursor == b"100-0"


def test_what_was_gone_before_the_feed_began_is_not_missed(system_url, feed):
    with World(system_url, feed) as world:
        world.push(COUNT)
        world.store.call("XDEL", world.store.keys.input, "30-0")
        world.store.call("XTRIM", world.store.keys.input, "MINID", "20-0")
        running = world.answer(80)
        trim(world)  # by now all of it is answered
        world.store.call("XDEL", world.store.keys.input, "100-0")
        world.push(10)
        drain(running, 90)
        assert world.store.state().position.cursor == b"110-0"


def test_answered_input_may_go(half):
    running, key = half.session(snapshot_every=20), half.store.keys.input  # trims it itself
    drain(running, 60)
    half.store.call("XTRIM", key, "MINID", "61-0")
    drain(running, 80)
    half.store.call("XDEL", key, "80-0", "79-0")
    drain(running, COUNT)
    half.store.call("XTRIM", key, "MAXLEN", "0")
    half.push(10)
    drain(running, COUNT + 10)
    assert half.store.length(half.store.keys.out) == COUNT + 10


def test_a_feed_that_begins_before_its_input_misses_none_of_it(system_url, feed):
    with World(system_url, feed) as world:
        running = world.session()
        world.push(COUNT)
        trim(world)
        with pytest.raises(InputLost):
            answer_batch(running)


@pytest.mark.servers("embedded")
def test_before_redis_7_an_entry_that_is_deleted_unread_was_never_there(world):
    """Nothing tells it from one that was not pushed: there is no answer, and no empty example."""
    outcomes = []
    for each, is_pushed in ((world, False), (world.beside("deleted"), True)):
        each.push(ANSWERED)
        running = each.answer()
        if is_pushed:
            push(each.store, rows()[ANSWERED : ANSWERED + 1], ANSWERED + 1)
            assert each.store.call("XDEL", each.store.keys.input, f"{ANSWERED + 1}-0") == 1
        push(each.store, rows()[ANSWERED + 1 : COUNT], ANSWERED + 2)
        drain(running, COUNT - 1)
        outcomes.append(each.outcome())
    assert outcomes[0] == outcomes[1]


def warned(logs):
    return [log for log in logs if "was not counted so far" in log["event"]]


def never_counted(half, old, new):
    """As Redis 6.2 left it, which counts nothing."""
    half.store.call("HDEL", half.store.keys.state, "added", "run_id")
    return half


def restored(half, old, new):
    """From a backup, whatever became of its input."""
    backup = backup_of(half.store)
    delete_and_begin_anew(half)
    put_back(half.store, backup, overwrite=True)
    return half


def from_redis_6_2(half, old, new):
    half_answered(old)
    old.store.call("XTRIM", old.store.keys.input, "MINID", "40-0")  # the count begins at 61
    restore(new.store, [one for one in saved(old.store) if old.feed.encode() in one[0]])
    return new


def counted_less_elsewhere(half, old, new):
    """As after a copy was loaded: the stream has all entries, under a lower count."""
    key = half.store.keys.input
    half.answer(60).snapshot()  # it counted 100
    half.store.call("XDEL", key, "10-0")  # answered, and not among the 99 that are loaded
    entries = [entry for page in half.store.pages(key, b"0-0") for entry in page]
    restore(new.store, [one for one in saved(half.store) if half.feed.encode() in one[0]])
    delete(new)
    new.store.append(key, entries)
    return new


@pytest.mark.parametrize("comes", [never_counted, restored, from_redis_6_2, counted_less_elsewhere])
def test_a_feed_whose_input_was_counted_otherwise_goes_on_with_one_warning(
    half, embedded_url, counting_server, comes
):
    with World(embedded_url, half.feed) as old, World(counting_server.url, half.feed) as new:
        found = comes(half, old, new)
        with capture_logs() as logs:
            running = found.session()
        assert len(warned(logs)) == 1
        seq, cursor = running.position.seq, running.position.cursor
        left = [one for page in found.store.pages(found.store.keys.input, cursor) for one in page]
        drain(running, seq + len(left))
        assert running.position.cursor == left[-1][0]
        with capture_logs() as logs:
            running = found.session()
        assert warned(logs) == []
        if found is new:  # the same input, and what answered it is elsewhere
            assert (old if comes is from_redis_6_2 else half).answer(COUNT).position == (
                running.position
            )
        delete(found)
        push(found.store, rows()[:5], 301)
        with pytest.raises(InputLost):
            answer_batch(running)


@pytest.mark.servers("system")
def test_a_feed_that_begins_is_counted_without_a_warning(world):
    with capture_logs() as logs:
        running = world.session()
        world.push(COUNT)
        drain(running, COUNT)
        world.session()
    assert warned(logs) == []


def test_a_restart_of_the_server_under_a_worker_does_not_hide_the_next_loss(counting_server, feed):
    with World(counting_server.url, feed, patience=20.0) as world:
        half_answered(world)
        running = world.session()
        counting_server.stop()
        counting_server.start()
        drain(running, COUNT)
        advance(running)
        delete_and_begin_anew(world)
        with pytest.raises(InputLost):
            drain(running, COUNT + 1)


def test_a_replaced_worker_that_waits_says_nothing_of_the_input(half):
    running = half.answer()
    half.store.fence("successor", agreement(CONFIG, running._limits))
    delete(half)
    half.store.check_input(running._ownership.epoch)
