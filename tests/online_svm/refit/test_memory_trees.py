"""The memory's forests against the committee's: equal where they do the same."""

import numpy as np
import pytest
from memory_forests import probabilities

from online_svm.compiled.elementary import exps, logistics
from online_svm.memory.encoder import Edges
from online_svm.refit.committee.boosting import Sample, TreeModel, grow_more, grow_two
from online_svm.refit.committee.forest import LEAVES, NODES, Forest, bins_of, edges_of
from online_svm.refit.committee.ranks import EDGES, Ranks
from online_svm.refit.memory_trees import LONG, MID, FitTask, fit

KINDS = {kind.name: kind._replace(trees_of_two=9, trees_of_more=9) for kind in (LONG, MID)}


def data(n_classes, n=400):
    """Return two numbers and a category of 12 values, and their classes."""
    rng = np.random.default_rng(n_classes)
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(2, 14, n)])
    codes = ((X[:, 0] > 0) + X[:, 2].astype(int) % n_classes) % n_classes
    noise = rng.random(n) < 0.2
    return X, np.where(noise, rng.integers(0, n_classes, n), codes)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_forest_is_that_of_the_committee_on_one_column_a_value(kind, n_classes):
    X, codes = data(n_classes)
    are_categories = np.array([False, False, True])
    edges = Edges.fit(X, are_categories)
    bins = edges.bins(X, are_categories)
    task = FitTask(kind, bins, edges.values, are_categories, codes, n_classes, 3, 77)
    found = probabilities(fit(task), X)

    values = np.unique(X[:, 2])
    one_hot = np.column_stack([X[:, :2], X[:, 2:] == values])
    categories = np.array([-1, -1] + [0] * len(values))
    ranks = Ranks.fit(one_hot, codes, n_classes, categories)
    features = ranks.features(one_hot)
    own = edges_of(features)
    own[ranks.are_ranks] = EDGES
    weights = np.ones(len(X))
    if kind.half_life is not None:
        weights = 2.0 ** (-np.arange(len(X))[::-1] / kind.half_life)
    forest = Forest(
        np.zeros((9, NODES), dtype=np.int32),
        np.zeros((9, NODES), dtype=np.uint8),
        np.zeros((9, LEAVES, 1 if n_classes == 2 else n_classes), dtype=np.int16),
    )
    binned = bins_of(features, own)
    sample = Sample.of(binned, codes, weights / weights.mean(), uniform=True)
    grow = grow_two if n_classes == 2 else grow_more
    grow(sample, kind.boosting, 3, 77, forest)
    cuts = np.column_stack([own, np.full(len(own), np.finfo(float).max)])
    cuts = cuts[forest.features, forest.bins]
    odds = TreeModel(forest.features, cuts, forest.leaves, ranks).scores(one_hot)
    if n_classes == 2:
        expected = np.column_stack([1 - logistics(odds[:, 0]), logistics(odds[:, 0])])
    else:
        expected = 1.0 / (1.0 + exps(-np.abs(odds)))
        expected = np.where(odds >= 0, expected, 1.0 - expected)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_class_that_the_trees_do_not_know_keeps_its_probability():
    """The others share the rest; two classes that fell into one column are one."""
    X, codes = data(3)
    are_categories = np.array([False, False, True])
    edges = Edges.fit(X, are_categories)
    bins = edges.bins(X, are_categories)
    trees = fit(FitTask(KINDS["long"], bins, edges.values, are_categories, codes, 3, 0, 1))
    own, otherwise = probabilities(trees, X), np.tile([0.1, 0.2, 0.3, 0.4], (len(X), 1))
    said = np.empty(otherwise.shape)
    trees.write(X, np.array([3, 0, 3]), otherwise, said)
    rest = 1.0 - 0.2 - 0.3
    expected = [rest * own[:, 1], otherwise[:, 1], otherwise[:, 2], rest * (own[:, 0] + own[:, 2])]
    np.testing.assert_allclose(said, np.column_stack(expected), atol=1e-15)


def test_weights_halve_at_the_half_life_and_light_rows_are_left_out():
    weights = MID.weights(10_001)
    np.testing.assert_allclose(weights[-5001] / weights[-1], 0.5, rtol=1e-12)
    np.testing.assert_allclose(weights.mean(), 1.0, rtol=1e-12)
    size = MID.size(10**6)
    assert 0.1 <= 0.5 ** ((size - 1) / 5000) < 0.1002
    assert MID.size(700) == 700
    assert LONG.size(10**6) == 10**6
    np.testing.assert_array_equal(LONG.weights(3), 1.0)
