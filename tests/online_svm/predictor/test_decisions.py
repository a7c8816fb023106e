"""Answers with costs: what to do is added, and nothing else changes."""

from dataclasses import fields, replace

import numpy as np
import pytest
from predictor_answers import blocks, reports, rows

from online_svm.config import PredictorConfig
from online_svm.metrics.cost_matrix import CostMatrix, RealisedCost
from online_svm.predictor.online_predictor import OnlinePredictor

COSTS = {"a": {"a": 0, "b": 2, "review": 0.2}, "b": {"a": 1, "b": 0, "review": 0.2}}
SETTINGS = {"classes": ("a", "b"), "window": 80, "refit_every": 20, "metrics_every": 10}
DECIDED = ("actions", "action", "expected_cost")


def stream(count=160, seed=3):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 3))
    labels = np.where(X[:, 0] + 0.7 * generator.normal(size=count) > 0, "b", "a").tolist()
    labels[70] = None
    return X, labels


def told(config):
    X, labels = stream()
    predictor = OnlinePredictor(config)
    return predictor.step_many(X, labels, schema=predictor.schema.of_features(None, 3))


@pytest.mark.parametrize("more", [{}, {"committee": "single"}])
def test_an_answer_with_costs_is_the_one_without_and_what_to_do(more):
    config = PredictorConfig(**SETTINGS, costs=COSTS, **more)
    without = told(config.model_copy(update={"costs": None}))
    found = told(config)
    matrix = CostMatrix(COSTS, ("a", "b"))
    assert {row.action for row in rows(found)} >= {None, "a", "b", "review"}
    for row, other in zip(rows(found), rows(without), strict=True):
        assert replace(row, action=None, expected_cost=None) == other
        if row.status == "ok":
            said = matrix.decide(np.array([row.probabilities]))
            assert row.action == matrix.actions[said.action[0]]
            assert row.expected_cost == said.expected_cost[0]
    assert [replace(one, costs=None) for one in reports(found)] == reports(without)


def test_what_decisions_came_to_is_reported():
    found = told(PredictorConfig(**SETTINGS, costs=COSTS))
    last = reports(found)[-1]
    realised = RealisedCost(CostMatrix(COSTS, ("a", "b")))
    _, labels = stream()
    for row, label in zip(rows(found), labels, strict=True):
        if row.status == "ok" and label is not None and row.n < last.n:
            realised.update(np.array([row.probabilities]), np.array([label == "b"]) * 1)
    assert last.costs == realised.report()


def test_with_late_labels_the_original_answer_decides_and_is_scored():
    late = PredictorConfig(**SETTINGS, costs=COSTS, horizon=15)
    found = told(late)
    answers, last = rows(found), reports(found)[-1]
    assert {row.action for row in answers if row.status == "ok"} == {"a", "b", "review"}
    _, labels = stream()
    scored = [
        (row, label)
        for row, label in list(zip(answers, labels, strict=True))[: last.n + 1]
        if row.status == "ok" and label is not None
    ][: last.costs.scored]
    taken = [row.action for row, _ in scored]
    assert last.costs.taken == {name: taken.count(name) for name in ("a", "b", "review")}
    assert last.costs.scored == last.scored


def test_a_block_that_is_cut_keeps_what_was_decided():
    found = blocks(told(PredictorConfig(**SETTINGS, costs=COSTS)), "ok")
    block = next(one for one in found if one.action is not None and len(one) >= 3)
    assert [block.part(1, 3).row(i) for i in range(2)] == [block.row(1), block.row(2)]
    assert {f.name for f in fields(block)} >= set(DECIDED)
