"""State: everything that is saved and continued, by `state` and `from_state`.

`from_state` is a class method. It takes the state first, and then what the state leaves out because
the caller has it: the configuration, a kernel, rows that are kept elsewhere. What it returns
continues as the original would have, bit for bit. It raises ValueError (`InvalidSnapshot` is one)
or LookupError where parts of a state are missing or do not fit one another.

A state has one of three forms:

- *Named arrays*, where numbers are all there is: maps, models, sums, sets.
- A *`State`*, a JSON header and named arrays, where there are also names, settings or None:
  machines, the examples held, an active model.
- *Bytes*, made of a header and arrays by `container`, where they go to the refit process or come
  from it: a task, a result, a learner. The process that answers keeps a learner's state unread.

What of a class is stored is declared by a table of fields (`fields`) wherever it is arrays, numbers
and flags alone. A whole stores its parts with `nest` and finds them with `under`. The names of
arrays and headers are part of what was stored: they stay. `OnlinePredictor.snapshot` and
`Combiner.snapshot` make a container of a whole, and `restore` continues from it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from online_svm.types import Arrays

Header = dict[str, Any]


class State(NamedTuple):
    """A JSON header, and arrays by name.

    Examples
    --------
    >>> header, arrays = State({"n": 3}, {"w": np.array([1.0, 2.0])})
    >>> header["n"], arrays["w"]
    (3, array([1., 2.]))
    """

    header: Header
    arrays: Arrays


def as_array(data: bytes) -> NDArray[np.uint8]:
    """Return bytes as an array, to be stored among others; `tobytes` gives them back.

    Examples
    --------
    >>> as_array(b"ab").tobytes()
    b'ab'
    """
    return np.frombuffer(data, dtype=np.uint8)
