"""Answers with costs: what to do is added, and nothing else changes."""

from dataclasses import fields, replace

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.metrics.cost_matrix import CostMatrix, RealisedCost
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import ValidityReport

COSTS = {"a": {"a": 0, "b": 2, "review": 0.2}, "b": {"a": 1, "b": 0, "review": 0.2}}
SETTINGS = {"classes": ("a", "b"), "window": 80, "refit_every": 20, "metrics_every": 10}
DECIDED = ("actions", "action", "expected_cost")


def stream(count=160, seed=3):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 3))
    labels = np.where(X[:, 0] + 0.7 * generator.normal(size=count) > 0, "b", "a").tolist()
    labels[70] = None
    return X, labels


def told(config, cuts=(160,)):
    """Return what a predictor tells of the stream, restored from its state at each cut."""
    X, labels = stream()
    found, predictor, begin = [], OnlinePredictor(config), 0
    for stop in cuts:
        schema = predictor.schema.of_features(None, 3)
        found += predictor.step_many(X[begin:stop], labels[begin:stop], schema=schema)
        state, begin = predictor.snapshot(), stop
        predictor = OnlinePredictor(config)
        predictor.restore(state)
    return found


def plain(answers):
    return [
        one.row(i) for one in answers if isinstance(one, PredictionBlock) for i in range(len(one))
    ]


@pytest.mark.parametrize("more", [{}, {"committee": "single"}, {"given_answers": True}])
def test_an_answer_with_costs_is_the_one_without_and_what_to_do(more):
    config = PredictorConfig(**SETTINGS, costs=COSTS, **more)
    without = told(config.model_copy(update={"costs": None}))
    found = told(config)
    matrix = CostMatrix(COSTS, ("a", "b"))
    rows, others = plain(found), plain(without)
    assert {row.action for row in rows} >= {None, "a", "b", "review"}
    for row, other in zip(rows, others, strict=True):
        assert replace(row, action=None, expected_cost=None) == other
        if row.status == "ok":
            bounds = np.array(row.intervals).T
            said = matrix.decide(np.array([row.probabilities]), bounds[:1], bounds[1:])
            assert row.action == matrix.actions[said.action[0]]
            assert row.expected_cost == said.expected_cost[0]
    reports = [one for one in found if isinstance(one, ValidityReport)]
    assert [replace(one, costs=None) for one in reports] == [
        one for one in without if isinstance(one, ValidityReport)
    ]


def test_what_decisions_came_to_is_reported_whatever_the_batches_and_the_restarts():
    config = PredictorConfig(**SETTINGS, costs=COSTS)
    found, cut = told(config), told(config, cuts=(1, 33, 34, 90, 160))
    assert plain(cut) == plain(found)
    reports, of_cut = ([r for r in each if isinstance(r, ValidityReport)] for each in (found, cut))
    assert reports == of_cut
    realised = RealisedCost(CostMatrix(COSTS, ("a", "b")))
    _, labels = stream()
    for row, label in zip(plain(found), labels, strict=True):
        if row.status == "ok" and label is not None and row.n < reports[-1].n:
            lower, upper = np.array(row.intervals).T[:, None]
            realised.update(
                np.array([row.probabilities]), lower, upper, np.array([label == "b"]) * 1
            )
    assert reports[-1].costs == realised.report()


def test_with_late_labels_the_original_answer_decides_and_is_scored():
    late = PredictorConfig(**SETTINGS, costs=COSTS, horizon=15)
    found = told(late)
    rows = plain(found)
    assert {row.action for row in rows if row.status == "ok"} == {"a", "b", "review"}
    last = [one for one in found if isinstance(one, ValidityReport)][-1]
    _, labels = stream()
    scored = [
        (row, label)
        for row, label in list(zip(rows, labels, strict=True))[: last.n + 1]
        if row.status == "ok" and label is not None
    ][: last.costs.scored]
    taken = [row.action for row, _ in scored]
    assert last.costs.taken == {name: taken.count(name) for name in ("a", "b", "review")}
    assert last.costs.scored == last.scored


def test_a_block_that_is_cut_keeps_what_was_decided():
    found = [one for one in told(PredictorConfig(**SETTINGS, costs=COSTS)) if hasattr(one, "taken")]
    block = next(
        one
        for one in found
        if isinstance(one, PredictionBlock) and one.action is not None and len(one) >= 3
    )
    assert [block.part(1, 3).row(i) for i in range(2)] == [block.row(1), block.row(2)]
    assert {f.name for f in fields(block)} >= set(DECIDED)
