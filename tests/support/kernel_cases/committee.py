"""Inputs of `online_svm.refit.committee`: forests, regressions, stacks, ranks."""

from typing import Any

import numpy as np

from kernel_cases._inputs import whole
from online_svm.refit.committee import boosting, forest, ridge_logistic, stack, staleness
from online_svm.refit.committee.ranks import Ranks


def _rows(rng: np.random.Generator, most: int = 90) -> Any:
    """Return rows of few and of many distinct values."""
    n, d = whole(rng, 1, most), whole(rng, 1, 7)
    X = rng.normal(size=(n, d))
    return np.where(rng.random(d) < 0.3, np.round(X), X)


def _bins(rng: np.random.Generator) -> Any:
    X = _rows(rng, 400)
    edges = forest.edges_of(X)
    return edges, forest.bins_of(rng.normal(size=X.shape), edges), forest.bins_of(X, edges)


def _bare(trees: int, decisions: int) -> forest.Forest:
    return forest.Forest(
        np.zeros((trees, forest.NODES), dtype=np.int32),
        np.zeros((trees, forest.NODES), dtype=np.uint8),
        np.zeros((trees, forest.LEAVES, decisions), dtype=np.int16),
    )


def _grown(rng: np.random.Generator, classes: int, *, varied: bool = False, most: int = 90) -> Any:
    X = _rows(rng, most)
    codes = rng.integers(0, classes, len(X))
    weights = rng.exponential(size=len(X)) if rng.integers(2) else np.ones(len(X))
    bins = forest.bins_of(X, forest.edges_of(X))
    sample = boosting.Sample.of(bins, codes, weights, uniform=varied)
    grown = _bare(4, 1 if classes == 2 else classes)
    by = boosting.MEMBER
    if varied:
        by = boosting.Boosting(*rng.uniform(0.01, 6.0, 3), cuts=4 * whole(rng, 1, 9))
    grow = boosting.grow_two if classes == 2 else boosting.grow_more
    grow(sample, by, whole(rng, 0, 2**62), whole(rng, 0, 2**40), grown)
    return tuple(grown)


def _scored(rng: np.random.Generator) -> Any:
    m, d, decisions = whole(rng, 0, 20), whole(rng, 1, 5), whole(rng, 1, 5)
    features = rng.integers(0, d, (3, forest.NODES), dtype=np.int32)
    leaves = rng.integers(-32767, 32768, (3, forest.LEAVES, decisions), dtype=np.int16)
    totals = rng.integers(-9, 9, (m, decisions))
    X = rng.normal(size=(m, d))
    nodes = forest.RankedCuts.of(features, rng.normal(size=(3, forest.NODES)))
    forest.add_leaves(nodes, leaves, X, totals)
    out = np.empty(totals.shape)
    forest.log_odds(totals * int(10 ** rng.integers(0, 3)), out)
    return totals, out


def _regression(rng: np.random.Generator) -> Any:
    n, p = whole(rng, 0, 200), whole(rng, 1, 6)
    problem = ridge_logistic.Regression(
        rng.normal(size=(p, n)) * 10.0 ** rng.integers(-2, 3),
        rng.integers(0, 2, n).astype(np.float64) if rng.integers(2) else rng.random(n),
        rng.exponential(size=n),
        rng.normal(size=p),
        rng.exponential(size=p),
    )
    weights = rng.normal(size=p)
    steps, tol = whole(rng, 0, 13), float(10.0 ** -rng.integers(1, 9))
    return ridge_logistic.fit_ridge_logistic(problem, weights, steps, tol), weights


def _stack(rng: np.random.Generator) -> Any:
    n, members = whole(rng, 0, 80), whole(rng, 1, 5)
    decisions = (1, 3, 4)[rng.integers(3)]
    scores = rng.normal(size=(n, members, decisions)) * 10.0 ** rng.integers(-1, 2)
    codes = rng.integers(0, max(decisions, 2), n)
    fitted = stack.Stack.fit(scores, codes, rng.random(n) < 0.7)
    odds = fitted.log_odds(scores)
    learned = fitted.slope, fitted.intercept, fitted.weights, fitted.constant
    return *learned, odds, fitted.apply(scores)


def _fit_more(rng: np.random.Generator) -> Any:
    n, members, classes = whole(rng, 0, 60), whole(rng, 1, 5), whole(rng, 2, 6)
    weights = np.full(members, 1.0 / members)
    odds = rng.normal(size=(n, members, classes)) * 10.0 ** rng.integers(-1, 2)
    stack.fit_more(odds, rng.integers(0, classes, n), weights, float(10.0 ** -rng.integers(2, 8)))
    return weights


def _ranks(rng: np.random.Generator) -> Any:
    n, classes = whole(rng, 1, 40), whole(rng, 2, 6)
    steps = rng.integers(0, 2, whole(rng, 1, 8))
    categories = np.cumsum(steps) - 1  # each number below the last one is there
    X = rng.normal(size=(n, len(categories)))
    X = np.where(categories >= 0, (X > 0.5) * 1.5 - 0.5, X)
    ranks = Ranks.fit(X, rng.integers(0, classes, n), classes, categories)
    return tuple(ranks.state().values()), ranks.features(X)


def _staleness(rng: np.random.Generator) -> Any:
    n, decisions = whole(rng, 0, 60), (1, 3, 5)[rng.integers(3)]
    older, newer = rng.normal(size=(2, n, decisions)) * 10.0 ** rng.integers(-1, 3)
    codes = rng.integers(-1, max(decisions, 2), n)
    return tuple(staleness.Staleness.between(older, newer, codes))


CASES = {
    "bins_of": _bins,
    "fit_more": _fit_more,
    "fit_ridge_logistic": _regression,
    "grow_more": lambda rng: _grown(rng, whole(rng, 3, 6)),
    "grow_two": lambda rng: _grown(rng, 2),
    "grow_more, other constants": lambda rng: _grown(rng, whole(rng, 3, 6), varied=True),
    "grow_two, other constants": lambda rng: _grown(rng, 2, varied=True),
    "grow_more, many rows": lambda rng: _grown(rng, whole(rng, 3, 6), varied=True, most=900),
    "grow_two, many rows": lambda rng: _grown(rng, 2, varied=True, most=2_000),
    "ranks": _ranks,
    "scores of forests": _scored,
    "stack": _stack,
    "staleness": _staleness,
}
