"""A pool of refit processes: the bytes of a process a feed, whatever becomes of the processes."""

import os
import signal
from itertools import chain, repeat

import pytest
from refits import BASE, MODES, config_of, expected_of, gone, run, tasks_of
from structlog.testing import capture_logs
from world import wait_until

from workers.errors import RefitFailed, Stopped
from workers.refit import pool as refit_pool
from workers.refit.pool import PoolThread, RefitPool
from workers.refit.schedule import PooledLearner
from workers.stop import Stop


@pytest.fixture(scope="module")
def pool():
    with RefitPool(processes=1, timeout=60.0) as made:
        yield made


@pytest.fixture(scope="module")
def small_pool():
    """A pool that has room for one learner alone."""
    with RefitPool(processes=1, timeout=60.0, memory=1) as made:
        yield made


@pytest.fixture
def refitter(pool):
    with pool.refitter(BASE) as made:
        yield made


@pytest.mark.parametrize("room", ["pool", "small_pool"])
def test_feeds_that_share_a_pool_have_the_bits_of_own_processes(request, room):
    """In the small pool each learner is set down to its state before its next task."""
    pool = request.getfixturevalue(room)
    configs = [config_of(**changes) for changes in MODES.values()]
    tasks = [tasks_of(config, seed=seed) for seed, config in enumerate(configs)]
    expected = [expected_of(own, config) for own, config in zip(tasks, configs, strict=True)]
    refitters = [pool.refitter(config) for config in configs]
    for i in range(max(map(len, tasks))):
        for refitter, own in zip(refitters, tasks, strict=True):
            if i < len(own):
                refitter.submit(own[i])
        for refitter, own, (results, states) in zip(refitters, tasks, expected, strict=True):
            if i < len(own):
                assert refitter.result().state() == results[i]
                if i % 3 == 1:
                    assert refitter.state() == states[i]
    slot = pool._schedule._slots[0]
    # The learners are weighed after their tasks.
    wait_until(lambda: all(refitter._learner.is_idle for refitter in refitters))
    assert len(slot.learners) == (1 if room == "small_pool" else len(configs))
    for refitter, (_, states) in zip(refitters, expected, strict=True):
        assert refitter.state() == states[-1]
        refitter.close()


def test_it_continues_from_a_state_and_from_nothing(refitter, tasks, expected):
    results, states = expected
    run(refitter, tasks[:5])
    refitter.reset(states[1])
    assert refitter.state() == states[1]
    assert run(refitter, tasks[2:4]) == results[2:4]
    refitter.reset(None)
    assert run(refitter, tasks[:2]) == results[:2]


@pytest.mark.parametrize("forget", ["withdraw", "reset"])
def test_what_waits_or_is_under_way_is_forgotten(refitter, tasks, expected, forget):
    results, states = expected
    for task in tasks[:4]:
        refitter.submit(task)
    if forget == "withdraw":
        refitter.withdraw()
    else:
        refitter.reset(None)
    assert run(refitter, tasks[:3]) == results[:3]
    assert refitter.state() == states[2]


def test_whether_a_result_or_the_state_is_there_is_asked_without_waiting(refitter, tasks, expected):
    """The state comes behind the tasks."""
    results, states = expected
    assert refitter.has_state, "there is nothing to fetch yet"
    refitter.is_deferring = True
    for task in tasks[:2]:
        refitter.submit(task)
    assert not refitter.has_state
    for result in results[:2]:
        wait_until(lambda: refitter.is_ready)
        assert refitter.result().state() == result
    assert not refitter.is_ready
    wait_until(lambda: refitter.has_state)
    assert refitter._learner.state == refitter.state() == states[1]
    refitter.submit(tasks[2])
    assert not refitter.has_state, "that of before is old"
    assert refitter.result().state() == results[2]
    assert refitter.state() == states[2]


def test_killed_processes_are_replaced_and_no_byte_of_any_feed_changes(
    tasks, expected, monkeypatch
):
    """One of the feeds has its state fetched after each task, so that nothing is computed again."""
    results, states = expected
    with capture_logs() as logs, RefitPool(processes=1, timeout=60.0) as pool:
        feeds = [pool.refitter(BASE) for _ in range(3)]
        short = feeds[1]._learner
        monkeypatch.setattr(
            PooledLearner, "has_long_log", lambda one, _: one is short and one.tasks
        )
        found, pids = [[], [], []], []
        for i, task in enumerate(tasks):
            for feed in feeds:
                feed.submit(task)
            if i in {2, 5}:
                pids += pool.pids
                os.kill(pool.pids[0], signal.SIGKILL)  # within one, with others behind it
            for feed, own in zip(feeds, found, strict=True):
                own.append(feed.result().state())
            if i == 7:
                pids += pool.pids
                os.kill(pool.pids[0], signal.SIGKILL)  # between two
        assert found == [results] * 3
        assert [feed.state() for feed in feeds] == [states[-1]] * 3
        assert len({*pids, *pool.pids}) == 4
    assert gone(*pids)
    assert [log["event"] for log in logs] == [
        "a refit process failed",
        "a refit process works again",
    ] * 3


def test_a_hung_process_is_replaced(tasks, expected, monkeypatch):
    results, _ = expected
    timeouts = chain([0.3], repeat(60.0))

    def impatient(thread, process):
        return process.receive(next(timeouts), lambda: thread._schedule.is_closed)

    with RefitPool(processes=1, timeout=60.0) as pool, pool.refitter(BASE) as refitter:
        assert run(refitter, tasks[:1]) == results[:1]
        (hung,) = pool.pids
        wait_until(lambda: refitter._learner.is_idle)  # the learner is weighed after its task
        os.kill(hung, signal.SIGSTOP)
        monkeypatch.setattr(PoolThread, "_reply", impatient)
        assert run(refitter, tasks[1:2]) == results[1:2]
        assert pool.pids != [hung]


def test_a_task_that_fails_everywhere_fails_its_feed_alone(tasks, expected, monkeypatch):
    monkeypatch.setattr(refit_pool, "MAX_ATTEMPTS", 2)
    results, states = expected
    broken = type(tasks[0])(0, 10, 5, tasks[0].X, tasks[0].codes[:3], 2)
    with RefitPool(processes=1, timeout=60.0) as pool:
        failing, other = pool.refitter(BASE), pool.refitter(BASE)
        assert run(other, tasks[:2]) == results[:2]
        failing.submit(broken)
        failing.submit(tasks[0])
        other.submit(tasks[2])
        for _ in range(2):
            with pytest.raises(RefitFailed, match="2 processes"):
                failing.result()
        assert other.result().state() == results[2]
        assert other.state() == states[2]
        failing.reset(None)
        assert run(failing, tasks[:1]) == results[:1]


def test_feeds_share_two_processes(tasks, expected, monkeypatch):
    """Learners whose tasks are all in their states move to the process that has no work."""
    monkeypatch.setattr(PooledLearner, "has_long_log", lambda learner, _: bool(learner.tasks))
    results, states = expected
    with RefitPool(processes=2, timeout=60.0) as pool:
        feeds = [pool.refitter(BASE) for _ in range(5)]
        for feed in feeds:
            for task in tasks:
                feed.submit(task)
        found = [[feed.result().state() for _ in tasks] for feed in feeds]
        assert found == [results] * 5
        assert [feed.state() for feed in feeds] == [states[-1]] * 5
        assert len(pool.pids) == 2


def test_a_pressing_stop_ends_the_wait_for_a_result(tasks):
    stop = Stop(grace=0.0)
    with RefitPool(processes=1, stop=stop) as pool, pool.refitter(BASE) as refitter:
        wait_until(lambda: pool.pids)
        os.kill(pool.pids[0], signal.SIGSTOP)
        refitter.submit(tasks[0])
        stop.request()
        with pytest.raises(Stopped):
            refitter.result()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_failure_of_the_pool_itself_is_told_to_who_waits(tasks, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("a bug")

    with RefitPool(processes=1) as pool, pool.refitter(BASE) as refitter:
        monkeypatch.setattr(PooledLearner, "has_long_log", broken)
        refitter.submit(tasks[0])
        refitter.submit(tasks[1])
        refitter.result()
        with pytest.raises(RefitFailed, match="a bug"):
            refitter.result()
        assert refitter.is_ready
