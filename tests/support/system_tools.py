"""Programs of the system that some tests need: CI installs them, others may lack them."""

import os
import shutil
from typing import NoReturn

import pytest


def tool(name: str, package: str) -> str:
    """Return the path of a program; skip the test without it, and fail it on CI."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is None:
        unavailable(f"needs {name}: apt-get install {package}")
    return found


def unavailable(reason: str) -> NoReturn:
    """Skip the test; fail it on CI."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
