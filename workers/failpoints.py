"""Points at which a worker can be made to die, so that tests can show that none of them matters.

There is one just before and one just after every call to Redis, named after the command or the
script: `before-xread`, `after-commit`. Where the worker goes on before the reply comes there is one
right after the command was sent, too: `sent-commit`. ``ONLINE_SVM_FAILPOINT=after-commit:3`` ends
the process the third time that it passes that point, as abruptly as a power cut: nothing is flushed
or freed.
"""

import os
from itertools import count

VARIABLE = "ONLINE_SVM_FAILPOINT"

EXIT_CODE = 86
"""Of a process that died at its failpoint; no other way to end has it."""

CALLS = (
    "info", "type", "hgetall", "scan", "get", "xlen", "xread", "xrange", "sadd",
    "fence", "adopt", "put", "commit", "lease-replace", "lease-release",
)  # fmt: skip
"""What a feed's worker sends to Redis: commands, then scripts."""

SENT_AHEAD = ("xread", "put", "commit")
"""Those whose reply is read later."""

NAMES = (
    *(f"{side}-{call}" for call in CALLS for side in ("before", "after")),
    *(f"sent-{call}" for call in SENT_AHEAD),
)


class Failpoint:
    """One point, and how many times the process may still pass it.

    Parameters
    ----------
    text : str
        ``name`` or ``name:nth``.

    Raises
    ------
    ValueError
        If there is no such point, or `nth` is not a number: a misspelt one would test nothing.

    Examples
    --------
    >>> point = Failpoint("after-commit:2")
    >>> point.reach("after-xread")
    >>> point.reach("after-commit")
    """

    def __init__(self, text: str) -> None:
        name, _, nth = text.partition(":")
        if name not in NAMES:
            raise ValueError(f"{VARIABLE}: no failpoint {name[:80]!r}; known: {', '.join(NAMES)}")
        self._name = name
        self._left = count(int(nth or 1) - 1, -1)  # a step of it is atomic among threads

    def reach(self, name: str) -> None:
        """Pass the point `name`, or die there if this is it and its time has come."""
        if name == self._name and next(self._left) == 0:
            os._exit(EXIT_CODE)


def from_environment() -> Failpoint | None:
    """Return the failpoint that the environment names, if any."""
    text = os.environ.get(VARIABLE)
    return Failpoint(text) if text else None


chosen = from_environment()
"""The one of this process; None, and nothing to do, outside of tests."""
