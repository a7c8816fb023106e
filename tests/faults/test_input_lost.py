"""Input taken away before it was answered: where Redis keeps a trace of it, the worker stops."""

import re

import pytest
from session_steps import advance, answer_batch
from structlog.testing import capture_logs
from world import CONFIG, World, drain, push, restore, rows, saved

from workers.errors import InputLost
from workers.feed.pinned_config import pinned_config
from workers.recording.begin import RestorePoint, put_back

ANSWERED, COUNT = 50, 100


def half_answered(world):
    """Let 50 of 100 entries be answered, and none of the others be read."""
    world.push(ANSWERED)
    world.answer().snapshot()  # so that the next worker needs none of the input before it
    world.push(COUNT - ANSWERED)
    return world


@pytest.fixture
def counted(counting_url, feed):
    """A feed on a Redis that counts what a stream got and lost."""
    with World(counting_url, feed) as world:
        yield world


@pytest.fixture
def half(counted):
    return half_answered(counted)


def on_input(command, *words):
    """Return what one command does to the input."""
    return lambda world: world.store.call(command, world.store.keys.input, *words)


delete, trim = on_input("DEL"), on_input("XTRIM", "MINID", "70-0")


def rename(world):
    world.store.call("RENAME", world.store.keys.input, f"{world.store.keys.input}:moved")


def in_turn(*acts):
    return lambda world: [act(world) for act in acts]


WAITING = [f"{i}-0" for i in range(ANSWERED + 1, COUNT + 1)]
TAKEN = r"input lost: entries .* after 50-0 .* before they were"
MADE_ANEW = r"input lost: .* made anew, after 50-0 was answered"
FAULTS = {
    "the next but two is deleted": (on_input("XDEL", "53-0"), TAKEN),
    "one that comes later is deleted": (on_input("XDEL", "90-0"), TAKEN),
    "all are deleted, one is added": (
        in_turn(on_input("XDEL", *WAITING), lambda world: world.push(1)), TAKEN,
    ),
    "some are trimmed": (trim, TAKEN),
    "a producer pushes with a bound": (  # as it may, and Redis cannot forbid it
        on_input("XADD", "MAXLEN", "20", "101-0", *rows()[COUNT]), TAKEN,
    ),
    "deleted and begun anew": (in_turn(delete, lambda world: world.push(5)), MADE_ANEW),
    "renamed, and filled with more than there was": (
        in_turn(rename, lambda world: world.push(120)), MADE_ANEW,
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("is_away", [False, True])
def test_lost_unread_input_stops_the_worker_which_names_the_remedy(half, fault, is_away):
    store, before, (takes_away, message) = half.store, half.outcome(), FAULTS[fault]
    running = None if is_away else half.session()
    takes_away(half)
    with pytest.raises(InputLost, match=message) as lost:
        drain(running or half.session(), COUNT)
    assert half.outcome() == before
    for key, gone in re.findall(r"HSET (\S+) gone '(\S+ \S+)'", str(lost.value)):
        store.call("HSET", key, "gone", gone)
    follow(lost.value, store)
    left = [entry[0] for page in store.pages(store.keys.input, b"50-0") for entry in page]
    running = half.session()
    drain(running, ANSWERED + len(left))
    assert [entry_id for entry_id, _ in half.payloads()[0]][ANSWERED:] == left
    push(store, rows()[-10:], 1001)
    store.call("XDEL", store.keys.input, "1005-0")
    with pytest.raises(InputLost):
        drain(running, running.position.seq + 9)


def follow(error, store):
    for command in re.findall(r"((?:XGROUP|XSETID|HDEL) [^,;]+)", str(error)):
        store.call(*command.split())


@pytest.mark.parametrize("is_away", [False, True])
@pytest.mark.parametrize("takes_away", [delete, rename], ids=["delete", "rename"])
@pytest.mark.parametrize("earlier", [0, 5])
def test_a_stream_that_ends_before_the_cursor_is_a_loss_on_any_redis(
    world, takes_away, earlier, is_away
):
    """A worker that waits for input notices it as one that starts does."""
    half_answered(world)
    running = None if is_away else world.answer()
    takes_away(world)
    push(world.store, rows()[:earlier])
    with pytest.raises(InputLost, match=rf"input lost: .* ends before {world.seq}-0, .* renamed"):
        advance(running or world.session())


def test_a_stream_that_was_put_back_is_no_loss(half):
    rename(half)
    with pytest.raises(InputLost):
        half.session()
    half.store.call("RENAME", f"{half.store.keys.input}:moved", half.store.keys.input)
    assert half.answer().position.cursor == b"100-0"


def test_what_was_gone_before_the_feed_began_is_not_missed(counted):
    counted.push(COUNT)
    on_input("XDEL", "30-0")(counted)
    on_input("XTRIM", "MINID", "20-0")(counted)
    running = counted.answer(80)
    trim(counted)  # by now all of it is answered
    on_input("XDEL", "100-0")(counted)
    counted.push(10)
    drain(running, 90)
    assert counted.store.state().position.cursor == b"110-0"


def test_answered_input_may_go(half):
    running = half.session(snapshot_every=20)  # trims it itself
    drain(running, 60)
    on_input("XTRIM", "MINID", "61-0")(half)
    drain(running, 80)
    on_input("XDEL", "80-0", "79-0")(half)
    drain(running, COUNT)
    on_input("XTRIM", "MAXLEN", "0")(half)
    half.push(10)
    drain(running, COUNT + 10)
    assert half.store.length(half.store.keys.out) == COUNT + 10


def test_a_feed_that_begins_before_its_input_misses_none_of_it(counted):
    running = counted.session()
    counted.push(COUNT)
    trim(counted)
    with pytest.raises(InputLost):
        answer_batch(running)


@pytest.mark.servers("oldest")
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
    return [log for log in logs if "no worker counted this input" in log["event"]]


def never_counted(half, old, new):
    """As Redis 6.2 left it, which counts nothing."""
    half.store.call("HDEL", half.store.keys.state, "added", "run_id")
    return half


def restored(half, old, new):
    """From a backup, whatever became of its input."""
    point = RestorePoint.of(half.store)
    FAULTS["deleted and begun anew"][0](half)
    put_back(half.store, point, overwrite=True)
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
    half, oldest_url, server, comes
):
    with World(oldest_url, half.feed) as old, World(server.url, half.feed) as new:
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


def test_a_feed_that_begins_is_counted_without_a_warning(counted):
    with capture_logs() as logs:
        running = counted.session()
        counted.push(COUNT)
        drain(running, COUNT)
        counted.session()
    assert warned(logs) == []


def test_a_restart_of_redis_hides_no_later_loss(server, feed):
    with World(server.url, feed, retry_timeout=20.0) as world:
        half_answered(world)
        running = world.session()
        server.stop()
        server.start()
        drain(running, COUNT)
        advance(running)
        FAULTS["deleted and begun anew"][0](world)
        with pytest.raises(InputLost):
            drain(running, COUNT + 1)


def test_a_replaced_worker_that_waits_says_nothing_of_the_input(half):
    running = half.answer()
    half.store.fence("successor", pinned_config(CONFIG, running._recovery.limits))
    delete(half)
    half.store.check_input(running.epoch)
