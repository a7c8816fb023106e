"""What the trees of a memory say."""

import numpy as np

from online_svm.refit.memory_trees import MemoryTrees
from online_svm.types import Floats


def probabilities(trees: MemoryTrees, X: Floats) -> Floats:
    """Return the probabilities of the classes of the trees, shape (m, n_classes)."""
    found = np.empty((len(X), trees.n_classes))
    trees.write(X, np.arange(trees.n_classes), np.zeros(found.shape), found)
    return found
