"""The encoder of named rows, against scikit-learn, the calendar and brute force."""

import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.refit.feature_encoder import FeatureEncoder
from online_svm.refit.scaling import Scaling, WindowScaling
from online_svm.stream.cells import FIXED_FROM, KINDS, cell

RNG = np.random.default_rng(0)


def table(*columns):
    """Return rows of cells from columns of values."""
    return np.array([[cell(v) for v in row] for row in zip(*columns, strict=True)])


def kinds(T, **options):
    return {f: one.kind for f, one in FeatureEncoder.fit(T, **options).reports().items()}


def kind(*values):
    return kinds(table(values)).get(0)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (("1", "0", "1"), "number"), (("yes", "no", "no", "yes"), "category"),
        (("true", "false"), "boolean"), ((True, False, None), "boolean"),
        (("2024-01-05", "2024-01-06", ""), "time"), (("007", "008", "007", "008"), "category"),
        (("", None, "NA", "null"), None), (("NA", "DE", "DE", "NA"), "category"),
        ((1, 2, "NA", "null", "?"), "number"), ((1, 2, "1e400", math.inf), "number"),
        ((1,) * 9 + ("red",), "number"), ((1,) * 8 + ("red",) * 2, "category"),
        (("one", "two", "three", "four", "four"), "text"),
        (("one", "two", "four", "four"), "category"),
        ((1, "2024-01-05", 1, "2024-01-05"), "category"),
    ],
)  # fmt: skip
def test_the_kind_of_a_column_follows_from_its_values_by_one_rule(values, found):
    assert kind(*values) == found


def test_a_kind_stays_once_it_was_seen_often_and_not_before():
    few, often = table([1] * (FIXED_FROM - 1)), table([1] * FIXED_FROM)
    changed = table(["a", "b"] * 50)
    assert kinds(changed, before=FeatureEncoder.fit(few)) == {0: "category"}
    assert kinds(changed, before=FeatureEncoder.fit(often)) == {0: "number"}
    assert (
        FeatureEncoder.fit(changed, before=FeatureEncoder.fit(often)).imputed(changed).tolist()
        == [1] * 100
    )


def test_a_declared_kind_is_that_of_its_column_whatever_its_values():
    T = table([1, 2, 3], ["a", "b", "c"], [1, 0, "yes"], [1e9, "2024-01-05", None])
    declared = ("category", "number", "boolean", "time")
    encoder = FeatureEncoder.fit(T, declared=declared)
    assert [one.kind for one in encoder.reports().values()] == list(declared)
    assert encoder.imputed(T).tolist() == [1, 1, 2]
    assert encoder.encode(T)[:, encoder.starts[2] : encoder.starts[3]].tolist() == [
        [1, 0],
        [0, 1],
        [1, 0],
    ]


def test_numbers_and_categories_are_those_of_scikit_learn():
    n = 300
    numbers = RNG.normal(3.0, 7.0, (n, 2))
    colours = RNG.choice(["red", "green", "blue"], n)
    sizes = RNG.choice(["s", "m", "l", "xl"], n)
    T = table(numbers[:, 0], colours, numbers[:, 1], sizes)
    found = Scaling.fit(T, standard=True, encoder=FeatureEncoder.fit(T)).transform(T)
    scaled = StandardScaler().fit_transform(numbers)
    for column, values in ((0, scaled[:, 0]), (4, scaled[:, 1])):
        assert np.allclose(found[:, column], values, rtol=0, atol=1e-14)
    for first, values in ((1, colours), (5, sizes)):
        onehot = OneHotEncoder(sparse_output=False).fit_transform(values[:, None])
        width = onehot.shape[1]
        own = found[:, first : first + width]
        centred = (onehot - onehot.mean(axis=0)) / np.sqrt(2.0)
        order = [int(np.argmin(np.abs(own[:, [j]] - centred).sum(axis=0))) for j in range(width)]
        assert sorted(order) == list(range(width))
        assert np.allclose(own, centred[:, order], rtol=0, atol=1e-14)


@pytest.mark.parametrize("share", [0.5, 0.01])
def test_a_category_that_differs_weighs_as_much_as_a_typical_difference_of_a_number(share):
    values = RNG.normal(size=2000)
    colours = np.where(np.arange(2000) < 2000 * share, "rare", "usual")
    T = table(values, colours)
    rows = Scaling.fit(T, standard=True, encoder=FeatureEncoder.fit(T)).transform(T)
    apart = rows[0, 1:] - rows[-1, 1:]
    assert np.isclose(apart @ apart, 1.0, rtol=1e-12, atol=0)
    # Half of the pairs of a number are further apart than .95.
    pairs = np.abs(rows[:1000, 0] - rows[1000:, 0])
    assert (pairs > 1.0).mean() == pytest.approx(2.0 * norm.sf(np.sqrt(0.5)), abs=0.04)


def test_a_missing_number_is_mean_and_indicator_a_missing_category_a_value():
    T = table([1, 3, None, 8], ["a", None, "b", "a"])
    encoder = FeatureEncoder.fit(T)
    assert encoder.encode(T)[:, 2:].tolist()[1] == [0, 0, 1]
    rows = Scaling.fit(T, standard=True, encoder=encoder).transform(T)
    assert rows[2, 0] == 0.0
    assert (rows[:, 1] > rows[0, 1]).tolist() == [False, False, True, False]
    assert rows[2, 1] - rows[0, 1] == pytest.approx(np.sqrt(0.5), rel=1e-15)


def test_an_unknown_category_is_none_of_them_and_the_rarest_share_one():
    values = ["a"] * 9 + ["b"] * 7 + ["c"] * 3 + ["d"] * 2 + ["e"] * 2
    encoder = FeatureEncoder.fit(table(values), max_categories=3)
    assert encoder.width == 3
    codes = {v: encoder.encode(table([v]))[0].tolist() for v in "abcdef"}
    assert codes["c"] == codes["d"] == codes["e"] == [0, 0, 1]
    assert sorted([codes["a"], codes["b"]]) == [[0, 1, 0], [1, 0, 0]]
    assert codes["f"] == [0, 0, 0]
    assert encoder.imputed(table(["f", None])).tolist() == [0, 1]


def test_half_a_million_categories_take_no_more_columns_than_the_bound():
    T = np.concatenate([table([f"u{i}" for i in range(20_000)] * 2), table(["often"] * 500)])
    assert FeatureEncoder.fit(T).width == 64
    many = np.tile(T[:50], (2, 300))
    assert FeatureEncoder.fit(many).width <= 8192


def test_a_time_is_where_it_stands_in_day_week_and_year():
    seconds = RNG.integers(-(10**10), 4 * 10**9, 400)
    moments = [datetime.fromtimestamp(int(s), UTC) for s in seconds]
    encoder = FeatureEncoder.fit(table([m.isoformat() for m in moments]))
    assert encoder.reports()[0].kind == "time"
    expected = []
    for m, s in zip(moments, seconds.tolist(), strict=True):
        turns = (
            (m.hour * 3600 + m.minute * 60 + m.second) / 86_400,
            m.isoweekday() % 7 / 7,
            (m.timetuple().tm_yday - 1) / 366,
        )
        waves = [wave(2.0 * math.pi * t) for t in turns for wave in (math.sin, math.cos)]
        expected.append([*waves, s / 86_400])
    found = encoder.encode(table([m.isoformat() for m in moments]))
    assert np.allclose(found, expected, rtol=1e-15, atol=4e-15)
    assert encoder.encode(table(seconds.tolist())).tolist() == found.tolist()


cells = st.one_of(
    st.sampled_from([None, "a", "b", "c", "", "NA", True, False, "2024-01-05", "1", 7, 1e400]),
    st.floats(-1e3, 1e3, allow_subnormal=False),
    st.text(max_size=2),
)
tables = st.integers(1, 4).flatmap(
    lambda d: st.lists(st.lists(cells, min_size=d, max_size=d), min_size=1, max_size=12)
)


@settings(max_examples=200, deadline=None)
@given(rows=tables, later=st.lists(st.lists(cells, max_size=6), max_size=5))
def test_any_rows_are_coded_alike_alone_together_and_after_a_restore(rows, later):
    T = np.array([[cell(v) for v in row] for row in rows])
    encoder = FeatureEncoder.fit(T, max_categories=3)
    again = FeatureEncoder.from_state(encoder.state())
    for row in [*rows, *later]:
        one = np.array([[cell(v) for v in row]]).reshape(1, -1)
        assert again.encode(one).tobytes() == encoder.encode(one).tobytes()
        assert encoder.encode(one).shape == (1, encoder.width)
    whole = encoder.encode(T)
    assert (
        np.concatenate([encoder.encode(T[i : i + 1]) for i in range(len(T))]).tobytes()
        == whole.tobytes()
    )
    assert (
        FeatureEncoder.fit(T[::-1].copy(), max_categories=3).state().keys()
        == encoder.state().keys()
    )
    assert not encoder.lacks(encoder, T)


@settings(max_examples=100, deadline=None)
@given(rows=tables, order=st.randoms(use_true_random=False))
def test_the_order_of_the_training_rows_changes_no_coding(rows, order):
    T = np.array([[cell(v) for v in row] for row in rows])
    shuffled = T[order.sample(range(len(T)), len(T))]
    one, other = FeatureEncoder.fit(T), FeatureEncoder.fit(shuffled)
    assert {k: v.tolist() for k, v in one.state().items()} == {
        k: v.tolist() for k, v in other.state().items()
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("places", [9]), ("gaps", [5]), ("starts", [0, 0]), ("starts", [0]), ("firsts", [0, 9]),
        ("kinds", [len(KINDS)]), ("sources", [-1]), ("firsts", [1, 1]), ("starts", [3, 1]),
    ],
)  # fmt: skip
def test_a_stored_coding_that_contradicts_itself_is_refused(name, value):
    state = FeatureEncoder.fit(table(["a", "b", "a", "b"])).state()
    state[name] = np.array(value * (len(state[name]) if len(value) == 1 else 1), dtype=np.int64)
    if name == "starts" and value == [0]:
        state[name] = np.array([0])
    with pytest.raises((InvalidSnapshot, ValueError)):
        FeatureEncoder.from_state(state)


def test_rows_of_numbers_alone_are_their_own_coding():
    T = RNG.normal(size=(50, 3))
    assert FeatureEncoder.fit(T).encode(T) is T


@pytest.mark.parametrize(("count", "anew"), [(999, [*range(1, 31)]), (1000, [1, 10, 20, 30])])
def test_columns_that_come_for_ever_make_the_kernels_anew_at_every_tenth_refit(count, anew):
    scaling, trains = WindowScaling(ProtocolConfig()), np.ones(count, dtype=bool)
    found = []
    for refit in range(1, 31):
        T = table([f"c{i % (refit + 1)}" for i in range(count)])
        if scaling.is_due(trains, refit, T, np.arange(1)):
            scaling.fit(T, trains)
            found.append(refit)
            assert scaling.scaling.encoder.width == refit + 1
    assert found == anew


def test_a_kind_stays_too_where_it_was_seen_often_after_the_coding_was_fitted():
    config, order = ProtocolConfig(scale="none"), np.arange(1)
    few, often = table([1] * (FIXED_FROM - 1)), table([1] * FIXED_FROM)
    changed = table(["a", "b"] * 50)
    for between, expected in ((few, "category"), (often, "number")):
        scaling = WindowScaling(config)
        for refit, T in enumerate((few, between, changed), 1):
            trains = np.ones(len(T), dtype=bool)
            if scaling.is_due(trains, refit, T, order):
                scaling.fit(T, trains)
        assert [one.kind for one in scaling.scaling.encoder.reports().values()] == [expected]
