"""Scaling, against scikit-learn's scaler, whose numbers it gives to the last bit."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import StandardScaler

from online_svm.refit.scaling import Scaling, mean_and_width

VALUES = st.floats(-1e100, 1e100, allow_subnormal=False)


def assert_same_bits(X):
    mean, width = mean_and_width(X)
    scaler = StandardScaler().fit(X)
    assert mean.tobytes() == np.asarray(scaler.mean_).tobytes()
    assert width.tobytes() == np.asarray(scaler.scale_).tobytes()


@given(arrays(np.float64, st.tuples(st.integers(1, 40), st.integers(2, 6)), elements=VALUES))
@example(np.array([[-0.0, -0.0]]))
def test_mean_and_width_are_those_of_scikit_learn_for_any_values(X):
    assert_same_bits(X)


@given(arrays(np.float64, st.tuples(st.integers(1, 40), st.integers(1, 6)), elements=VALUES))
def test_mean_and_width_of_a_column_do_not_depend_on_the_columns_beside_it(X):
    mean, width = mean_and_width(X)
    for j in range(X.shape[1]):
        alone = mean_and_width(X[:, j : j + 1])
        assert [each.tobytes() for each in alone] == [
            mean[j : j + 1].tobytes(),
            width[j : j + 1].tobytes(),
        ]


@pytest.mark.parametrize("share_missing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_mean_and_width_are_those_of_scikit_learn_for_many_rows(share_missing, scale):
    generator = np.random.default_rng(0)
    X = scale * (generator.normal(size=(1400, 20)) + 3.0 * generator.normal(size=20))
    X[generator.random(X.shape) < share_missing] = np.nan
    assert_same_bits(X)


def test_a_constant_column_is_only_centred_though_rounding_gives_it_a_variance():
    X = np.full((1000, 2), 0.1)
    X[:, 1] = 1e8 + 0.1
    assert_same_bits(X)
    assert mean_and_width(X)[1].tolist() == [1.0, 1.0]


def test_without_scaling_only_missing_values_change():
    X = np.array([[1.0, 4.0, np.nan], [3.0, np.nan, np.nan]])
    scaling = Scaling.fit(X, standard=False)
    assert scaling.transform(X).tolist() == [[1.0, 4.0, 0.0], [3.0, 4.0, 0.0]]
