"""The real command dies just before and just after each call to Redis: the same bytes."""

import os
import subprocess

import pytest
from fault_workers import command, end
from processes import Process
from world import finished, push, rows

from workers.broker.store import Store
from workers.failpoints import EXIT_CODE, NAMES, VARIABLE

COUNT = 60

# Only commands that read ask for the length of a stream; no worker passes there.
PASSED = [name for name in NAMES if not name.endswith("-xlen")]

# Further on: the lease is read, then a snapshot again; later batches; the second snapshot.
AGAIN = ["after-get:2", "after-get:3", "before-xread:3", "before-commit:2", "after-commit:2"]
AGAIN += ["before-put:2", "after-put:2"]


@pytest.fixture(scope="module")
def results():
    """What each number of entries leads to, computed once."""
    return {}


@pytest.fixture
def prepared(embedded_url, feed):
    """A feed with its input and nothing else."""
    with Store(embedded_url, feed) as store:
        push(store, rows(COUNT))
        yield store


def begin(store, nursery, point):
    """Bring the feed where a worker passes the point: 30 of 60 answered, a snapshot at 20."""
    if point.endswith("-scan"):  # looks for what is left of a feed that does not exist
        return
    options = ("--batch", "10", "--replay-budget", "15")
    worker = nursery.start(store.keys.feed, store.url, *options, failpoint="after-commit:3")
    assert worker.wait() == EXIT_CODE
    # Another environment makes the next worker prove itself by a replay, and record its own.
    store.call("HSET", store.keys.state, "environment", "{}")


def check(store, nursery, expected_of, results):
    """Let a worker finish, and compare."""
    worker = nursery.start(store.keys.feed, store.url)
    assert end(store, worker, COUNT) == 0
    found = finished(store, COUNT)
    if "expected" not in results:
        results["expected"] = expected_of(COUNT)
    assert found == results["expected"]
    return found[1]


@pytest.mark.chaos
@pytest.mark.parametrize("point", PASSED + AGAIN)
def test_a_command_that_dies_at_a_failpoint(prepared, nursery, expected_of, results, told, point):
    begin(prepared, nursery, point)
    options = ("--batch", "10", "--replay-budget", "20", "--publish-every", "10")
    process = Process(
        command(prepared.keys.feed, prepared.url, *options),
        env=os.environ | {VARIABLE: point},
        stderr=subprocess.PIPE,
    )
    try:
        assert end(prepared, process, COUNT) == EXIT_CODE, process.stderr.read().decode()[-2000:]
    finally:
        process.kill()
        process.communicate()
    told(f"died {point}", check(prepared, nursery, expected_of, results))
