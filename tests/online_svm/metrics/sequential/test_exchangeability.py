"""Conformal test martingales: what they find, what they must not, and their ranks."""

from itertools import pairwise

import numpy as np
import pytest

from online_svm.compiled.jit import jit
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.metrics.sequential.exchangeability import ExchangeabilityMonitor
from online_svm.metrics.sequential.row_ranks import CELLS, cell_of, ranked
from online_svm.stream.scored_rows import ScoredRows


@jit
def ranks(scores, us, counts):
    out = np.empty(len(scores))
    for i in range(len(scores)):
        out[i] = ranked(counts, cell_of(scores[i], 0.0, 1.0), us[i])
    return out


@jit
def cells(scores):
    out = np.empty(len(scores), dtype=np.int64)
    for i in range(len(scores)):
        out[i] = cell_of(scores[i], 0.0, 1.0)
    return out


def examples(rng, m, share=0.4, distance=1.5, shift=0.0):
    columns = (rng.random(m) < share).astype(np.int64)
    X = rng.normal(size=(m, 3))
    X[:, 0] += distance * columns
    X[:, 1] += shift
    return X, columns


def rows_of(X, columns, classes=("a", "b"), first=0):
    m, nothing = len(X), np.zeros((len(X), len(classes)))
    zeros = np.zeros(m, dtype=np.int64)
    n = first + np.arange(m)
    parts = (nothing, nothing, nothing, nothing, nothing, zeros)
    return ScoredRows(n, classes, columns, *parts, model=1, X=X)


def test_ranks_are_those_of_the_definition_ties_counted_with_themselves():
    rng = np.random.default_rng(0)
    scores, us = rng.normal(size=300).round(1), rng.random(300)
    p, at = ranks(scores, us, np.zeros(2 * CELLS, dtype=np.int64)), cells(scores)
    for i in range(300):
        above = np.count_nonzero(at[: i + 1] > at[i])
        equal = np.count_nonzero(at[: i + 1] == at[i])
        assert p[i] == (above + us[i] * equal) / (i + 1)


def test_larger_scores_have_larger_cells_up_to_infinite_ones():
    found = cells(np.array([-1e300, -1.0, 0.0, 1.0, 1e300]))
    assert found.tolist() == [0, CELLS // 4, CELLS // 2, 3 * CELLS // 4, CELLS - 1]


@pytest.mark.parametrize(
    ("change", "scopes"),
    [
        ({"shift": 1.5}, {"scores"}),
        ({"share": 0.8}, {"overall", "scores"}),
        ({"distance": -1.5}, {"overall", "class", "scores"}),
    ],
)
def test_a_change_is_found_soon_after_it_came(change, scopes):
    rng = np.random.default_rng(1)
    monitor = ExchangeabilityMonitor(level=0.01, every=10_000)
    assert monitor.update(rows_of(*examples(rng, 4000))) == []
    found = monitor.update(rows_of(*examples(rng, 1000, **change), first=4000))
    assert found[0].row < 400
    assert found[0].scope in scopes
    assert found[0].log_wealth >= found[0].threshold


def test_what_comes_after_a_finding_is_compared_with_itself():
    rng = np.random.default_rng(2)
    monitor = ExchangeabilityMonitor(level=0.01, every=10_000)
    monitor.update(rows_of(*examples(rng, 3000)))
    found = monitor.update(rows_of(*examples(rng, 6000, shift=2.0), first=3000))
    assert len(found) == 1


def test_exchangeable_examples_are_left_alone_at_the_level():
    rng, level, runs = np.random.default_rng(3), 0.2, 60
    alarmed = 0
    for _ in range(runs):
        # A small `every`: scorers follow one another.
        monitor = ExchangeabilityMonitor(level=level, every=700)
        alarmed += bool(monitor.update(rows_of(*examples(rng, 4000))))
    assert alarmed <= 22  # beyond it less than one in a thousand of a binomial(60, .2)


def test_a_finding_does_not_depend_on_how_rows_are_cut_and_goes_on_from_a_state():
    rng = np.random.default_rng(4)
    X, columns = examples(rng, 3000)
    X[2200:, 1] += 2.0
    X[7, 2] = np.nan
    rows = rows_of(X, columns)
    whole, other = (ExchangeabilityMonitor(0.05, 1000, seed=3) for _ in range(2))
    expected, found = whole.update(rows), []
    edges = [0, 1, 2, 499, 500, 501, 650, 1400, 1555, 1556, 2999, 3000]
    for begin, stop in pairwise(edges):
        new = other.update(rows.part(begin, stop))
        found += [(begin + f.row, f.name, f.log_wealth, f.moved) for f in new]
        other = ExchangeabilityMonitor.from_state(other.state(), 0.05, 1000, seed=3)
    assert expected
    assert found == [(f.row, f.name, f.log_wealth, f.moved) for f in expected]
    assert expected[0].moved[0][0] == 1
    assert whole.report() == other.report()


def test_a_state_does_not_depend_on_how_many_rows_came_with_the_one_that_was_found():
    X, columns = examples(np.random.default_rng(4), 2400)
    X[2200:, 1] += 2.0
    rows = rows_of(X, columns)
    whole, other = (ExchangeabilityMonitor(0.05, 1000) for _ in range(2))
    (found,) = whole.update(rows)
    for begin, stop in pairwise([0, found.row + 1, 2400]):
        other.update(rows.part(begin, stop))
    one, same = whole.state(), other.state()
    assert one.keys() == same.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], same[name], name)


def test_rows_that_no_class_explains_are_ranked_as_the_strangest():
    # 1. A scorer that saw none of the classes it knows: those beyond the first 16 came alone.
    classes, m = tuple(f"c{i:02d}" for i in range(20)), 3000
    columns = np.where(np.arange(m) < 300, np.arange(m) % 20, 16 + np.arange(m) % 4)
    X = np.random.default_rng(6).normal(size=(m, 2))
    monitor = ExchangeabilityMonitor(0.01, 600)
    assert monitor.update(rows_of(X, columns, classes)) == []
    ExchangeabilityMonitor.from_state(monitor.state(), 0.01, 600)  # no NaN is in it
    # 2. A value so far away that its distance is infinite in every class.
    X, columns = X[:900] * 1e-60, np.arange(900) % 2
    X[700::50] = 1e100
    monitor = ExchangeabilityMonitor(0.01, 1000)
    monitor.update(rows_of(X, columns))
    state = monitor.state()
    assert np.isfinite(state["places"]).all()
    trees = state["trees"]
    assert trees[1, 1] > 0
    assert (trees[:, 1] == trees[:, CELLS:].sum(axis=1)).all()  # nothing was counted elsewhere


@pytest.mark.parametrize(("delay", "alarms"), [(100, False), (1500, True)])
def test_the_order_of_labels_of_which_one_class_comes_far_later_is_not_exchangeable(delay, alarms):
    X, columns = examples(np.random.default_rng(0), 6000)
    order = np.argsort(np.arange(6000) + np.where(columns == 1, 5, delay), kind="stable")
    found = ExchangeabilityMonitor(0.003, 10_000).update(rows_of(X[order], columns[order]))
    assert bool(found) == alarms


def test_rows_without_features_are_skipped():
    monitor = ExchangeabilityMonitor(0.01, 1000)
    label = np.ones(5, dtype=np.int64)
    nothing = np.zeros((5, 2))
    rows = ScoredRows(label, ("a", "b"), label, *[nothing] * 5, label, model=1)
    assert monitor.update(rows) == []


PARTS = ("trees", "counts", "places", "numbers", "parts", "since", "usual")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, np.zeros(7)) for name in PARTS),
        ("numbers", np.array([100, -5, 1])),  # so many rows are left: it would wait for ever
        ("means", np.zeros((0, 1 << 45))),  # of no bytes, but it would fill the memory
    ],
)
def test_a_state_with_a_part_that_does_not_fit_is_refused(name, value):
    state = ExchangeabilityMonitor(0.01, 1000).state()
    with pytest.raises(InvalidSnapshot):
        ExchangeabilityMonitor.from_state(state | {name: value}, 0.01, 1000)


def test_the_features_that_moved_are_told_with_how_far():
    rng = np.random.default_rng(6)
    monitor = ExchangeabilityMonitor(1e-300, 100_000)
    assert monitor.moved() == []
    monitor.update(rows_of(*examples(rng, 2000)))
    X, columns = examples(rng, 2000)
    X[:, 1] = 1.0 + 5.0 * X[:, 1]
    X[:, 2] -= 3.0
    X[::7, 0] = np.nan
    monitor.update(rows_of(X, columns, first=2000))
    moved = monitor.moved()
    assert [one["feature"] for one in moved][:2] == [2, 1]
    assert moved[0]["shift"] == pytest.approx(-3.0, abs=0.3)
    (test,) = [test for test in monitor.report() if test["scope"] == "scores"]
    assert test["moved"] == moved


def test_a_feature_that_comes_late_is_looked_at_by_the_next_scorer_however_rows_are_cut():
    rng = np.random.default_rng(4)
    X, columns = examples(rng, 3000)
    X[:300, 2] = np.nan
    X[2200:, 2] += 2.0
    rows = rows_of(X, columns)
    whole, other = (ExchangeabilityMonitor(0.05, 10_000) for _ in range(2))
    expected, found = whole.update(rows), []
    for begin, stop in pairwise([0, 100, 300, 301, 600, 3000]):
        narrow = rows_of(X[begin:stop, : 3 if stop > 300 else 2], columns[begin:stop], first=begin)
        found += [(begin + f.row, f.log_wealth, f.moved) for f in other.update(narrow)]
        other = ExchangeabilityMonitor.from_state(other.state(), 0.05, 10_000)
    assert 2200 <= expected[0].row < 2400
    assert expected[0].moved[0][0] == 2
    assert found == [(f.row, f.log_wealth, f.moved) for f in expected]


def test_rows_of_fewer_features_are_refused():
    monitor = ExchangeabilityMonitor(0.01, 1000)
    X, columns = examples(np.random.default_rng(7), 5)
    monitor.update(rows_of(X, columns))
    with pytest.raises(InvalidInput, match="2 features, but 3"):
        monitor.update(rows_of(X[:, :2], columns, first=5))
