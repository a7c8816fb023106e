"""The types of arrays, once; where shapes matter, docstrings say them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Values = NDArray[np.float32 | np.float64]  # kernel values: see `Kernel.dtype`
Weights = NDArray[Any]  # float64; or int64 where they are counts
Arrays = dict[str, NDArray[Any]]  # named ones: what a state consists of
