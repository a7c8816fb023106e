"""Name the array types of the library; docstrings add shapes where they matter."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Values = NDArray[np.float32 | np.float64]  # kernel values: see `Kernel.dtype`
Weights = NDArray[Any]  # float64, or int64 for counts
Arrays = dict[str, NDArray[Any]]  # arrays by name, the parts of a state
