"""Boosted trees, against the same method written out in plain Python: equal bytes."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows_by_hand import GOLDEN, WORD, mixed

from online_svm.compiled.elementary import exps, log, logistics, logs
from online_svm.errors import InvalidSnapshot
from online_svm.refit.committee.boosting import (
    MEMBER,
    NEW_BINS_EVERY,
    Boosting,
    Sample,
    TreeMachine,
    TreeModel,
    grow_more,
    grow_two,
)
from online_svm.refit.committee.forest import (
    BINS,
    DEPTH,
    LEAVES,
    MAX_LEAF,
    NEVER,
    NODES,
    Forest,
    RankedCuts,
    add_leaves,
    bins_of,
    edges_of,
)

UNIT, MOST = 2.0**-11, 32767


def rounded(values):
    return np.floor(values + 0.5).astype(np.int64)


class Plain:
    """Newton boosting by lists of rows: each node is a mask, gradient and curvature stand apart."""

    def __init__(self, X, codes, penalties, seed, number, by=MEMBER, trees=None, weights=None):
        self.key = mixed(mixed((seed + GOLDEN) & WORD) + number & WORD)
        self.X, self.codes, classes = X, codes, len(penalties)
        self.by, self.uniform = by, weights is not None
        self.decisions, usual = (1, 60) if classes == 2 else (classes, 120)
        counts = np.bincount(codes, minlength=classes)
        whole = sum(c * p for c, p in zip(counts.tolist(), penalties.tolist(), strict=True))
        self.weights = penalties[codes] * (len(codes) / whole) if weights is None else weights
        self.unit = 2.0 ** max(0, math.ceil(math.log2(2.0**29 / len(codes))))
        self.edges = [self.edges_of(column) for column in X.T]
        self.bins = np.array(
            [[sum(e < v for e in edges) for v in column]
             for edges, column in zip(self.edges, X.T, strict=True)]
        )  # fmt: skip
        self.totals = np.zeros((len(codes), self.decisions), dtype=np.int64)
        self.base = self.frequencies(classes)
        self.totals += rounded(self.base / UNIT)
        self.trees = [self.tree(t) for t in range(trees or usual)]

    def edges_of(self, column):
        values = sorted(set(column.tolist()))
        if len(values) <= BINS:
            return [0.5 * a + 0.5 * b for a, b in itertools.pairwise(values)]
        ordered = sorted(column.tolist())
        firsts = [i for i in range(1, len(ordered)) if ordered[i] > ordered[i - 1]]
        found = set()
        for k in range(1, BINS):
            after = [i for i in firsts if i >= k * len(ordered) // BINS]
            found.add(after[0] if after else firsts[-1])
        return [0.5 * ordered[i - 1] + 0.5 * ordered[i] for i in sorted(found)]

    def frequencies(self, classes):
        n, held = len(self.codes), [0.0] * classes
        for code, weight in zip(self.codes.tolist(), self.weights.tolist(), strict=True):
            held[code] += weight
        if classes == 2:
            return np.array([log((held[1] + 1.0) / (n - held[1] + 1.0))])
        return np.array([log((h + 1.0) / (n + classes)) for h in held])

    def probabilities(self):
        if self.decisions == 1:
            return logistics(self.totals * UNIT)
        terms = exps((self.totals - self.totals.max(axis=1, keepdims=True)) * UNIT)
        whole = np.zeros(len(terms))
        for k in range(self.decisions):  # in their order
            whole += terms[:, k]
        return terms / whole[:, None]

    def tree(self, t):
        p, scale = self.probabilities(), self.weights * self.unit
        n = len(scale)
        if self.decisions == 1:
            targets = self.codes[:, None].astype(float)
            g, h = rounded(scale * (p[:, 0] - self.codes)), rounded(scale * (p * (1 - p))[:, 0])
        else:
            targets = (self.codes[:, None] == np.arange(self.decisions)).astype(float)
            signs = [1.0 if self.drawn(t, NODES, k) >> 63 else -1.0 for k in range(self.decisions)]
            gradient, curvature = -np.array(signs)[self.codes], np.zeros(n)
            for k, sign in enumerate(signs):
                gradient += sign * p[:, k]
                curvature += p[:, k] * (1.0 - p[:, k])
            g, h = rounded(scale * gradient), rounded(scale * curvature)
        cuts, rows = {}, {0: list(range(n))}
        for node in range(NODES):
            cuts[node] = self.best_cut(t, node, rows[node], g, h)
            feature, cut = cuts[node]
            rows[2 * node + 1] = [i for i in rows[node] if self.bins[feature, i] <= cut]
            rows[2 * node + 2] = [i for i in rows[node] if self.bins[feature, i] > cut]
        steps = np.zeros((LEAVES, self.decisions), dtype=np.int64)
        grads = rounded(scale[:, None] * (p - targets))
        curves = rounded(scale[:, None] * (p * (1.0 - p)))
        for leaf in range(LEAVES):
            held = rows[NODES + leaf]
            if not held:
                continue
            bottom = curves[held].sum(axis=0) + self.by.ridge * self.unit
            ratio = -self.by.shrinkage * grads[held].sum(axis=0) / bottom
            first = self.base if t == 0 else 0.0
            steps[leaf] = np.clip(rounded((first + ratio) / UNIT), -MOST, MOST)
            self.totals[held] += steps[leaf] - (rounded(self.base / UNIT) if t == 0 else 0)
        return cuts, steps

    def drawn(self, tree, node, trial):
        return mixed((self.key + GOLDEN * (((tree * LEAVES + node) << 32) + trial)) & WORD)

    def best_cut(self, t, node, rows, g, h):
        def gain(part):
            total = float(g[part].sum())
            return total * total / (float(h[part].sum()) + self.by.ridge * self.unit)

        best = 0, BINS - 1
        least = self.by.min_curvature * self.unit
        if h[rows].sum() < 2.0 * least:
            return best
        most = gain(rows)
        # A node holds its rows in the order of the sample.
        for trial in range(self.by.cuts):
            z = self.drawn(t, node, trial)
            feature = (z >> 32) * len(self.bins) >> 32
            cut = int(self.bins[feature, rows[(z & 0xFFFFFFFF) * len(rows) >> 32]])
            if self.uniform and trial % 2 and self.bins[feature].max():
                cut = (z & 0xFFFFFFFF) * int(self.bins[feature].max()) >> 32
            left = [i for i in rows if self.bins[feature, i] <= cut]
            right = [i for i in rows if self.bins[feature, i] > cut]
            if min(h[left].sum(), h[right].sum()) < least:
                continue
            both = gain(left) + gain(right)
            if both > most:
                most, best = both, (feature, cut)
        return best

    def score(self, x):
        total = np.zeros(self.decisions, dtype=np.int64)
        below = [sum(e < v for e in edges) for edges, v in zip(self.edges, x, strict=True)]
        for cuts, steps in self.trees:
            node = 0
            for _ in range(DEPTH):
                feature, cut = cuts[node]
                node = 2 * node + (2 if below[feature] > cut else 1)
            total += steps[node - NODES]
        if self.decisions == 1:
            return total * UNIT
        apart = (total - total.max()) * UNIT
        terms, others = exps(apart), np.zeros(self.decisions)
        for k in range(self.decisions):
            for j in range(self.decisions):
                if j != k:
                    others[k] += terms[j]
        return apart - logs(np.maximum(others, 1e-300))


def sample(n, d, classes, seed=0):
    """Rows of numbers and of few values, with a rule of cuts and some noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, ::3] = rng.integers(0, 4, size=X[:, ::3].shape)
    codes = (X[:, 0] > 1).astype(np.int64) + (X[:, -1] > 0) * (X[:, 0] < 3)
    codes = np.where(rng.uniform(size=n) < 0.1, rng.integers(0, classes, n), codes % classes)
    return X, codes


def fitted(X, codes, penalties, seed=3, number=250):
    machine = TreeMachine(len(penalties), seed)
    machine.fit(X, codes, penalties, number)
    return machine


@pytest.mark.parametrize(
    ("n", "d", "penalties"),
    [
        (2, 1, [1.0, 1.0]), (12, 3, [1.0, 1.0]), (150, 5, [1.0, 7.0]), (300, 2, [2.0, 2.0]),
        (9, 2, [1.0, 1.0, 1.0]), (110, 4, [1.0, 0.5, 3.0, 1.0]),
    ],
)  # fmt: skip
def test_the_trees_are_those_of_the_method_written_out(n, d, penalties):
    X, codes = sample(n, d, len(penalties))
    penalties = np.array(penalties)
    machine, plain = fitted(X, codes, penalties), Plain(X, codes, penalties, 3, 250)
    for t, (cuts, steps) in enumerate(plain.trees):
        assert machine.forest.features[t].tolist() == [cuts[node][0] for node in range(NODES)]
        assert machine.forest.bins[t].tolist() == [cuts[node][1] for node in range(NODES)]
        np.testing.assert_array_equal(machine.forest.leaves[t], steps)
    asked = np.concatenate([X, sample(40, d, 2, seed=9)[0], np.full((1, d), 1e300)])
    np.testing.assert_array_equal(machine.model().scores(asked), [plain.score(x) for x in asked])


@pytest.mark.parametrize(
    ("n", "d", "classes"), [(150, 5, 2), (40, 1, 2), (110, 4, 4), (900, 6, 2), (500, 7, 3)]
)
@pytest.mark.parametrize("by", [Boosting(0.08, 5.0, 1.0, 32), Boosting(0.3, 0.25, 0.1, 4)])
def test_other_constants_weights_and_uniform_cuts_written_out(n, d, classes, by):
    X, codes = sample(n, d, classes)
    X[:, 0] = np.where(X[:, 0] > 1, X[:, 0], 0.0)  # mostly one value
    weights = 0.5 ** (np.arange(n)[::-1] / 60.0)
    weights /= weights.mean()
    plain = Plain(X, codes, np.ones(classes), 3, 250, by, 7, weights)
    bins = bins_of(X, edges_of(X))
    forest = Forest(
        np.zeros((7, NODES), dtype=np.int32),
        np.zeros((7, NODES), dtype=np.uint8),
        np.zeros((7, LEAVES, plain.decisions), dtype=np.int16),
    )
    grow = grow_two if classes == 2 else grow_more
    grow(Sample.of(bins, codes, weights, uniform=True), by, 3, 250, forest)
    for t, (cuts, steps) in enumerate(plain.trees):
        assert forest.features[t].tolist() == [cuts[node][0] for node in range(NODES)]
        assert forest.bins[t].tolist() == [cuts[node][1] for node in range(NODES)]
        np.testing.assert_array_equal(forest.leaves[t], steps)


@given(st.data())
def test_bins_are_the_edges_below_a_value_and_none_is_beyond_all_cuts(data):
    values = st.floats(-1e300, 1e300) | st.integers(-2, 2).map(float)
    n = data.draw(st.integers(1, 30))
    X = np.array(data.draw(st.lists(values, min_size=n, max_size=n)))[:, None]
    edges = edges_of(X)
    expected = (edges[0] < X).sum(axis=1)
    np.testing.assert_array_equal(bins_of(X, edges)[0], expected)
    assert (np.diff(edges[0]) >= 0).all()
    held = len(np.unique(X))
    assert len(np.unique(expected)) == held or np.isclose(np.diff(np.unique(X)), 0.0).any()


@pytest.mark.parametrize("classes", [2, 4])
def test_rows_in_another_order_give_the_same_sums_and_so_the_same_steps(classes):
    """Rows are drawn by their place, so all rows are alike but for their class."""
    codes = np.random.default_rng(1).integers(0, classes, 500)
    weights = np.linspace(0.1, 3.3, classes)
    X = np.zeros((500, 2))
    here, there = (fitted(X, y, weights).forest for y in (codes, np.sort(codes)))
    for a, b in zip(here, there, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_score_has_the_same_bits_in_any_batch_and_restored(classes):
    X, codes = sample(200, 4, classes)
    machine = fitted(X, codes, np.ones(classes))
    model = machine.model()
    one_by_one = np.concatenate([model.scores(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_array_equal(model.scores(X), one_by_one)
    again = TreeModel.from_state(model.state())
    again.check_width(4)
    np.testing.assert_array_equal(again.scores(X), one_by_one)
    with pytest.raises(ValueError, match="features"):
        again.check_width(int(model.features.max()))
    machine.fits = NEW_BINS_EVERY - 1
    restored = TreeMachine(classes, 3).restore(machine.state())
    restored.check_width(4)
    with pytest.raises(ValueError, match="edges"):
        restored.check_width(5)
    for number in (500, 750):
        before = machine.edges
        for other in (restored, machine):
            other.fit(X[20:], codes[20:], np.ones(classes), number)
        assert (machine.edges is before) == (number == 500)
        np.testing.assert_array_equal(restored.edges, machine.edges)
    np.testing.assert_array_equal(restored.model().scores(X), machine.model().scores(X))


@pytest.mark.parametrize("n", [5, 150])
def test_the_leaves_are_those_of_a_walk_down_each_tree(n):
    rng = np.random.default_rng(0)
    features = rng.choice([0, 2, 5], (3, NODES)).astype(np.int32)
    cuts = rng.normal(size=(3, NODES)).round(1)  # some are equal, and equal values
    cuts[rng.random((3, NODES)) < 0.2], features[0, 0], cuts[0, 0] = NEVER, 1, NEVER
    leaves = rng.integers(-MAX_LEAF, MAX_LEAF, (3, LEAVES, 2)).astype(np.int16)
    X = rng.normal(size=(n, 6)).round(1)
    X[0], X[1] = np.nan, 1e300
    expected = np.ones((n, 2), dtype=np.int64)
    for row, total in zip(X, expected, strict=True):
        for own, of_nodes, steps in zip(features, cuts, leaves, strict=True):
            node = 0
            while node < NODES:
                node = 2 * node + (2 if row[own[node]] > of_nodes[node] else 1)
            total += steps[node - NODES]
    totals = np.ones((n, 2), dtype=np.int64)
    add_leaves(RankedCuts.of(features, cuts), leaves, X, totals)
    np.testing.assert_array_equal(totals, expected)


def test_a_column_has_at_most_255_cuts():
    cuts, features = np.arange(5.0 * NODES).reshape(5, NODES), np.zeros((5, NODES), dtype=np.int32)
    assert len(RankedCuts.of(features, np.where(cuts < 300, cuts % 255, NEVER)).values) == 255
    with pytest.raises(ValueError, match="cuts"):
        RankedCuts.of(features, cuts % 256)


def test_a_state_with_a_feature_that_no_row_has_is_refused():
    X, codes = sample(100, 4, 2)
    state = fitted(X, codes, np.ones(2)).state()
    state["features"][0, 0] = 4
    with pytest.raises(InvalidSnapshot, match="features"):
        TreeMachine(2, 3).restore(state)


def test_bins_are_made_anew_when_there_are_twice_as_many_rows():
    X, codes = sample(100, 4, 2)
    machine = fitted(X[:50], codes[:50], np.ones(2))
    for n, is_new in ((60, False), (99, False), (100, True)):
        before = machine.edges
        machine.fit(X[:n], codes[:n], np.ones(2), n)
        assert (machine.edges is not before) == is_new


def test_one_class_alone_gives_finite_scores_that_speak_for_it():
    X = sample(50, 2, 2)[0]
    (score,) = fitted(X, np.ones(50, dtype=np.int64), np.ones(2)).model().scores(X[:1])[0]
    assert 2.0 < score < 20.0
    of_three = fitted(X, np.full(50, 2), np.ones(3)).model().scores(X[:1])[0]
    assert np.isfinite(of_three).all()
    assert of_three.argmax() == 2
