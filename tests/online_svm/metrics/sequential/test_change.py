"""Shiryaev-Roberts and CUSUM statistics: their recursion, and their mean run length."""

import math

import numpy as np
import pytest

from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.metrics.sequential.bets import BETS
from online_svm.metrics.sequential.change import ChangeTest

FORMS = ("shiryaev-roberts", "cusum")


def plain(values, tolerance, form):
    """The definitions: a sum, or the greatest, over all starts of the products of factors."""
    sizes, found = BETS / (1 + tolerance), []
    for sign in (1, -1):
        for size in sizes:
            factors = [1 + size * (sign * v - tolerance) for v in values]
            products = [math.prod(factors[start:]) for start in range(len(values))]
            found.append(sum(products) if form == "shiryaev-roberts" else max(products))
    return math.log(sum(found) / len(found))


@pytest.mark.parametrize("form", FORMS)
def test_a_statistic_is_over_all_starts(form):
    values = np.random.default_rng(0).uniform(-0.6, 0.7, 40)
    test = ChangeTest(1, 0.02, 1000, form)
    logs = test.update(values[:, None])
    assert logs[-1, 0] == pytest.approx(plain(values, 0.02, form))
    assert logs[10, 0] == pytest.approx(plain(values[:11], 0.02, form))
    assert test.log_wealth[0] == pytest.approx(logs[-1, 0])


@pytest.mark.parametrize("form", FORMS)
def test_the_mean_run_length_is_at_least_what_was_asked_for(form):
    rng, asked, series = np.random.default_rng(1), 100, 400
    # At the edge of the null, where false alarms are most frequent.
    values = np.where(rng.random((3000, series)) < 0.42, 0.6, -0.4)
    logs = ChangeTest(series, 0.02, asked, form).update(values)
    over = logs >= math.log(asked)
    lengths = np.where(over.any(axis=0), over.argmax(axis=0) + 1, 3000)
    error = lengths.std() / math.sqrt(series)
    assert lengths.mean() + 3 * error >= asked


@pytest.mark.parametrize("form", FORMS)
def test_a_late_change_is_found_as_soon_as_an_early_one(form):
    rng, delays = np.random.default_rng(2), []
    for quiet in (500, 20_000):
        values = np.concatenate([np.full(quiet, 0.0), rng.choice([0.7, -0.3], 200)])
        over = ChangeTest(1, 0.02, 10_000, form).update(values[:, None])[:, 0] >= math.log(10_000)
        delays.append(int(over.argmax()) - quiet)
        rng = np.random.default_rng(2)
    assert 0 < delays[0] < 200
    assert abs(delays[0] - delays[1]) <= 5


@pytest.mark.parametrize("form", FORMS)
def test_statistics_do_not_depend_on_cuts_and_go_on_from_a_state(form):
    values = np.random.default_rng(3).uniform(-0.5, 0.6, (200, 2))
    whole, part = ChangeTest(2, 0.02, 1000, form), ChangeTest(2, 0.02, 1000, form)
    logs = whole.update(values)
    first = part.update(values[:77])
    part = ChangeTest.from_state(part.state(), 2, 0.02, 1000, form)
    assert np.array_equal(logs, np.concatenate([first, part.update(values[77:])]))
    whole.restart(0)
    assert not whole.rejected[0]


def test_parameters_and_states_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInput, match="run_length"):
        ChangeTest(1, 0.02, 0.5)
    with pytest.raises(InvalidSnapshot, match="statistics"):
        ChangeTest.from_state(ChangeTest(2, 0.02, 10).state(), 1, 0.02, 10)
