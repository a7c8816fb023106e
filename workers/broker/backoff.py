"""The one back-off policy: exponential, capped, with full jitter."""

import random
from collections.abc import Iterator
from itertools import count

FIRST = 0.05
CAP = 2.0


def delays(first: float = FIRST, cap: float = CAP) -> Iterator[float]:
    """Yield the seconds to sleep before each further attempt, without end.

    The cap bounds how long after its return a worker finds Redis again. The jitter (a uniform draw
    below the exponential bound) keeps many workers from reconnecting at the same moment.

    Examples
    --------
    >>> from itertools import islice
    >>> all(0 <= delay <= CAP for delay in islice(delays(), 20))
    True
    """
    draw = random.SystemRandom()
    for attempt in count():
        yield draw.uniform(0.0, min(cap, first * 2.0 ** min(attempt, 16)))
