"""Bets on labels that come late: which null holds, on labels that depend on one another."""

import numpy as np
import pytest

from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.metrics.sequential.bet_processes import BetProcesses
from online_svm.metrics.sequential.interleaved import InterleavedBets

HORIZON, STAY = 20, 0.98


def announced_late(rng, m):
    """y - p of a chain of labels that mostly stay as they are; p knows those 20 examples before.

    So p is exactly the probability given what was known, but neighbours fail together.
    """
    y = np.empty(m, dtype=int)
    y[0] = rng.random() < 0.5
    changes = rng.random(m) > STAY
    for t in range(1, m):
        y[t] = y[t - 1] ^ changes[t]
    same = 0.5 + 0.5 * (2 * STAY - 1) ** HORIZON
    p = np.where(y[:-HORIZON] == 1, same, 1 - same)
    return y[HORIZON:] - p


def test_on_late_autocorrelated_labels_only_interleaved_bets_keep_the_level():
    rng, level, runs = np.random.default_rng(0), 0.1, 60
    plain = interleaved = 0
    for _ in range(runs):
        misses = announced_late(rng, 3000)
        every = BetProcesses([0.02], [2 * level])  # the first of its tests has the level
        plain += every.update(misses[:, None]) < len(misses) or bool(every.rejected[0])
        late = InterleavedBets(HORIZON, 0.02, level)
        late.update(misses)
        interleaved += bool(late.rejected[0])
    assert plain > 40
    assert interleaved <= 14  # beyond it less than one in a thousand of a binomial(60, .1)


def test_interleaved_bets_find_what_is_off():
    rng = np.random.default_rng(1)
    late = InterleavedBets(5, 0.02, 0.01)
    late.update((rng.random(2000) < 0.6) - 0.3)
    assert late.rejected[0]


def test_without_delay_it_is_the_plain_test():
    values = np.random.default_rng(2).uniform(0.0, 0.3, 200)
    late, plain = InterleavedBets(1, 0.02, 1e-12), BetProcesses([0.02], [1e-12])
    late.update(values)
    plain.update(values[:, None])
    assert late.log_wealth[0] == pytest.approx(plain.log_wealth[0], abs=0.2)  # the greatest so far


def test_wealth_does_not_depend_on_cuts_and_goes_on_from_a_state():
    values = np.random.default_rng(3).uniform(-0.5, 0.6, 300)
    whole, part = InterleavedBets(7, 0.02, 0.01), InterleavedBets(7, 0.02, 0.01)
    whole.update(values)
    part.update(values[:100])
    part = InterleavedBets.from_state(part.state(), 7, 0.02, 0.01)
    part.update(values[100:])
    for name, array in whole.state().items():
        assert np.array_equal(array, part.state()[name])


def test_parameters_and_states_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInput, match="horizon"):
        InterleavedBets(0, 0.02, 0.01)
    with pytest.raises(InvalidSnapshot, match="stakes"):
        InterleavedBets.from_state(InterleavedBets(2, 0.02, 0.01).state(), 3, 0.02, 0.01)
