"""Define the form of saved state, which classes write by `state` and read by two methods.

The class method `from_state` makes a new object. Its first argument is the state; further arguments
are parts that the caller already has: the configuration, a kernel, rows kept elsewhere. `restore`
fills a new object that its owner made from the configuration; if it fails, the object is unusable.
The object then continues as the original would have, bit for bit. Both methods raise ValueError
(`InvalidSnapshot` is one) or LookupError if parts of a state are missing or do not fit together.

A state has one of three forms:

- *Named arrays*, for pure numbers: calibrators, models, sums, sets.
- A *`State`*, a JSON header and named arrays, for objects with names, settings or None: machines,
  held examples, an active model.
- *Bytes*, a header and arrays in a `container`, for exchange with the refit process: a task, a
  result, a learner. The answering process does not parse the state of a learner.

Classes of arrays, numbers and flags declare their fields in a `StateSchema`. A composite stores its
parts by `nest` and reads them by `under`. Names of arrays and header entries are part of stored
states and must not change. `OnlinePredictor.snapshot` and `Combiner.snapshot` put a whole state
into a container; `restore` continues from it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from online_svm.types import Arrays

Header = dict[str, Any]


class State(NamedTuple):
    """A JSON header and named arrays."""

    header: Header
    arrays: Arrays


def as_array(data: bytes) -> NDArray[np.uint8]:
    """Return bytes as an array, to store them among arrays; `tobytes` is the inverse."""
    return np.frombuffer(data, dtype=np.uint8)


def nest(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return `arrays` with "name." in front of each key."""
    return {f"{name}.{key}": array for key, array in arrays.items()}


def under(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the arrays stored by `nest` under `name`."""
    prefix = f"{name}."
    return {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}


def require(holds: object, name: str) -> None:
    """Raise ValueError with the name of a part of a state, unless `holds` is true."""
    if not holds:
        raise ValueError(f"{name} does not fit")
