"""Programs of the system that some tests need: CI installs them, others may lack them."""

import os
import shutil

import pytest


def tool(name: str, package: str) -> str:
    """Return the path of a program; skip the test without it, and fail it on CI."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is not None:
        return found
    reason = f"needs {name}: apt-get install {package}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
