"""Conformal test martingales: what they find, what they must not, scores and ranks."""

import math
from itertools import pairwise

import numpy as np
import pytest
from rows_by_hand import rows_of, uniform
from scipy.special import logsumexp
from scipy.stats import norm

from online_svm.errors import InvalidInput
from online_svm.metrics.sequential.exchangeability import (
    MAX_CLASSES,
    N_CELLS,
    N_RANKED,
    ExchangeabilityMonitor,
    FrozenScorer,
    Moments,
    RankState,
    cell_of,
    rank_rows,
)
from online_svm.stream.prediction import ScoredRows


def cells(scores):
    return np.array([cell_of(score, 0.0, 1.0) for score in scores])


def examples(rng, m, share=0.4, distance=1.5, shift=0.0):
    columns = (rng.random(m) < share).astype(np.int64)
    X = rng.normal(size=(m, 3))
    X[:, 0] += distance * columns
    X[:, 1] += shift
    return X, columns


def test_larger_scores_have_larger_cells_up_to_infinite_ones():
    found = cells(np.array([-1e300, -1.0, 0.0, 1.0, 1e300]))
    assert found.tolist() == [0, N_CELLS // 4, N_CELLS // 2, 3 * N_CELLS // 4, N_CELLS - 1]


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


def test_findings_of_shift_are_independent_of_batches_and_restarts():
    """Of a feature that comes late, too: the next scorer uses it."""
    X, columns = examples(np.random.default_rng(4), 3000)
    X[:300, 2] = X[700, 1] = np.nan
    X[2200:, 2] += 2.0
    whole, other = (ExchangeabilityMonitor(0.05, 1000, seed=3) for _ in range(2))
    expected, found = whole.update(rows_of(X, columns)), []
    edges = [0, 1, 2, 300, 301, 499, 500, 501, 650, 1400, 1555, 1556, 2999, 3000]
    for begin, stop in pairwise(edges):
        known = X[begin:stop, : 3 if stop > 300 else 2]
        new = other.update(rows_of(known, columns[begin:stop], first=begin))
        found += [(begin + f.row, f.name, f.log_wealth, f.moved) for f in new]
        other = ExchangeabilityMonitor(0.05, 1000, seed=3).restore(other.state())
    assert found == [(f.row, f.name, f.log_wealth, f.moved) for f in expected]
    assert 2200 <= expected[0].row < 2400
    assert expected[0].moved[0][0] == 2
    assert whole.report() == other.report()


def test_rows_that_no_class_explains_are_ranked_as_the_strangest():
    # 1. A scorer that saw none of the classes it knows: those beyond the first 16 came alone.
    classes, m = tuple(f"c{i:02d}" for i in range(20)), 3000
    columns = np.where(np.arange(m) < 300, np.arange(m) % 20, 16 + np.arange(m) % 4)
    X = np.random.default_rng(6).normal(size=(m, 2))
    monitor = ExchangeabilityMonitor(0.01, 600)
    assert monitor.update(rows_of(X, columns, classes)) == []
    ExchangeabilityMonitor(0.01, 600).restore(monitor.state())  # no NaN is in it
    # 2. A value so far away that its distance is infinite in every class.
    X, columns = X[:900] * 1e-60, np.arange(900) % 2
    X[700::50] = 1e100
    monitor = ExchangeabilityMonitor(0.01, 1000)
    monitor.update(rows_of(X, columns))
    state = monitor.state()
    assert np.isfinite(state["places"]).all()
    trees = state["trees"]
    assert trees[1, 1] > 0
    assert (trees[:, 1] == trees[:, N_CELLS:].sum(axis=1)).all()  # nothing was counted elsewhere


@pytest.mark.parametrize(("delay", "alarms"), [(100, False), (1500, True)])
def test_label_order_with_one_delayed_class_is_not_exchangeable(delay, alarms):
    X, columns = examples(np.random.default_rng(0), 6000)
    order = np.argsort(np.arange(6000) + np.where(columns == 1, 5, delay), kind="stable")
    order = order[:5900]  # in the end the delayed class comes alone
    found = ExchangeabilityMonitor(0.003, 10_000).update(rows_of(X[order], columns[order]))
    assert bool(found) == alarms


def test_rows_without_features_are_skipped():
    monitor = ExchangeabilityMonitor(0.01, 1000)
    label = np.ones(5, dtype=np.int64)
    nothing = np.zeros((5, 2))
    rows = ScoredRows(label, ("a", "b"), label, *[nothing] * 5, label, model=1)
    assert monitor.update(rows) == []


def test_the_features_that_moved_are_reported_with_their_shift():
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


def test_rows_of_fewer_features_are_refused():
    monitor = ExchangeabilityMonitor(0.01, 1000)
    X, columns = examples(np.random.default_rng(7), 5)
    monitor.update(rows_of(X, columns))
    with pytest.raises(InvalidInput, match="2 features, but 3"):
        monitor.update(rows_of(X[:, :2], columns, first=5))


PLACED = 100


def p_values(scores, seed, stream):
    """Return the smoothed rank of each score among all after the first that fix the cells."""
    fixing = np.array([score for _, score in scores[:PLACED]])
    centre, spread = fixing.mean(), fixing.std()
    found, before = {}, []
    for row, score in scores[PLACED:]:
        before.append(cell_of(score, centre, spread))
        above = sum(cell > before[-1] for cell in before)
        equal = before.count(before[-1])
        found[row] = (above + uniform(seed, row, stream) * equal) / len(before)
    return found


@pytest.fixture
def ranked():
    """Two classes and four features, one of which is missing in places."""
    rng, m, d, seed = np.random.default_rng(3), 700, 4, 12345
    labels = rng.integers(-1, 2, m)
    X = rng.normal(size=(m, d)) + np.maximum(labels, 0)[:, None]
    X[::5, 2] = np.nan
    shares, means, deviations = np.array([0.4, 0.6]), np.array([0.0, 1.0]), np.array([0.8, 1.3])
    constants = np.full(MAX_CLASSES, -np.inf)
    constants[:2] = np.log(shares)
    centres, precisions = np.zeros((MAX_CLASSES, d)), np.zeros((MAX_CLASSES, d))
    centres[:2], precisions[:2] = means[:, None], deviations[:, None] ** -2.0
    moments = Moments(*(np.zeros((MAX_CLASSES, d)) for _ in range(3)))
    trees = np.zeros((N_RANKED, 2 * N_CELLS), dtype=np.int64)
    scorer = FrozenScorer(constants, centres, precisions)
    rows = np.zeros(1, dtype=np.int64)
    held = RankState(rows, moments, scorer, np.zeros(d), np.zeros((N_RANKED, 3)), trees)
    values = np.empty((m, 7))
    rank_rows(X, labels, seed, held, np.array([5, 6]), values)
    # ln(share * density), but for the constant that each class has alike.
    logs = norm.logpdf(X[:, None, :], means[:, None], deviations[:, None])
    logs += np.log(deviations)[:, None] + 0.5 * math.log(2 * math.pi)
    return X, labels, seed, np.nansum(logs, axis=2) + np.log(shares), values, held


def scores_of(logs, labels):
    """Return, for each stream, rows and scores; and the columns of what is bet on."""
    density = logsumexp(logs, axis=1)
    rows = range(1, len(logs) + 1)
    known = [i for i, label in enumerate(labels) if label >= 0]
    own = {i: logs[i, labels[i]] for i in known}
    streams = [
        (0, [(i + 1, density[i] - own[i]) for i in known]),
        (1, list(zip(rows, -density, strict=True))),
        (2, list(zip(rows, logs[:, 1] - logs[:, 0], strict=True))),
    ]
    for c in range(2):
        of_class = [(i + 1, logs[i, 1 - c] - own[i]) for i in known if labels[i] == c]
        streams.append((3 + c, of_class))
    return streams


def test_what_is_bet_on_follows_the_smoothed_ranks_of_gaussian_scores(ranked):
    _, labels, seed, logs, values, _ = ranked
    columns = {0: (0,), 1: (1, 2), 2: (3, 4), 3: (5,), 4: (6,)}
    expected = np.full_like(values, np.nan)
    for stream, scores in scores_of(logs, labels):
        for row, p in p_values(scores, seed, stream).items():
            both = (1.0 - p, 2.0 * abs(p - 0.5))
            for column, value in zip(columns[stream], both, strict=False):
                expected[row - 1, column] = value
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)
    assert np.isfinite(values).any(axis=0).all()


def test_the_moments_of_a_class_are_those_of_its_values_that_are_there(ranked):
    X, labels, _, _, _, held = ranked
    for c in range(2):
        of = X[labels == c]
        counts = np.count_nonzero(~np.isnan(of), axis=0)
        assert held.moments.counts[c].tolist() == counts.tolist()
        np.testing.assert_allclose(held.moments.means[c], np.nanmean(of, axis=0), rtol=1e-12)
        variances = held.moments.squares[c] / counts
        np.testing.assert_allclose(variances, np.nanvar(of, axis=0), rtol=1e-12)


def test_a_recent_mean_weighs_each_value_by_its_age(ranked):
    X, *_, held = ranked
    for f in range(X.shape[1]):
        there = X[~np.isnan(X[:, f]), f]
        weights = (1 - 1 / 250) ** np.arange(len(there))[::-1] / 250
        assert held.recent[f] == pytest.approx(there @ weights, rel=1e-12)
