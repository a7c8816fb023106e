"""A predictor that counts, as the calibration set of a feed does."""

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.types import Bools, Floats, Ints

WINDOW = 2000


@jit
def counted(
    category: Ints,
    label: Ints,
    calibrates: Bools,
    n_categories: int,
    n_labels: int,
    refit_every: int,
) -> tuple[Floats, Bools]:
    """Return the probabilities announced for each example, and whether there was a model.

    At 10, 20, 40, ... and at each multiple of `refit_every` the calibration set becomes those of
    the last 2,000 examples that calibrate; in between each example joins it. The probability is
    (N_k[y] + f_y) / (N + 1), with f the smoothed frequency of the label.

    Parameters
    ----------
    category, label : ndarray of int of shape (m,)
    calibrates : ndarray of bool of shape (m,)
    """
    m = len(category)
    point, is_ok = np.zeros((m, n_labels)), np.zeros(m, dtype=np.bool_)
    counts = np.zeros((n_categories, n_labels))
    early, has_model = 10, False
    for t in range(m):
        if has_model:
            k, total = category[t], counts.sum()
            size = counts[k].sum()
            for y in range(n_labels):
                share = (counts[:, y].sum() + 1.0 / n_labels) / (total + 1.0)
                point[t, y] = (counts[k, y] + share) / (size + 1.0)
            is_ok[t] = True
            counts[k, label[t]] += 1.0
        n = t + 1
        is_early = n == early and n < refit_every
        if is_early:
            early *= 2
        if is_early or n % refit_every == 0:
            has_model = True
            counts[:] = 0.0
            for i in range(max(0, n - WINDOW), n):
                if calibrates[i]:
                    counts[category[i], label[i]] += 1.0
    return point, is_ok
