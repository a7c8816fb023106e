"""The real command dies just before and just after each call to Redis: the same bytes."""

import os

import pytest
from fault_workers import command, end
from processes import Process

from workers.failpoints import EXIT_CODE, NAMES, VARIABLE

COUNT = 60

# Only commands that read ask for the length of a stream; no worker passes there.
PASSED = [name for name in NAMES if not name.endswith("-xlen")]

# Further on: another value is read; later batches; the second snapshot.
AGAIN = ["after-get:2", "before-xread:3", "before-commit:2", "after-commit:2"]
AGAIN += ["before-put:2", "after-put:2"]


def begin(feed, point):
    """Bring the feed where a worker passes the point: 30 of 60 answered, a snapshot at 20."""
    if point.endswith("-scan"):  # looks for what is left of a feed that does not exist
        return
    worker = feed.start("--batch", 10, "--replay-budget", 15, failpoint="after-commit:3")
    assert worker.wait() == EXIT_CODE
    # Another environment makes the next worker prove itself by a replay, and record its own.
    feed.store.call("HSET", feed.store.keys.state, "environment", "{}")


@pytest.mark.chaos
@pytest.mark.parametrize("point", PASSED + AGAIN)
def test_a_command_that_dies_at_a_failpoint(trial, told, point):
    feed = trial(COUNT)
    feed.push(COUNT)
    begin(feed, point)
    options = ("--batch", "10", "--replay-budget", "20", "--publish-every", "10")
    environment = os.environ | {VARIABLE: point}
    with Process(command(feed.feed, feed.url, *options), env=environment) as process:
        # The input of a feed is checked when nothing has come for a while: the worker dies idle.
        is_idle = point.endswith("check-input")
        ended = process.wait(30) if is_idle else end(feed.store, process, COUNT)
        assert ended == EXIT_CODE
    told(f"died {point}", feed.check(feed.start()))
