import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from online_svm.compiled.kernels import Kernel
from online_svm.errors import InvalidConfig

KERNELS = [
    Kernel("rbf", gamma=0.3),
    Kernel("linear"),
    Kernel("poly", gamma=0.5, degree=3, coef0=1.0),
]


def points(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (KERNELS[0], lambda U, V: rbf_kernel(U, V, gamma=0.3)),
        (KERNELS[1], linear_kernel),
        (KERNELS[2], lambda U, V: polynomial_kernel(U, V, degree=3, gamma=0.5, coef0=1.0)),
    ],
)
def test_kernel_matrices_agree_with_scikit_learn(kernel, reference):
    U, V = points(40, 7), points(300, 7, seed=1)
    np.testing.assert_allclose(kernel(U, V), reference(U, V), rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
@given(n=st.integers(1, 300), d=st.integers(1, 9), seed=st.integers(0, 1000), data=st.data())
@settings(max_examples=25, deadline=None, derandomize=True)
def test_a_kernel_value_has_the_same_bits_wherever_its_point_is_stored(kernel, n, d, seed, data):
    X, x = points(n, d, seed), points(1, d, seed + 1)
    whole = kernel(x, X)[0]
    first = data.draw(st.integers(0, n - 1))
    stop = data.draw(st.integers(first + 1, n))
    np.testing.assert_array_equal(kernel(x, X[first:stop])[0], whole[first:stop])
    shifted = np.concatenate([points(first, d, 7), X])
    np.testing.assert_array_equal(kernel(x, shifted)[0, first:], whole)
    one_by_one = [kernel(x, u[None])[0, 0] for u in X]
    np.testing.assert_array_equal(one_by_one, whole)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_symmetric_and_fits_its_stored_type(kernel):
    U, V = points(50, 5), points(200, 5, seed=1)
    values = kernel(U, V)
    np.testing.assert_array_equal(values, kernel(V, U).T)
    np.testing.assert_array_equal(kernel.diagonal(V), np.diag(kernel(V, V)))
    np.testing.assert_array_equal(values.astype(kernel.dtype).astype(np.float64), values)


@pytest.mark.parametrize("d", [1, 3, 4, 7, 50])
def test_equal_points_have_a_value_of_exactly_one(d):
    X = 1e8 * points(5, d)
    np.testing.assert_array_equal(np.diag(Kernel("rbf", gamma=3.0)(X, X)), np.ones(5))


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ({"name": "cosine"}, "kernel"), ({"gamma": 0.0}, "gamma"), ({"gamma": math.inf}, "gamma"),
        ({"degree": 0}, "degree"), ({"coef0": -1.0}, "coef0"),
    ],
)  # fmt: skip
def test_a_kernel_that_cannot_work_is_refused_by_the_name_of_its_parameter(setting, name):
    with pytest.raises(InvalidConfig, match=f"^{name}:"):
        Kernel(**setting)
