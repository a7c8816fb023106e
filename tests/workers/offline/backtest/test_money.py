"""Costs of configurations, their differences, and the setting to take."""

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.metrics.cost_matrix import CostMatrix, RealisedCost
from workers.config.settings import Limits
from workers.offline.backtest.money import best_by_money, money_of, saving
from workers.offline.backtest.prequential import HEADLINE, Configuration, HistoryOutcome, Published
from workers.offline.backtest.result import BacktestResult, result_of
from workers.offline.backtest.run import Finished
from workers.offline.backtest.table import table

COSTS = {
    "bad": {"bad": 0.0, "good": 5.0, "review": 0.4},
    "good": {"bad": 1.0, "good": 0.0, "review": 0.4},
}
CLASSES = ("bad", "good")


def outcome(seed, noise, n=2_000, warm_up=20):
    """Return answers whose log odds are wrong by noise."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(size=n) * 2.0
    truth = (rng.random(n) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int64)
    told = 1.0 / (1.0 + np.exp(-(logit + noise * np.random.default_rng(seed + 1).normal(size=n))))
    point = np.stack([1.0 - told, told], axis=1)
    rows = slice(warm_up, None)
    methods = {HEADLINE: Published(point[rows], np.stack([point[rows]] * 2, axis=-1))}
    return HistoryOutcome(
        CLASSES, truth[rows], np.arange(n)[rows], methods, n_learned=n, seconds=1.0,
        costs=CostMatrix(COSTS, CLASSES),
    )  # fmt: skip


def test_the_costs_are_those_that_a_worker_sums():
    answered = outcome(0, 0.5)
    point = answered.methods[HEADLINE].probabilities
    realised = RealisedCost(CostMatrix(COSTS, CLASSES))
    realised.update(point, answered.truth)
    expected, found = realised.report(), money_of(answered)
    assert found.mean == pytest.approx(expected.mean)
    assert found.by_label == pytest.approx(expected.by_label)
    assert found.always == pytest.approx(expected.always)
    assert found.taken == expected.taken
    assert sum(found.sums) / sum(found.counts) == pytest.approx(found.mean)


def test_the_interval_holds_the_true_saving_and_excludes_zero_where_it_is_large():
    truth = np.mean([
        money_of(outcome(1000 + i, 2.0)).mean - money_of(outcome(1000 + i, 0.0)).mean
        for i in range(40)
    ])  # fmt: skip
    found = [saving(money_of(outcome(i, 2.0)), money_of(outcome(i, 0.0))) for i in range(60)]
    assert sum(one.lower <= truth <= one.upper for one in found) >= 53
    assert all(one.lower > 0.0 for one in found)
    same = money_of(outcome(0, 1.0))
    assert saving(same, same).upper == 0.0


def test_a_warm_up_of_another_length_is_left_out_of_the_difference():
    early, late = money_of(outcome(3, 1.0)), money_of(outcome(3, 1.0, warm_up=330))
    found = saving(early, late)
    assert (found.mean, found.lower, found.upper) == (0.0, 0.0, 0.0)
    assert saving(early, money_of(outcome(3, 1.0, warm_up=1_990))) is None


def test_the_setting_to_take_saves_for_certain_or_is_the_base():
    good, bad = money_of(outcome(5, 0.0)), money_of(outcome(5, 2.0))
    assert best_by_money([bad, good, None])[0] == 1
    assert best_by_money([good, bad])[0] == 0
    assert best_by_money([None, good])[0] == 0


def finished(name, noise, costs=COSTS):
    config = PredictorConfig(classes=CLASSES, costs=costs)
    each = Configuration(name, config, Limits(), {})
    return Finished(each, result_of(outcome(7, noise)), False)


def test_the_table_says_which_setting_to_take():
    lines = "\n".join(table([finished("base", 2.0), finished("wide", 0.0)]))
    assert "Take wide: saves most." in lines
    assert "wide 0." in lines
    assert ": saves +0." in lines
    lines = "\n".join(table([finished("base", 0.0), finished("noisy", 2.0)]))
    assert "Take base: no other is shown to cost less." in lines
    other = finished("other", 0.0, {k: v | {"review": 0.2} for k, v in COSTS.items()})
    lines = "\n".join(table([finished("base", 0.0), other]))
    assert "other: not compared by cost" in lines


def test_a_result_without_costs_is_stored_as_before():
    answered = outcome(0, 0.0)
    answered.costs = None
    found = result_of(answered)
    assert found.model_dump(mode="json")["money"] is None
    kept = result_of(outcome(0, 0.0))
    assert BacktestResult.model_validate_json(kept.model_dump_json()) == kept
