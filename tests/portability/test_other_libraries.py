"""The bytes of every mode with other versions of the libraries."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from machine_variants import ROOT, digests
from system_tools import missing

LIBRARIES = ("numpy", "scipy", "scikit-learn", "orjson")
SECONDS = 1500.0


def oldest():
    """Return what pip is asked for: the oldest minor version of each that is admitted."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for asked in project["dependencies"]:
        name, lowest = re.match(r"([\w-]+)[^>]*>=([\d.]+)", asked).groups()
        if name in LIBRARIES:
            yield f"{name}=={lowest}.*"


def installed(directory: Path) -> None:
    """Install the oldest versions into a directory, without what they depend on."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    command += [str(directory), "--only-binary", ":all:", *oldest()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        missing(f"needs {', '.join(oldest())} from a package index: {done.stderr[-300:]}")


@pytest.mark.scale
@pytest.mark.timeout(2 * SECONDS)
def test_every_mode_gives_the_same_bytes_with_the_oldest_libraries(tmp_path):
    installed(tmp_path)
    found = digests({"PYTHONPATH": f"{tmp_path}:{ROOT}"}, seconds=SECONDS)
    plain = digests({}, seconds=SECONDS)
    same = found["libraries"].items() & plain["libraries"].items()
    assert not same  # each is another version
    assert found["digests"] == plain["digests"]
