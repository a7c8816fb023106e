"""Arrays of a stored state are checked as they are read."""

import numpy as np
import pytest

from online_svm.errors import InvalidSnapshot
from online_svm.storage.arrays import read_floats, read_ints


def test_a_stored_array_of_another_type_or_length_is_refused():
    state = {"a": np.zeros(2)}
    with pytest.raises(InvalidSnapshot, match="not a list of int64"):
        read_ints(state, "a")
    with pytest.raises(InvalidSnapshot, match="2 values, expected 3"):
        read_floats(state, "a", 3)
