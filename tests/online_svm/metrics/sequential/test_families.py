"""Bets and families of tests: a plain re-derivation, Ville's inequality, shares of a level."""

import math

import numpy as np
import pytest

from online_svm.errors import InvalidSnapshot
from online_svm.metrics.sequential.families import (
    BET_SIZES,
    MAX_TESTS_PER_SCOPE,
    BetProcesses,
    Family,
    Subject,
    e_benjamini_hochberg,
)


def share_of_start(t):
    """Half on the first 2,047; then 1 / ((g + 1) (g + 2)) on each group of 2048, 4096, ..."""
    if t < 2048:
        return 0.5 / 2047
    group = t.bit_length() - 11
    return 1 / ((group + 1) * (group + 2) * 2 ** (group + 10))


def plain_wealth(values, tolerances):
    """The definition: a stake for each start, direction and size, multiplied out."""
    pairs = list(zip(values, np.broadcast_to(tolerances, len(values)), strict=True))
    wealth = 1.0 - sum(share_of_start(t) for t in range(1, len(values) + 1))
    for t in range(1, len(values) + 1):
        bets = [math.prod(1 + b * (v - d) / (1 + d) for v, d in pairs[t - 1 :]) for b in BET_SIZES]
        bets += [math.prod(1 - b * (v + d) / (1 + d) for v, d in pairs[t - 1 :]) for b in BET_SIZES]
        wealth += share_of_start(t) * sum(bets) / len(bets)
    return wealth


@pytest.mark.parametrize("has_factors", [False, True])
def test_the_wealth_is_the_sum_over_starts_directions_and_sizes(has_factors):
    """A doubt widens the tolerance by what was announced."""
    rng = np.random.default_rng(4)
    p, factors = rng.random(70), 1 / np.arange(1.0, 71.0)
    values = (rng.random(70) < p) - p
    bets = BetProcesses([0.03], [1e-12])
    assert bets.update(values[:, None], variance_factors=factors if has_factors else None) == 70
    tolerances = np.maximum(0.03, np.sqrt(factors * p * (1 - p))) if has_factors else 0.03
    assert has_factors <= ({0.03} < set(np.ravel(tolerances).tolist()))
    assert math.exp(bets.log_wealth[0]) == pytest.approx(plain_wealth(values, tolerances), rel=1e-9)


def test_a_rejection_is_reported_once_at_its_row():
    bets = BetProcesses([0.02, 0.02], [0.01, 0.01])
    values = np.full((60, 2), np.nan)
    values[:, 1] = 0.5
    at = bets.update(values)
    assert (at < 60, bets.has_rejected, bets.rejected.tolist()) == (True, True, [False, True])
    bets.restart(1)
    assert bets.update(values[:1]) == 1
    assert not bets.has_rejected


def test_a_bet_never_has_more_than_the_whole_stake():
    bets = BetProcesses([0.0], [1e-12])
    bets.update(np.zeros((10_000, 1)))  # no bet wins or loses: the wealth is the stake
    assert bets.log_wealth[0] == pytest.approx(0.0, abs=1e-9)
    assert sum(map(share_of_start, range(1, 2**16))) == pytest.approx(1 - 1 / 7)


def test_a_restarted_process_waits_for_its_cooldown():
    rested, new = BetProcesses([0.02], [0.01]), BetProcesses([0.02], [0.01])
    rested.restart(0, cooldown=30)
    assert rested.thresholds[0] == pytest.approx(math.log(6 / 0.01))  # a smaller level
    rested.update(np.full((30, 1), 0.5))
    assert rested.log_wealth[0] == 0.0
    rested.update(np.full((20, 1), 0.5))
    new.update(np.full((20, 1), 0.5))
    assert rested.log_wealth.tolist() == new.log_wealth.tolist()


def test_at_the_edge_of_the_null_at_most_a_share_of_the_level_ever_rejects():
    rng, level, runs = np.random.default_rng(1), 0.1, 400
    bets = BetProcesses([0.02] * runs, [level] * runs)
    rejected = np.zeros(runs, dtype=bool)
    # The mean wanders between the two edges of the null, depending on the past.
    for block in range(20):
        mean = 0.02 * (-1) ** block
        values = np.where(rng.random((50, runs)) < 0.3 + mean, 0.7, -0.3)
        at = 0
        while at < len(values):
            at = bets.update(values, at)
            for j in np.flatnonzero(bets.rejected):
                rejected[j] = True
                bets.restart(j)
    # Beyond it lie less than one in a thousand of the draws of a binomial(400, .1).
    assert rejected.sum() <= 59


def test_wealth_is_cut_before_it_overflows():
    bets = BetProcesses([0.0], [1e-300])
    bets.update(np.ones((5000, 1)))
    assert math.isfinite(bets.log_wealth[0])


@pytest.mark.parametrize("name", ["stakes", "waiting", "wealth", "ages", "tests"])
def test_a_state_part_of_the_wrong_shape_is_refused(name):
    state = BetProcesses([0.02], [0.01]).state()
    with pytest.raises(InvalidSnapshot, match=f"'{name}' has shape"):
        BetProcesses([0.02], [0.01]).restore(state | {name: np.zeros(7, state[name].dtype)})


def test_all_processes_give_up_their_evidence_and_go_on_to_their_next_levels():
    bets = BetProcesses([0.02, 0.02], [0.01, 0.01])
    bets.update(np.tile([0.5, 0.3], (20, 1)))
    bets.restart(0)  # it has seen nothing since
    bets.restart_all(cooldown=10)
    assert bets.log_wealth.tolist() == [0.0, 0.0]
    np.testing.assert_allclose(bets.thresholds, np.log([600, 600]))
    assert bets.found.tolist() == [1, 0]
    bets.update(np.full((10, 2), 0.9))
    assert bets.log_wealth.tolist() == [0.0, 0.0]


def test_the_level_holds_under_any_number_of_restarts():
    """At moments that the past chooses: whenever the wealth is low."""
    rng, runs, level = np.random.default_rng(11), 400, 0.3
    rejected = np.zeros(runs, dtype=bool)
    for run in range(runs):
        bets = BetProcesses([0.0], [level])
        values = rng.choice([-0.5, 0.5], size=(600, 1))
        for begin in range(0, 600, 20):
            rejected[run] |= bets.update(values[begin : begin + 20]) < 20 or bets.rejected[0]
            if rejected[run]:
                break
            if bets.log_wealth[0] < -0.02:
                bets.restart_all()
    assert rejected.mean() < level
    assert rejected.any()


SHARES = {"overall": 0.2, "class": 0.3, "slice": 0.5}


def family():
    return Family("calibration", SHARES, 0.01, 0.02)


def test_all_tests_together_have_the_level_of_the_family():
    tests = family()
    tests.add(Subject("overall", None))
    for k in range(MAX_TESTS_PER_SCOPE):
        tests.add(Subject("class", str(k)))
        tests.add(Subject("slice", f"0={k}"))
    assert sum(tests.levels) == pytest.approx(0.01)
    assert not tests.accepts(Subject("class", "one more"))
    assert not tests.add(Subject("class", "one more"))


def test_the_level_of_a_test_does_not_change_when_others_begin():
    tests = family()
    tests.add(Subject("class", "a"))
    first = tests.levels
    tests.add(Subject("class", "b"))
    second = tests.levels
    tests.add(Subject("class", "c"))
    assert (second[:1], tests.levels[:2]) == (first, second)
    restored = family().restore(tests.state())
    assert (restored.parts, restored.levels) == (tests.parts, tests.levels)


@pytest.mark.parametrize("content", [b"[", b'[["class", "a"], ["class", "a"]]', b'[["dog", "a"]]'])
def test_names_that_do_not_fit_are_refused(content):
    state = family().state() | {"parts": np.frombuffer(content, dtype=np.uint8)}
    with pytest.raises(InvalidSnapshot, match="Family"):
        family().restore(state)


def test_rejections_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    for _ in range(200):
        e = np.exp(rng.normal(1.0, 2.0, 6))
        largest = max((k for k in range(1, 7) if np.sort(e)[-k] >= 6 / (k * 0.3)), default=0)
        assert set(e_benjamini_hochberg(np.log(e), 0.3)) == set(np.argsort(e)[6 - largest :])
