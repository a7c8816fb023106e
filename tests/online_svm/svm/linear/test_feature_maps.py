"""Nystroem maps are scikit-learn's, computed in an order that is fixed."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.kernel_approximation import Nystroem

from online_svm.compiled.kernels import Kernel
from online_svm.svm.linear.feature_maps import fit_map, map_from_state, product

KERNELS = [
    Kernel("rbf", gamma=0.3, wide=True),
    Kernel("poly", gamma=0.5, degree=2, coef0=1.0, wide=True),
    Kernel("linear", wide=True),
]


def points(n=120, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def parameters(kernel):
    if kernel.name == "linear":
        return {}
    shape = {"gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
    return shape if kernel.name == "poly" else {"gamma": kernel.gamma}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_the_features_are_those_of_scikit_learn(kernel):
    X, size = points(), 4 if kernel.name == "linear" else 12
    sampler = Nystroem(
        kernel=kernel.name, n_components=size, random_state=5, **parameters(kernel)
    ).fit(X)
    ours = fit_map("nystroem", kernel, size, 5, X).transform(points(seed=1))
    np.testing.assert_allclose(ours, sampler.transform(points(seed=1)), atol=1e-12)


def test_on_its_landmarks_inner_products_are_the_kernel():
    X = points(40)
    F = fit_map("nystroem", KERNELS[0], 40, 0, X).transform(X)
    np.testing.assert_allclose(F @ F.T, KERNELS[0](X, X), atol=1e-9)


@pytest.mark.parametrize("repeated", [1, 30])
def test_there_are_as_many_landmarks_as_rows_at_most(repeated):
    X = np.repeat(points(3), repeated, axis=0)
    feature_map = fit_map("nystroem", KERNELS[0], 500, 0, X)
    assert feature_map.n_features == len(X)
    assert np.isfinite(feature_map.transform(points(50))).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_weights_fold_into_one_coefficient_a_landmark(kernel):
    X = points()
    feature_map = fit_map("nystroem", kernel, 4, 0, X)
    coef = points(3, 4)
    model = feature_map.model(coef, np.array([1.0, 2.0, 3.0]))
    expected = feature_map.transform(X) @ coef.T + [1.0, 2.0, 3.0]
    np.testing.assert_allclose(model.scores(X), expected, atol=1e-9)


@pytest.mark.parametrize("name", ["nystroem", "fourier"])
def test_a_map_goes_on_from_its_arrays(name):
    X = points()
    feature_map = fit_map(name, KERNELS[0], 9, 0, X)
    copy = map_from_state(feature_map.state(), KERNELS[0])
    assert copy.transform(X).tobytes() == feature_map.transform(X).tobytes()


def test_a_row_has_the_same_bits_wherever_it_stands():
    X = points()
    feature_map = fit_map("nystroem", KERNELS[0], 77, 0, X)
    features = feature_map.transform(X)
    for i in (0, 50, 119):
        assert feature_map.transform(X[i:]).tobytes() == features[i:].tobytes()


@given(
    m=st.integers(1, 40), n=st.integers(0, 3), columns=st.integers(1, 600), seed=st.integers(0, 9)
)
def test_a_product_adds_in_the_order_of_the_rows(m, n, columns, seed):
    rng = np.random.default_rng(seed)
    A, B = rng.integers(-9, 9, (n, m)) / 4.0, rng.integers(-9, 9, (m, columns)) / 4.0
    np.testing.assert_array_equal(product(A, B), A @ B)  # exact: the sums have few bits
    A, B = rng.normal(size=(n, m)), rng.normal(size=(m, columns))
    whole = product(A, B)
    np.testing.assert_allclose(whole, A @ B, atol=1e-12)
    for column in {0, columns // 2, columns - 1}:
        assert product(A, B[:, column:])[:, 0].tobytes() == whole[:, column].tobytes()


SCRIPT = """
import hashlib, sys
import numpy as np
from online_svm.compiled.kernels import Kernel
from online_svm.svm.linear.feature_maps import fit_map
shift = int(sys.argv[1])
X = np.random.default_rng(0).normal(size=8 * 400 + shift)[shift:]
X[:] = np.random.default_rng(1).normal(size=8 * 400)
fitted = fit_map("nystroem", Kernel("rbf", gamma=0.1, wide=True), 200, 0, X.reshape(400, 8))
print(hashlib.sha256(fitted.normalization.tobytes()).hexdigest())
"""


def test_no_thread_of_the_linear_algebra_library_changes_a_bit_of_the_map():
    digests = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(shift)],
            env=os.environ
            | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), threads)
            | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for threads, shift in (("1", 0), ("2", 1), ("4", 0))
    }
    assert len(digests) == 1
