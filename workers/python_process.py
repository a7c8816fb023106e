"""Start Python processes that do not import from the current directory; when garbage is collected.

`python -m` and `python -c` put the current directory first on the path of imports. It may be a
folder that others write, such as a shared temporary one: a `json.py` or `workers.py` there would
run with the rights of this user.
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
"""Directory of the packages of this program."""


def command(*arguments: str) -> list[str]:
    """Return the command line of this Python with arguments; `environment` belongs to it.

    Examples
    --------
    >>> command("-m", "workers.cli", "status")[1:]
    ['-P', '-m', 'workers.cli', 'status']
    """
    return [sys.executable, "-P", *arguments]


def environment() -> dict[str, str]:
    """Return the environment of a process that runs the sources that this one runs.

    Sources that are not installed are named, since `-P` looks for them nowhere else.
    """
    if ROOT in (*site.getsitepackages(), site.getusersitepackages()):
        return dict(os.environ)
    others = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{others}" if others else ROOT}


def spawning() -> "SpawnContext":
    """Return the context of processes that compute for this one."""
    from multiprocessing import get_context

    os.environ["PYTHONSAFEPATH"] = "1"  # it begins them with `-c`, and takes no option
    return get_context("spawn")


def shut_out_current_directory() -> None:
    """Take the current directory off the path of imports, here and in what is started from here.

    `python -m` has imported a few modules by then, some of them from that directory perhaps; with
    `-P`, and in the script `online-svm`, there is nothing to take off.
    """
    # pathlib would be imported from there.
    if not sys.flags.safe_path and sys.path[0] == os.getcwd() != ROOT:  # noqa: PTH109
        del sys.path[0]
    os.environ["PYTHONSAFEPATH"] = "1"


@contextmanager
def importing() -> Iterator[None]:
    """Import in the block without garbage collections; later ones skip the imported objects.

    Modules live as long as the process, and a full collection in the middle of a batch would visit
    their hundred thousand objects for a tenth of a second. A block that imports nothing new
    excludes no object: garbage that is alive at its end would otherwise stay for ever.

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
"""Seconds for which they are put off at a time, at most: a replay may take long."""

_NEVER = 1 << 30
"""Collections of the middle generation before a full one."""


class FullCollections:
    """Full garbage collections, which can be put off; younger objects are collected as ever.

    Taking a feed over makes a thousand objects that stay, and hardly any garbage. Python collects
    all generations each time the objects have grown by a quarter. So a start with a thousand feeds
    would look at all of them a dozen times, which took a quarter of its time.

    Examples
    --------
    >>> collections, usual = FullCollections(), gc.get_threshold()
    >>> collections.put_off()
    >>> gc.get_threshold()[:2] == usual[:2], gc.get_threshold()[2] > 1_000_000
    (True, True)
    >>> collections.allow()
    >>> gc.get_threshold() == usual
    True
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
                return  # others in this process have put them off, and will restore what is usual
            self._usual, self._until = usual, now + MAX_PUT_OFF_SECONDS
            gc.set_threshold(*self._usual[:2], _NEVER)
        elif self._usual is not None and now >= self._until:
            self._restore()
            self._until = now + MAX_PUT_OFF_SECONDS  # one is due, and then as usual for as long

    def allow(self) -> None:
        """Allow full collections again."""
        self._until = 0.0
        self._restore()

    def _restore(self) -> None:
        if self._usual is not None:
            gc.set_threshold(*self._usual)
            self._usual = None
