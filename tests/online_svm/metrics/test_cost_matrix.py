"""Decisions by costs, against sums and searches that are written out."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidConfig
from online_svm.metrics.cost_matrix import CostMatrix, RealisedCost
from online_svm.metrics.sequential.comparison import reach_of

LABELS = ("a", "b", "c", "d")
EIGHTHS = st.integers(0, 8).map(lambda k: k / 8)  # sums of their products are exact
PRICE = 0.25


def matrices(draw, classes, others):
    values = st.integers(-4, 40).map(lambda k: k / 4)
    costs = {y: {a: draw(values) for a in (*classes, *others)} for y in classes}
    return (
        {y: row | {"review": PRICE} for y, row in costs.items()} if draw(st.booleans()) else costs
    )


@st.composite
def cases(draw):
    """Draw a matrix, with or without `review`, and an announced probability."""
    classes = LABELS[: draw(st.integers(2, 4))]
    costs = matrices(draw, classes, draw(st.lists(st.sampled_from(["call", "wait"]), unique=True)))
    cuts = sorted(draw(st.lists(EIGHTHS, min_size=len(classes) - 1, max_size=len(classes) - 1)))
    return costs, classes, [np.diff([0.0, *cuts, 1.0]).tolist()]


def expected(costs, action, probabilities):
    """Return the exact expected cost of an action; of `review` with that of the best one then."""
    pairs = zip(costs, probabilities, strict=True)
    return sum(Fraction(p) * Fraction(paid(costs[label], action)) for label, p in pairs)


def paid(row, action):
    others = [cost for name, cost in row.items() if name != "review"]
    return row[action] + (min(others) if action == "review" else 0)


def decision(costs, classes, point):
    matrix = CostMatrix(costs, classes)
    found = matrix.decide(np.array(point))
    return matrix.actions, matrix.actions[found.action[0]], found.expected_cost[0]


@given(cases())
def test_the_action_has_the_least_expected_cost_and_is_the_first_of_equals(case):
    costs, classes, point = case
    actions, action, cost = decision(costs, classes, point)
    each = [expected(costs, name, point[0]) for name in actions]
    assert actions[: len(classes)] == classes
    assert (action, cost) == (actions[each.index(min(each))], min(each))


COSTS = {"a": {"a": 0.0, "b": 5.0, "review": 0.4}, "b": {"a": 1.0, "b": 0.0, "review": 0.4}}


def announced(count=300, seed=0):
    generator = np.random.default_rng(seed)
    p = generator.random(count)
    columns = (generator.random(count) < p).astype(np.int64)
    return np.stack([1 - p, p], axis=1), columns


def test_realised_costs_are_sums_over_decisions_in_any_batches():
    matrix = CostMatrix(COSTS, ("a", "b"))
    point, columns = announced()
    whole, cut = RealisedCost(matrix), RealisedCost(matrix)
    whole.update(point, columns)
    for rows in np.array_split(np.arange(300), 41):
        cut.update(point[rows], columns[rows])
    again = RealisedCost(matrix).restore(cut.state())
    report = whole.report()
    assert report == cut.report() == again.report()
    paid = {y: row | {"review": 0.4} for y, row in COSTS.items()}
    actions = [matrix.actions[i] for i in matrix.decide(point).action]
    truths = ["ab"[i] for i in columns]
    total = 0.0
    for label, action in zip(truths, actions, strict=True):
        total += paid[label][action]
    assert report.mean == total / 300
    costs = np.array([paid[y][a] for y, a in zip(truths, actions, strict=True)])
    centres = np.concatenate(([0.0], np.cumsum(costs)[:-1])) / np.arange(1, 301)
    reach = 5.0 * reach_of(((costs - centres) ** 2).sum() / 25.0, 0.025) / 300
    ends = max(0.0, total / 300 - reach), total / 300 + reach
    assert (report.lower, report.upper) == pytest.approx(ends, rel=1e-9)
    assert report.taken == {name: actions.count(name) for name in matrix.actions}
    assert set(actions) == {"a", "b", "review"}
    assert report.always["b"] == 5.0 * truths.count("a") / 300
    predicted = ["ab"[int(p[1] > 0.5)] for p in point]
    pairs = list(zip(truths, predicted, strict=True))
    assert report.by_label == (5.0 * pairs.count(("a", "b")) + pairs.count(("b", "a"))) / 300


REFUSED = {
    "no rows": ({"a": 1, "b": 5}, "must have a row of actions for each true label"),
    "a row without an action": ({"a": {"a": 0, "b": 1}, "b": {"a": 1}}, "the same actions"),
    "a label that is no action": ({"a": {"a": 0, "c": 1}, "b": {"a": 1, "c": 0}}, "['b']"),
    "a single label": ({"a": {"a": 0, "b": 1}}, "at least two"),
    "labels that are not the classes": (
        {"a": {"a": 0, "c": 1}, "c": {"a": 1, "c": 0}},
        "its rows are of a, c, the declared classes are a, b: declare as classes",
    ),
    "two prices of review": (
        {"a": {"a": 0, "b": 1, "review": 1}, "b": {"a": 1, "b": 0, "review": 2}}, "one price"
    ),
    "a negative price of review": (
        {y: {"a": 0, "b": 1, "review": -1} for y in "ab"}, "at least 0"
    ),
    "too many actions": (
        {y: dict.fromkeys(["a", "b", *map(str, range(63))], 1) for y in "ab"}, "limit is 64"
    ),
    "a cost that is not finite": ({"a": {"a": 0, "b": float("inf")}, "b": {"a": 1, "b": 0}}, ""),
}  # fmt: skip


@pytest.mark.parametrize(("costs", "why"), REFUSED.values(), ids=REFUSED)
def test_costs_that_cannot_work_are_refused_by_name(costs, why):
    with pytest.raises((InvalidConfig, ValueError), match="costs") as refused:
        PredictorConfig(classes=("a", "b"), costs=costs)
    assert why in str(refused.value)


def test_costs_need_declared_classes():
    with pytest.raises(ValueError, match="declared classes are none: declare as classes"):
        PredictorConfig(costs=COSTS)
