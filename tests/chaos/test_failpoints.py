"""The real command dies just before and just after each call to Redis: the same bytes."""

import os

import pytest
from fault_workers import command, end
from processes import Process

from workers.failpoints import EXIT_CODE, NAMES, VARIABLE

COUNT = 60

# Only commands that read ask for the length of a stream; no worker passes there.
PASSED = [name for name in NAMES if not name.endswith("-xlen")]

# Further on: the lease is read, then a snapshot again; later batches; the second snapshot.
AGAIN = ["after-get:2", "after-get:3", "before-xread:3", "before-commit:2", "after-commit:2"]
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
        assert end(feed.store, process, COUNT) == EXIT_CODE
    told(f"died {point}", feed.check(feed.start()))
