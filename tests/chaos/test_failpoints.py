"""The real command dies just before and just after each call to Redis: the same bytes."""

import itertools
import os
import signal
import subprocess

import pytest
from fault_feed import finished, push, rows, wait_until
from fault_workers import command

from workers.failpoints import EXIT_CODE, NAMES, VARIABLE
from workers.store import Store

COUNT = 60

# Only commands that read ask for the length of a stream; no worker passes there.
PASSED = [name for name in NAMES if not name.endswith("-xlen")]

# Further on: the lease is read, then a snapshot again; later batches; the second snapshot.
AGAIN = ["after-get:2", "after-get:3", "before-xread:3", "before-commit:2", "after-commit:2"]
AGAIN += ["before-set:2", "after-set:2"]


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
    options = ("--batch", "10", "--snapshot-every", "15")
    worker = nursery.start(store.keys.feed, store.url, *options, failpoint="after-commit:3")
    assert worker.wait() == EXIT_CODE
    # Another environment makes the next worker prove itself by a replay, and record its own.
    store.call("HSET", store.keys.state, "environment", "{}")


def end(store, worker):
    """Stop a worker that has answered everything and still lives; return its exit code."""
    wait_until(lambda: worker.poll() is not None or is_done(store, worker), 60.0)
    if worker.poll() is None:
        worker.send_signal(signal.SIGTERM)
    return worker.wait(20)


def is_done(store, worker):
    """Return whether everything is answered and this worker, up and running, has the feed."""
    state = store.state()
    return state is not None and state.position.seq == COUNT and is_holder(store, worker)


def is_holder(store, worker):
    return f'"pid": {worker.pid},'.encode() in (store.call("GET", store.keys.lease) or b"")


def check(store, nursery, expected_of, results):
    """Let a worker finish, and compare."""
    worker = nursery.start(store.keys.feed, store.url)
    assert end(store, worker) == 0
    found = finished(store, COUNT)
    if "expected" not in results:
        results["expected"] = expected_of(COUNT)
    assert found == results["expected"]
    return found[1]


@pytest.mark.chaos
@pytest.mark.parametrize("point", PASSED + AGAIN)
def test_a_command_that_dies_at_a_failpoint(prepared, nursery, expected_of, results, told, point):
    begin(prepared, nursery, point)
    options = ("--batch", "10", "--snapshot-every", "20")
    process = subprocess.Popen(
        command(prepared.keys.feed, prepared.url, *options),
        env=os.environ | {VARIABLE: point},
        stderr=subprocess.PIPE,
    )
    try:
        assert end(prepared, process) == EXIT_CODE, process.stderr.read().decode()[-2000:]
    finally:
        process.kill()
        process.communicate()
    told(f"died {point}", check(prepared, nursery, expected_of, results))


@pytest.mark.chaos
@pytest.mark.chaos_full
@pytest.mark.parametrize(("first", "second"), [*itertools.product(PASSED, PASSED)])
def test_workers_that_die_at_two_failpoints_one_after_the_other(
    prepared, nursery, expected_of, results, told, first, second
):
    begin(prepared, nursery, first)
    options = ("--batch", "10", "--snapshot-every", "20")
    codes = [
        end(prepared, nursery.start(prepared.keys.feed, prepared.url, *options, failpoint=point))
        for point in (first, second)
    ]
    # The second point may lie behind once the first worker has died: then it stops in order.
    assert codes[0] == EXIT_CODE
    assert codes[1] in (EXIT_CODE, 0)
    told(f"died {first}, then {second}", check(prepared, nursery, expected_of, results))
