"""Ranks of the values of categories, against shares as fractions, sorted in plain Python."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.committee.boosting import TreeMachine, TreeModel
from online_svm.refit.committee.forest import BINS, bins_of
from online_svm.refit.committee.ranks import EDGES, MAX_ORDERS, MAX_RANK, Ranks
from online_svm.refit.feature_encoder import FeatureEncoder
from online_svm.refit.learner import Learner
from online_svm.refit.scaling import Scaling
from online_svm.storage.state import pack, unpack
from online_svm.stream.cells import cell


def ranks_in_python(values, codes, count, k):
    """Return the rank of each of `count` values by the share of class k; 0 stands for no value."""
    n = len(codes)
    share = Fraction(sum(c == k for c in codes), n)
    shares = [(share, 0)]
    for value in range(1, count + 1):
        own = [c for v, c in zip(values, codes, strict=True) if v == value]
        shares.append(((sum(c == k for c in own) + share) / Fraction(len(own) + 1), value))
    order = [value for _, value in sorted(shares)]
    return [order.index(value) - order.index(0) for value in range(count + 1)]


def columns(values, count, mean):
    """Return a column of 0 and 1 for each value but 0, centred, divided by root two."""
    return ((np.asarray(values)[:, None] == np.arange(1, count + 1)) - mean) / np.sqrt(2.0)


@given(st.data())
def test_ranks_are_those_of_the_shares_as_fractions(data):
    classes, count = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 7))
    n = data.draw(st.sampled_from([8, 16, 32]))  # so that shares are numbers of 53 bits
    values = data.draw(st.lists(st.integers(0, count), min_size=n, max_size=n))
    codes = data.draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))
    mean = data.draw(st.sampled_from([0.0, 0.25, 0.5]))
    X = np.hstack([np.arange(n)[:, None] + 0.5, columns(values, count, mean)])
    categories = np.array([-1] + [0] * count)
    ranks = Ranks.fit(X, np.array(codes), classes, categories)
    often = sorted(range(classes), key=lambda k: (-codes.count(k), k))[:MAX_ORDERS]
    seen = ranks.features(X)
    np.testing.assert_array_equal(seen[:, 0], X[:, 0])
    for order, k in enumerate([1] if classes == 2 else often):
        expected = ranks_in_python(values, codes, count, k)
        assert seen[:, 1 + order].tolist() == [expected[value] for value in values]
    assert seen.shape[1] == ranks.width == 2 + order
    again = Ranks.from_state(ranks.state())
    np.testing.assert_array_equal(again.features(X), seen)


def test_ranks_of_a_thousand_categories_fit_the_bins_in_order():
    values = np.repeat(np.arange(1, 1001), 10)
    rng = np.random.default_rng(0)
    codes = (rng.uniform(size=len(values)) < rng.uniform(size=1001)[values]).astype(np.int64)
    X = columns(values, 1000, 0.001)
    ranks = Ranks.fit(X, codes, 2, np.zeros(1000, dtype=np.int64))
    seen = ranks.features(X)[:, 0]
    assert 0 not in seen
    assert MAX_RANK == np.abs(seen).max() == BINS // 2 - 1
    shares = np.array([codes[values == value].mean() for value in range(1, 1001)])
    of_value = seen[::10]
    assert (np.diff(of_value[np.argsort(shares, kind="stable")]) >= 0).all()
    (bins,) = bins_of(seen[:, None], EDGES[None])
    np.testing.assert_array_equal(bins, seen + MAX_RANK)


def sample(n, classes, seed=0):
    """Rows of a number and two categories, whose values tell the class."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 25, n), rng.integers(0, 4, n)
    codes = np.where(second == 3, classes - 1, first % classes)
    codes = np.where(rng.uniform(size=n) < 0.1, rng.integers(0, classes, n), codes)
    X = np.hstack([columns(first, 24, 0.04), rng.normal(size=(n, 1)), columns(second, 3, 0.25)])
    return X, codes, np.array([0] * 24 + [-1] + [1] * 3)


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_the_trees_of_categories_are_those_of_their_ranks_as_numbers(classes):
    X, codes, categories = sample(200, classes)
    machine = TreeMachine(classes, 3, categories)
    machine.fit(X, codes, np.ones(classes), 250)
    seen = Ranks.fit(X, codes, classes, categories).features(X)
    of_numbers = TreeMachine(classes, 3)
    of_numbers.fit(seen, codes, np.ones(classes), 250)
    np.testing.assert_array_equal(machine.forest.features, of_numbers.forest.features)
    np.testing.assert_array_equal(machine.forest.leaves, of_numbers.forest.leaves)
    scores = machine.model().scores(X)
    np.testing.assert_array_equal(scores, of_numbers.model().scores(seen))
    one_by_one = np.concatenate([machine.model().scores(x[None]) for x in X])
    np.testing.assert_array_equal(scores, one_by_one)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_machine_of_categories_goes_on_from_its_state(classes):
    X, codes, categories = sample(200, classes)
    machine = TreeMachine(classes, 3, categories)
    machine.fit(X, codes, np.ones(classes), 250)
    restored = TreeMachine(classes, 3, categories).restore(machine.state())
    restored.check_width(28)
    expected = machine.model().scores(X)
    np.testing.assert_array_equal(restored.model().scores(X), expected)
    stored = TreeModel.from_state(machine.model().state())
    np.testing.assert_array_equal(stored.scores(X), expected)
    for other in (restored, machine):
        other.fit(X[20:], codes[20:], np.ones(classes), 500)
    np.testing.assert_array_equal(restored.model().scores(X), machine.model().scores(X))
    for not_its_own in (None, np.roll(categories, 1), categories * 0, categories[::-1].copy()):
        with pytest.raises(InvalidSnapshot, match="fit"):
            TreeMachine(classes, 3, not_its_own).restore(machine.state())
    for width in (27, 29):
        with pytest.raises(ValueError, match="places"):
            restored.check_width(width)
        with pytest.raises(ValueError, match="places"):
            stored.check_width(width)


DAMAGED = {
    "places": [
        [-1], [1 << 30], [0, 0, 0, 5], [1, 2, 2, 4], [0, 1, 2, 3], [0, 1, 1, 2], [0, 0, 0, 2],
    ],
    "limits": [[np.nan], [np.inf]],
    "ranks": [[MAX_RANK + 1], [0, -MAX_RANK - 1, 1, 0], [0, 1, 0, 0]],
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_ranks_that_contradict_themselves_are_refused(name):
    """A number, the two values of a category in three orders, and a number."""
    state = {
        "places": np.array([0, 1, 1, 4], dtype=np.int32), "limits": np.zeros(4),
        "ranks": np.array([[0] * 3, [-1] * 3, [1] * 3, [0] * 3], dtype=np.int16),
    }  # fmt: skip
    assert Ranks.from_state(state).width == 5
    for value in DAMAGED[name]:
        changed = np.resize(value, (4, 1) if name == "ranks" else 4).astype(state[name].dtype)
        shaped = np.broadcast_to(changed, state[name].shape).copy()
        with pytest.raises(ValueError, match=r"does not fit|out of range"):
            Ranks.from_state(state | {name: shaped})
    partly = state["ranks"].copy()
    partly[1, 1] = 0
    with pytest.raises(ValueError, match="ranks"):
        Ranks.from_state(state | {"ranks": partly})


def cells(n):
    """Return rows of a number, a category, a boolean and a time, some with gaps; and codes."""
    rng = np.random.default_rng(5)
    towns, codes = rng.integers(0, 9, n), rng.integers(0, 3, n)
    codes = np.where(rng.uniform(size=n) < 0.8, towns % 3, codes)
    rows = [
        [rng.normal(), cell(f"town {town}") if i % 7 else np.nan, cell(bool(town % 2)),
         cell(f"2024-01-{1 + i % 28:02}")]
        for i, town in enumerate(towns.tolist())
    ]  # fmt: skip
    return np.array(rows), codes


def test_a_coding_says_which_columns_are_of_a_category():
    encoder = FeatureEncoder.fit(cells(300)[0])
    of_town = [0] * 10  # nine and the gaps
    assert encoder.categories.tolist() == [-1, *of_town, 1, 1] + [-1] * 7
    assert FeatureEncoder.fit(cells(300)[0][:, [0, 3]]).categories is None


CONFIG = PredictorConfig(
    classes=("0", "1", "2"), committee=("trees", "logistic"), refit_every=60, window=300,
    monitors="off",
)  # fmt: skip


def predicted(X, codes, config=CONFIG):
    predictor = OnlinePredictor(config)
    schema = predictor.schema.of_features(("a", "b", "c", "d"), 4)
    return predictor, predictor.step_many(X, [str(code) for code in codes], schema=schema)


def test_a_feed_of_categories_goes_on_from_a_snapshot_and_refuses_other_ranks():
    X, codes = cells(900)
    whole, _ = predicted(X, codes)
    half, _ = predicted(X[:500], codes[:500])
    again = OnlinePredictor(CONFIG)
    again.restore(half.snapshot())
    assert again.snapshot() == half.snapshot()
    again.step_many(X[500:], [str(code) for code in codes[500:]], schema=half.schema)
    assert again.snapshot() == whole.snapshot()
    state = whole._refitter.state()
    own, parts = unpack(state)
    assert Learner.from_state(state, CONFIG).state() == state
    ranks = parts["committee.0.ranks.ranks"]
    for changed in (ranks * 0, ranks + 1):
        with pytest.raises(InvalidSnapshot, match="does not fit"):
            Learner.from_state(pack(own, parts | {"committee.0.ranks.ranks": changed}), CONFIG)
    without = {name: part for name, part in parts.items() if ".ranks." not in name}
    with pytest.raises(InvalidSnapshot, match="ranks"):
        Learner.from_state(pack(own, without), CONFIG)


def test_a_feature_that_became_constant_still_separates_other_values():
    encoder = FeatureEncoder.fit(np.array([[cell("a")], [cell("b")]] * 10))
    scaling = Scaling.fit(np.array([[cell("a")], [cell("b")]] * 10), standard=True, encoder=encoder)
    only_a = scaling.transform(np.full((4, 1), cell("a")))
    ranks = Ranks.fit(only_a, np.array([1, 1, 1, 0]), 2, encoder.categories)
    asked = scaling.transform(np.array([[cell("a")], [cell("b")], [cell("c")]]))
    one, other, unseen = ranks.features(asked).ravel().tolist()
    assert sorted([one, other]) == [1.0, 2.0]
    assert unseen == 0.0
