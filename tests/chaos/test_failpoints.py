"""Workers die just before or just after a call to Redis, one or two in turn: the same bytes."""

import json
import os
from functools import cache

import history_modes
import pytest
from fault_workers import end
from history_modes import FEED, Mode
from history_parts import difference, found_in, uninterrupted
from world import SETTINGS, drain, flags_of, outcome, push, restore, rows, saved, seq_of, session

from workers.admin.reset import reset
from workers.broker import embedded
from workers.broker.failpoints import EXIT_CODE, NAMES, VARIABLE
from workers.broker.store import Store
from workers.session.recovery import kept_fits

FIRST, TOTAL = 60, 90
"""Entries for the first worker, and for both."""

# Only commands that read ask for the length of a stream; no worker passes there.
PASSED = [name for name in NAMES if not name.endswith("-xlen")]

# Further on: another value is read; later batches; the second snapshot.
AGAIN = ["after-get:2", "before-xread:3", "before-commit:2", "after-commit:2"]
AGAIN += ["before-put:2", "after-put:2"]

OPTIONS = ("--batch", "10", "--replay-budget", "20", "--publish-every", "10")


def begin(store, nursery):
    """Let 30 of 60 be answered, with a snapshot at 20."""
    options = ("--batch", "10", "--replay-budget", "15")
    worker = nursery.start(store.keys.feed, store.url, *options, failpoint="after-commit:3")
    assert worker.wait() == EXIT_CODE


def ended(store, worker, goal, failpoint):
    """Return how a worker ends that dies at a failpoint, or that has answered `goal` entries."""
    # The input of a feed is checked when nothing has come for a while: the worker dies idle.
    if failpoint is not None and failpoint.endswith("check-input"):
        return worker.wait()
    return end(store, worker, goal)


@pytest.mark.chaos
@pytest.mark.parametrize("point", PASSED + AGAIN)
def test_a_command_that_dies_at_a_failpoint(trial, nursery, told, point):
    feed = trial(FIRST)
    feed.push(FIRST)
    if not point.endswith("-scan"):  # looks for what is left of a feed that does not exist
        begin(feed.store, nursery)
    environment = os.environ | {VARIABLE: point}
    process = feed.worker("--quiet", *OPTIONS, env=environment)
    assert ended(feed.store, process, FIRST, point) == EXIT_CODE
    told(f"died {point}", feed.check(feed.start()))


# Two in turn: each pair begins from an image of one Redis that is put back, and its three workers
# are forked from one parent, so that a pair takes half a second and all of them a few minutes.


@pytest.fixture(scope="module")
def board():
    """A feed in a Redis that is emptied for each pair."""
    with embedded.temporary() as server, Store(server.url, FEED, block_ms=20) as store:
        yield store


@pytest.fixture(scope="module")
def expected(board):
    push(board, rows(TOTAL))
    drain(session(board), TOTAL)
    found = outcome(board)
    board.call("FLUSHDB")
    return found


@pytest.fixture(scope="module")
def images(board, nursery, expected):
    """A feed that is still to be begun, and one that was."""
    reset(board, with_input=True)  # workers know the feed from the pair before
    push(board, rows(TOTAL)[:FIRST])
    new = saved(board)
    begin(board, nursery)
    return {"new": new, "begun": saved(board)}


def run(store, nursery, goal, failpoint=None):
    worker = nursery.start(store.keys.feed, store.url, *OPTIONS, failpoint=failpoint)
    return ended(store, worker, goal, failpoint)


def is_passed(store, point):
    return not point.endswith("-scan") or store.state() is None


@pytest.mark.chaos
@pytest.mark.chaos_full
@pytest.mark.timeout(900)  # thirty pairs, each three workers
@pytest.mark.parametrize("first", PASSED)
def test_workers_that_die_at_two_failpoints_one_after_the_other(
    board, images, nursery, expected, told, first
):
    deaths = 0
    for second in PASSED:
        restore(board, images["new" if first.endswith("-scan") else "begun"])
        assert run(board, nursery, FIRST, first) == EXIT_CODE
        push(board, rows(TOTAL)[FIRST:], FIRST + 1)
        passes = is_passed(board, second)
        assert run(board, nursery, TOTAL, second) == (EXIT_CODE if passes else 0)
        deaths += 1 + passes
        assert run(board, nursery, TOTAL) == 0
        assert outcome(board) == expected, f"died {first}, then {second}"
    done = (PASSED.index(first) + 1) * len(PASSED)
    told(f"{done} of {len(PASSED) ** 2} pairs: died {first}, then at each: {deaths} deaths")


SEED, LATE_COUNT = 3, 440
whole = cache(uninterrupted)


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize("policy", ["report", "refit", "reset"])
@pytest.mark.parametrize("point", ["before-commit", "sent-commit", "after-commit"])
def test_a_worker_that_dies_around_the_commit_of_an_alarm_leaves_it_once(
    board, nursery, told, policy, point, lagging
):
    """Labels are late and turned round; what the alarm begins is under way when it dies."""
    mode = Mode(f"drift-{policy}", frozenset(("late", "lag")))
    wanted = whole(mode, SEED, LATE_COUNT, board.url)
    entries = history_modes.rows(mode, SEED, LATE_COUNT)
    flags = flags_of(mode.options | {"lease": 0.5, "batch": 1, "replay_budget": 30})
    command = ["worker", FEED, "--redis", board.url, "--quiet", *flags]
    at = int(wanted.alarms[0][0].split(b"-")[0])  # entry i is i-0, alone in its commit
    for commit in (at - 1, at, at + 1):
        board.call("FLUSHDB")
        reset(board, with_input=True)  # the workers of the nursery know the feed
        push(board, entries)
        dies = nursery.run(command, failpoint=f"{point}:{commit}")
        assert end(board, dies, len(entries)) == EXIT_CODE
        # A commit of a snapshot alone may have come before, so which entry was the last is asked.
        assert bool(board.call("XLEN", board.keys.alarms)) == (seq_of(board) >= at)
        assert end(board, nursery.run(command), len(entries)) == 0
        found = found_in(board.url)
        assert not difference(found, wanted), f"died {point}:{commit}"
    ids = [entry[0] for entry in found.alarms]
    assert len(set(ids)) == len(ids)
    told(f"{mode}: died {point} of the alarm {json.loads(found.alarms[0][2])['seq']}")


FITTED = 1_080
"""Entries after which the first trees of the memory are submitted, and do not answer yet."""


@pytest.mark.chaos
@pytest.mark.parametrize("point", ["before-eval", "sent-eval", "sent-eval:2"])
def test_a_worker_that_dies_when_it_keeps_trees_is_followed_by_one_that_takes_them(
    trial, nursery, told, tmp_path, point
):
    feed = trial(FITTED + 200)
    feed.push(FITTED)
    dies = nursery.start(feed.feed, feed.url, failpoint=point)
    assert dies.wait() == EXIT_CODE
    feed.push(200)
    kept, log = kept_fits(feed.store), tmp_path / "next.log"
    follows = nursery.run(["worker", feed.feed, "--redis", feed.url, *flags_of(SETTINGS)], log=log)
    feed.wait_for(feed.pushed)
    follows.stopped()
    taken = log.read_text().count("a stored fit is used again")
    assert taken == len(kept) == {"before-eval": 0, "sent-eval": 1, "sent-eval:2": 2}[point]
    told(f"died {point}: {taken} fits taken", feed.check())
