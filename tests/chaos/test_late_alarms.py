"""Workers killed while labels are late and alarms begin refits or resets: the same bytes, alarms
included.

Labels are turned round, so that monitors find something; what a policy does after that is under
way when a worker dies, and another one takes over.
"""

import json
import random
import signal

import pytest
from fault_workers import Nursery, end, is_holder
from history_modes import FEEDS, Mode, entries_of
from history_parts import alarms_in, difference, digest_of, found_in, uninterrupted
from history_processes import FENCED
from world import finished, flags_of, push, wait_until

from workers.admin.reset import reset
from workers.broker import embedded
from workers.broker.store import Store
from workers.failpoints import EXIT_CODE

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]

POLICIES = ("report", "refit", "reset")
FEED, COUNT = FEEDS[0], 440
KILLED = -signal.SIGKILL


def mode_of(policy, *switches):
    return Mode(f"drift-{policy}", frozenset(("late", *switches)))


@pytest.fixture(scope="module")
def url():
    with embedded.temporary() as server:
        yield server.url


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    """A parent that has the machine code of these settings."""
    log = tmp_path_factory.mktemp("late") / "workers.log"
    nursery = Nursery(log, [mode_of("refit").settings().predictor])
    yield nursery
    nursery.close()


@pytest.fixture(scope="module")
def expected(url):
    """What an uninterrupted worker leaves, by mode and seed."""
    found = {}

    def of(mode, seed):
        if (mode, seed) not in found:
            found[mode, seed] = uninterrupted(mode, seed, COUNT, url)
        return found[mode, seed]

    return of


def begin(store, mode, seed):
    store.call("FLUSHDB")
    reset(store, with_input=True)  # the workers of the nursery know the feed
    entries = entries_of(mode, seed, COUNT)[FEED]
    push(store, entries)
    return len(entries)


def start(nursery, url, mode, failpoint=None, **changing):
    flags = flags_of(mode.options | {"lease": 0.5} | changing)
    return nursery.run(["worker", FEED, "--redis", url, "--quiet", *flags], failpoint=failpoint)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("lag", [(), ("lag",)])
def test_two_workers_that_are_killed_in_turn_leave_the_same_alarms(
    nursery, url, expected, told, policy, lag
):
    """The one that has the feed is killed after real progress, and the other takes over."""
    mode, seed, choose = mode_of(policy, *lag), 3, random.Random(7)
    wanted = expected(mode, seed)
    assert alarms_in(wanted) > 0
    with Store(url, FEED, block_ms=20) as store:
        total, kills = begin(store, mode, seed), 0

        def another():
            batch, every = choose.choice((1, 3, 12)), choose.choice((9, 40))
            return start(nursery, url, mode, batch=batch, replay_budget=every)

        pair = [another(), another()]
        while (done := seq_of(store)) < total:
            goal = min(total, done + choose.randint(5, 40))
            wait_until(lambda goal=goal: seq_of(store) >= goal, 60.0)
            holder = next((worker for worker in pair if is_holder(store, worker)), None)
            if holder is not None and goal < total:
                assert holder.kill() == KILLED
                pair[pair.index(holder)], kills = another(), kills + 1
        finished(store, total)
        for worker in pair:
            worker.send_signal(signal.SIGTERM)
        assert {worker.wait() for worker in pair} <= {0, FENCED, -signal.SIGTERM}
        found = found_in(url, mode)
        assert not difference(found, wanted)
        assert kills >= 3
        told(f"{mode}: {kills} kills, {alarms_in(found)} alarms, digest {digest_of(found)}")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("point", ["before-commit", "sent-commit", "after-commit"])
def test_a_worker_that_dies_around_the_commit_of_an_alarm_leaves_it_once(
    nursery, url, expected, told, policy, point
):
    mode, seed = mode_of(policy, "lag"), 3
    wanted = expected(mode, seed)
    at = int(wanted[FEED].alarms[0][0].split(b"-")[0])  # entry i is i-0, alone in its commit
    with Store(url, FEED, block_ms=20) as store:
        for commit in (at - 1, at, at + 1):
            total = begin(store, mode, seed)
            options = {"batch": 1, "replay_budget": 30}
            dies = start(nursery, url, mode, f"{point}:{commit}", **options)
            assert end(store, dies, total) == EXIT_CODE
            is_there = bool(store.call("XLEN", store.keys.alarms))
            if commit != at or point != "sent-commit":  # what was sent may have come or not
                assert is_there == (commit > at or (commit == at and point == "after-commit"))
            assert end(store, start(nursery, url, mode, **options), total) == 0
            found = found_in(url, mode)
            assert not difference(found, wanted), f"died {point}:{commit}"
        ids = [entry[0] for entry in found[FEED].alarms]
        assert len(set(ids)) == len(ids)
        told(f"{mode}: died {point} of the alarm {json.loads(found[FEED].alarms[0][2])['seq']}")


def seq_of(store):
    state = store.state()
    return 0 if state is None else state.position.seq
