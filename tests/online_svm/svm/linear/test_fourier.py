"""Fourier features are those of scikit-learn's sampler, and no row depends on its batch."""

import math

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler

from online_svm.compiled.kernels import Kernel
from online_svm.svm.linear.feature_maps import FourierMap, fit_map
from online_svm.svm.linear.fourier import LARGEST, FourierModel, cosine


def fitted(d=5, size=37, gamma=0.3, seed=4):
    X = np.random.default_rng(d).normal(size=(60, d))
    feature_map = fit_map("fourier", Kernel("rbf", gamma=gamma), size, seed, X)
    assert isinstance(feature_map, FourierMap)
    return feature_map, X


@pytest.mark.parametrize(("d", "size", "gamma"), [(1, 1, 2.0), (5, 37, 0.3), (20, 500, 0.05)])
def test_the_features_are_those_of_the_sampler_of_scikit_learn(d, size, gamma):
    feature_map, X = fitted(d, size, gamma)
    sampler = RBFSampler(gamma=gamma, n_components=size, random_state=4).fit(X)
    for factor in (1.0, 1e3):
        expected = sampler.transform(factor * X)
        tolerance = 1e-12 * factor  # of arguments a thousand times as large
        np.testing.assert_allclose(feature_map.transform(factor * X), expected, atol=tolerance)


def test_a_seed_of_63_bits_is_cut_to_what_scikit_learn_takes():
    kernel, X = Kernel("rbf"), np.ones((1, 2))
    high, low = (fit_map("fourier", kernel, 3, seed, X) for seed in (2**62 + 7, 7))
    np.testing.assert_array_equal(high.transform(X), low.transform(X))


def test_the_cosine_is_right_to_the_last_digits():
    around = np.concatenate([np.linspace(-20, 20, 4001), np.pi * np.arange(-50, 50) / 2])
    far = np.random.default_rng(0).uniform(-1e6, 1e6, 2000)
    for t in np.concatenate([around, far]).tolist():
        assert cosine(t) == pytest.approx(math.cos(t), abs=3e-16)


@pytest.mark.parametrize("t", [1e10, 1e100, 1e300])
def test_arguments_beyond_all_digits_count_as_the_largest(t):
    assert cosine(t) == cosine(LARGEST) == cosine(-t)
    assert abs(cosine(t)) <= 1.0


def test_inner_products_approach_the_kernel():
    feature_map, X = fitted(d=3, size=4000, gamma=0.2)
    F = feature_map.transform(X)
    assert np.abs(F @ F.T - Kernel("rbf", gamma=0.2)(X, X)).max() < 6 / math.sqrt(4000)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 130])
def test_a_row_has_the_same_bits_wherever_it_stands(size):
    feature_map, X = fitted(d=7, size=size)
    model = feature_map.model(
        np.random.default_rng(1).normal(size=(2, size)), np.array([0.5, -1.0])
    )
    features, scores = feature_map.transform(X), model.scores(X)
    for i in (0, 17, 59):
        assert feature_map.transform(X[i : i + 1]).tobytes() == features[i].tobytes()
        assert model.scores(X[i : i + 3])[0].tobytes() == scores[i].tobytes()
        shifted = np.concatenate([np.zeros(1), X[i]])[1:]  # at another alignment
        assert model.scores(shifted[None]).tobytes() == scores[i].tobytes()


def test_a_model_is_a_linear_function_of_the_features():
    feature_map, X = fitted()
    coef = np.random.default_rng(2).normal(size=(3, 37))
    model = feature_map.model(coef, np.array([1.0, 0.0, -2.0]))
    expected = feature_map.transform(X) @ coef.T + [1.0, 0.0, -2.0]
    np.testing.assert_allclose(model.scores(X), expected, atol=1e-12)
    copy = FourierModel.from_state(model.state())
    assert copy.scores(X).tobytes() == model.scores(X).tobytes()
