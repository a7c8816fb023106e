"""When each feed of a process is answered again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.bench.fleet_model.fleet import Cause, Order, Timings
from scripts.bench.fleet_model.recovery import finish_times, outages

WORK = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=12).map(np.array)


def shared_step_by_step(work):
    """Divide each span between two ends equally among the jobs that are left."""
    left, ends, now = dict(enumerate(work)), {}, 0.0
    while left:
        span = min(left.values()) * len(left)
        now += span
        left = {job: rest - span / len(left) for job, rest in left.items()}
        ends |= {job: now for job, rest in left.items() if rest <= 1e-9}
        left = {job: rest for job, rest in left.items() if rest > 1e-9}
    return [ends[job] for job in range(len(work))]


@given(WORK)
def test_jobs_that_share_a_processor_end_as_they_do_step_by_step(work):
    assert finish_times(work, Order.SHARED) == pytest.approx(shared_step_by_step(work), abs=1e-6)


@given(WORK, st.sampled_from(Order))
def test_the_last_job_ends_when_all_the_work_is_done(work, order):
    assert finish_times(work, order).max() == pytest.approx(work.sum())


@given(WORK)
def test_no_job_ends_before_its_own_work_is_done(work):
    assert (finish_times(work, Order.SHARED) >= work - 1e-9).all()
    assert (finish_times(work, Order.QUEUE) >= work - 1e-9).all()


def waits(cause, **timings):
    return outages(cause, 500, Timings(**timings), np.random.default_rng(3))


def test_after_a_graceful_stop_nothing_is_replayed():
    plain = waits(Cause.UPGRADE, start=2.0, take_over=0.0, snapshot_every=10_000)
    assert set(plain.tolist()) == {2.0}


def test_a_killed_process_replays_half_the_entries_between_two_snapshots_on_average():
    found = waits(Cause.PROCESS, start=2.0, take_over=0.0, snapshot_every=900, replay_rate=900.0)
    assert found.min() > 2.0
    # All of them share one processor: the last ends when the sum, 500 uniform draws, is done.
    assert abs(found.max() - 2.0 - 250) < 4 * (500 / 12) ** 0.5


def test_a_lease_that_outlives_the_detection_is_waited_for():
    found = waits(Cause.MACHINE, start=1.0, take_over=0.0, snapshot_every=0, detection=0.0,
                  lease=30.0)  # fmt: skip
    assert found.min() >= 20.0
    assert found.max() <= 30.0
    long = waits(Cause.MACHINE, start=1.0, take_over=0.0, snapshot_every=0, detection=60.0)
    assert set(long.tolist()) == {61.0}


def test_a_new_primary_of_redis_needs_no_replay():
    assert set(waits(Cause.REDIS, failover=7.0).tolist()) == {7.0}
