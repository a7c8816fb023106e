"""Years of a fleet: against closed forms where there are some, and the same from the same seed."""

from dataclasses import replace
from math import exp, inf

import numpy as np
import pytest

from scripts.bench.fleet_model.fleet import DAY, Cause, Failures, Fleet, Order, Timings
from scripts.bench.fleet_model.simulate import simulate

NEVER = Failures(inf, inf, inf, inf)
PLAIN = Timings(start=DAY / 10, take_over=0.0, snapshot_every=0, failover=DAY / 5)
"""Outages of a fixed length, long enough to overlap often."""


LONE = Fleet(feeds=1, shards=1, machines=1, redis=1)


def share_and_error(failures, timings):
    """Return the mean share of a lone feed over many independent histories, and its error."""
    runs = [simulate(LONE, failures, timings, days=200, seed=seed) for seed in range(100)]
    shares = np.array([run.feeds[0] for run in runs])
    return shares.mean(), shares.std(ddof=1) / len(shares) ** 0.5


def test_the_share_is_that_of_a_server_that_is_busy_while_an_outage_lasts():
    # Outages begin at rate r and last d: a feed is answered if none began in the last d seconds,
    # with probability exp(-r d), however they overlap (the queue M/G/infinity is empty).
    mean, error = share_and_error(replace(NEVER, redis=2.0), PLAIN)
    assert abs(mean - (1 - exp(-0.2 / 2.0))) < 4 * error
    assert error < 0.001


def test_a_replay_counts_with_its_mean():
    timings = replace(PLAIN, start=0.0, snapshot_every=1000, replay_rate=1000 / (DAY / 2))
    mean, error = share_and_error(replace(NEVER, process=3.0), timings)
    assert abs(mean - (1 - exp(-0.25 / 3.0))) < 4 * error
    assert error < 0.002


def test_causes_add_up_as_independent_failures_do():
    often = Failures(process=1.0, machine=5.0, redis=2.0, upgrade=inf)
    mean, error = share_and_error(often, replace(PLAIN, detection=DAY / 10))
    assert abs(mean - (1 - exp(-(0.1 / 1 + 0.2 / 5 + 0.2 / 2)))) < 4 * error
    assert error < 0.002


def test_the_shares_of_the_causes_sum_to_the_mean_of_the_feeds():
    often = Failures(process=1.0, machine=5.0, redis=2.0, upgrade=3.0)
    found = simulate(Fleet(feeds=40, shards=4, machines=2, redis=2), often, PLAIN, 30, seed=3)
    assert sum(found.share.values()) == pytest.approx(found.feeds.mean())
    assert min(found.share.values()) > 0


def test_an_upgrade_costs_each_feed_one_start():
    fleet = Fleet(feeds=50, shards=5)
    found = simulate(fleet, replace(NEVER, upgrade=10.0), replace(PLAIN, start=30.0), 35, seed=0)
    assert found.feeds == pytest.approx([3 * 30.0 / (35 * DAY)] * 50)
    assert found.failures[Cause.UPGRADE] == 3 * 5


def test_nothing_fails_where_nothing_may():
    found = simulate(Fleet(feeds=10), NEVER, Timings(), days=1000, seed=0)
    assert found.feeds.tolist() == [0.0] * 10
    assert set(found.failures.values()) == {0}


def test_an_outage_ends_with_the_simulation():
    found = simulate(Fleet(feeds=9, shards=1), replace(NEVER, process=0.001), PLAIN, 1.0, seed=0)
    assert found.feeds.max() <= 1.0
    assert found.feeds.min() > 0.99


def test_the_same_seed_gives_the_same_shares_and_another_seed_others():
    def run(seed, order=Order.SHARED):
        timings = Timings(order=order)
        return simulate(Fleet(feeds=60, shards=6), Failures(process=1.0), timings, 30, seed)

    assert run(5).feeds.tobytes() == run(5).feeds.tobytes()
    assert run(5).feeds.tobytes() != run(6).feeds.tobytes()
    assert run(5).feeds.mean() > run(5, Order.QUEUE).feeds.mean()  # all of them wait for the last
