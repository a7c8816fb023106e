"""Failpoints: points at which a test kills a worker, to show that nothing is lost.

There is one before and one after every call to Redis, named after the command or script:
`before-xread`, `after-commit`. A call whose reply is read later has one after sending as well:
`sent-commit`. ``ONLINE_SVM_FAILPOINT=after-commit:3`` ends the process when it reaches that point
for the third time, without flushing or releasing anything, as a power cut would.
"""

import os
from itertools import count

VARIABLE = "ONLINE_SVM_FAILPOINT"

EXIT_CODE = 86  # exit code of a process that died at its failpoint, and of no other

CALLS = (
    "info", "type", "hgetall", "scan", "get", "xlen", "xread", "xrange", "sadd", "xadd",
    "set", "eval", "fence", "check-input", "put", "put-chunk", "commit", "lease-renew",
    "lease-replace", "lease-release",
)  # fmt: skip
"""A worker's calls to Redis: commands, then scripts."""

SENT_AHEAD = ("xread", "put", "put-chunk", "commit", "xadd", "set", "eval")
"""Calls whose reply is read later, or never."""

NAMES = (
    *(f"{side}-{call}" for call in CALLS for side in ("before", "after")),
    *(f"sent-{call}" for call in SENT_AHEAD),
)

OF_RECORDING = (
    "recording-written", "recording-committed", "recording-snapshot", "recording-acknowledged",
    "recording-erased", "recording-vacuumed",
)  # fmt: skip
"""Points of `backup` and `erase`: within a transaction, after it, after its acknowledgement."""


class Failpoint:
    """One failpoint, ``name`` or ``name:nth``, and how often the process may still pass it.

    Raises ValueError for an unknown name: a misspelt one would test nothing.
    """

    def __init__(self, text: str) -> None:
        name, _, nth = text.partition(":")
        known = NAMES + OF_RECORDING
        if name not in known:
            raise ValueError(f"{VARIABLE}: no failpoint {name[:80]!r}; known: {', '.join(known)}")
        self._name = name
        self._left = count(int(nth or 1) - 1, -1)  # one step is atomic among threads

    def reach(self, name: str) -> None:
        """Pass the point `name`; end the process at the nth passing of this failpoint."""
        if name == self._name and next(self._left) == 0:
            os._exit(EXIT_CODE)


chosen = Failpoint(_text) if (_text := os.environ.get(VARIABLE)) else None
"""The failpoint of this process; None outside of tests."""


def reach(name: str) -> None:
    """Pass the point `name` if this process has a failpoint."""
    if chosen is not None:
        chosen.reach(name)
