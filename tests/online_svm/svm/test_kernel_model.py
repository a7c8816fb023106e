import numpy as np
import pytest

from online_svm.compiled.kernels import Kernel
from online_svm.svm.kernel_model import KernelModel

SHAPES = [(1, 1), (63, 1), (64, 4), (129, 2), (700, 3)]


def random_model(n_support, machines, kernel=None, seed=0):
    rng = np.random.default_rng(seed)
    return KernelModel.build(
        kernel or Kernel("rbf", gamma=0.2),
        rng.normal(size=(n_support, 5)),
        rng.normal(size=(machines, n_support)),
        rng.normal(size=machines),
    )


@pytest.mark.parametrize(("n_support", "machines"), SHAPES)
def test_scores_are_the_sums_over_support_vectors(n_support, machines):
    model = random_model(n_support, machines)
    X = np.random.default_rng(1).normal(size=(37, 5))
    K = model.kernel(X, model.vectors.T)
    expected = K @ model.coef.T + model.intercept
    np.testing.assert_allclose(model.scores(X), expected, rtol=0, atol=1e-11)
