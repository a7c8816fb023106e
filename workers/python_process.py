"""Start Python processes safely, and choose when garbage is collected.

`python -m` and `python -c` put the current directory first on the import path. If other users can
write to that directory, a `json.py` or `workers.py` there would run with the rights of this user.
So no process that is started here imports from it.
"""

import gc
import os
import site
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.context import SpawnContext


ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 (below)
"""Directory that holds the packages `online_svm` and `workers`."""


def command(*arguments: str) -> list[str]:
    """Return a command line that runs this Python; start it with the variables of `environment`.

    Examples
    --------
    >>> command("-m", "workers.cli", "status")[1:]
    ['-P', '-m', 'workers.cli', 'status']
    """
    return [sys.executable, "-P", *arguments]


def environment() -> dict[str, str]:
    """Return the environment of a child process that imports the same sources as this one.

    Sources that are not installed are added to PYTHONPATH: with `-P` Python would not find them.
    """
    if ROOT in (*site.getsitepackages(), site.getusersitepackages()):
        return dict(os.environ)
    others = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{others}" if others else ROOT}


def spawning() -> "SpawnContext":
    """Return the context that starts worker processes by `spawn`."""
    from multiprocessing import get_context

    os.environ["PYTHONSAFEPATH"] = "1"  # `spawn` runs `python -c`; `-P` cannot be passed to it
    return get_context("spawn")


def shut_out_current_directory() -> None:
    """Remove the current directory from the import path of this process and of its children.

    It is on the path only after `python -m` without `-P`. That has already imported a few modules,
    possibly from this directory.
    """
    # Not pathlib: it would be imported from the current directory.
    if not sys.flags.safe_path and sys.path[0] == os.getcwd() != ROOT:  # noqa: PTH109
        del sys.path[0]
    os.environ["PYTHONSAFEPATH"] = "1"


@contextmanager
def importing() -> Iterator[None]:
    """Disable garbage collection while the block imports; exclude the new objects from later ones.

    Modules live as long as the process. A full collection would visit their hundred thousand
    objects, for a tenth of a second in the middle of a batch. If the block imports no new module,
    nothing is excluded: `gc.freeze` would also keep present garbage for ever.

    Examples
    --------
    >>> with importing():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    was_enabled, modules = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > modules:
            gc.freeze()
        if was_enabled:
            gc.enable()


MAX_PUT_OFF_SECONDS = 60.0
"""Longest time for which full collections are put off at a time: a replay may take long."""

_NEVER = 1 << 30
"""Threshold of the oldest generation: collections of the middle one before a full one."""


class FullCollections:
    """Postpones full garbage collections; younger generations are collected as usual.

    Opening a feed makes a thousand lasting objects and hardly any garbage. Python runs a full
    collection whenever the number of objects has grown by a quarter. A start with a thousand feeds
    would run a dozen of them; they took a quarter of its time.
    """

    def __init__(self) -> None:
        self._usual: tuple[int, int, int] | None = None
        self._until = 0.0

    def put_off(self) -> None:
        """Put full collections off until `allow`, for `MAX_PUT_OFF_SECONDS` at most."""
        now = time.monotonic()
        if self._usual is None and now >= self._until:
            usual = gc.get_threshold()
            if usual[2] >= _NEVER:
                return  # another object has put them off, and will restore the threshold
            self._usual, self._until = usual, now + MAX_PUT_OFF_SECONDS
            gc.set_threshold(*self._usual[:2], _NEVER)
        elif self._usual is not None and now >= self._until:
            self._restore()
            self._until = now + MAX_PUT_OFF_SECONDS  # for as long, `put_off` has no effect

    def allow(self) -> None:
        """Allow full collections again."""
        self._until = 0.0
        self._restore()

    def _restore(self) -> None:
        if self._usual is not None:
            gc.set_threshold(*self._usual)
            self._usual = None
