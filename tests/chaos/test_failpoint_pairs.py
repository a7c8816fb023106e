"""Two workers die at any two failpoints, one after the other: the same bytes.

Each pair begins from an image of one Redis that is put back, and its three workers are forked from
a warmed parent, so that a pair takes half a second and all of them a few minutes.
"""

import pytest
from fault_workers import end
from world import drain, finished, outcome, push, restore, rows, saved, session

from workers.broker import embedded
from workers.broker.store import Store
from workers.failpoints import EXIT_CODE, NAMES

# Thirty pairs a test, each three workers.
pytestmark = [pytest.mark.chaos, pytest.mark.chaos_full, pytest.mark.timeout(900)]

FIRST, TOTAL = 60, 90
"""Entries for the first worker, and for both."""

# Only commands that read ask for the length of a stream; no worker passes there.
PASSED = [name for name in NAMES if not name.endswith("-xlen")]
PAIRS = len(PASSED) ** 2

OPTIONS = ("--batch", "10")


@pytest.fixture(scope="module")
def board():
    """A feed in a Redis that is emptied for each pair."""
    with embedded.temporary() as server, Store(server.url, "f", block_ms=20) as store:
        yield store


@pytest.fixture(scope="module")
def expected(board):
    """What comes of the whole stream where nobody dies."""
    push(board, rows(TOTAL))
    drain(session(board), TOTAL)
    found = outcome(board)
    board.call("FLUSHDB")
    return found


@pytest.fixture(scope="module")
def images(board, nursery, expected):
    """A feed that is still to be begun, and one with 30 of 60 answered and a snapshot at 20."""
    push(board, rows(TOTAL)[:FIRST])
    new = saved(board)
    options = (*OPTIONS, "--replay-budget", "15")
    worker = nursery.start("f", board.url, *options, failpoint="after-commit:3")
    assert worker.wait() == EXIT_CODE
    return {"new": new, "begun": saved(board)}


def run(store, nursery, goal, failpoint=None):
    """Let a worker work until it dies, or has answered `goal` entries; return its exit code."""
    if store.state() is not None:
        # Another environment makes it prove itself by a replay, and record its own.
        store.call("HSET", store.keys.state, "environment", "{}")
    options = (*OPTIONS, "--replay-budget", "20", "--publish-every", "10")
    return end(store, nursery.start("f", store.url, *options, failpoint=failpoint), goal)


def is_passed(store, point):
    """Return whether the next worker passes the point: it begins the feed or takes it over."""
    call = point.partition("-")[2]
    return call != "scan" if store.state() else call not in ("adopt", "xrange")


def die_twice(store, nursery, first, second):
    """Let two workers die, or the second end in order where it cannot pass its point."""
    assert run(store, nursery, FIRST, first) == EXIT_CODE
    push(store, rows(TOTAL)[FIRST:], FIRST + 1)
    passes = is_passed(store, second)
    assert run(store, nursery, TOTAL, second) == (EXIT_CODE if passes else 0)
    return passes


@pytest.mark.parametrize("first", PASSED)
def test_workers_that_die_at_two_failpoints_one_after_the_other(
    board, images, nursery, expected, told, first
):
    deaths = 0
    for second in PASSED:
        restore(board, images["new" if first.endswith("-scan") else "begun"])
        deaths += 1 + die_twice(board, nursery, first, second)
        assert run(board, nursery, TOTAL) == 0
        assert finished(board, TOTAL) == expected, f"died {first}, then {second}"
    done = (PASSED.index(first) + 1) * len(PASSED)
    told(f"{done} of {PAIRS} pairs: died {first}, then at each: {deaths} deaths", expected[1])
