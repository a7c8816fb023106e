"""The headers of Python and numpy, for this machine and for others."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import numpy as np

from scripts.building.targets import Target

_INCLUDE = "numpy/_core/include/"
_WHEELS = {
    ("darwin", "arm64"): "macosx_14_0_arm64",
    ("darwin", "x86_64"): "macosx_14_0_x86_64",  # or an earlier one
}


def include_flags(target: Target, folder: Path | None = None) -> list[str]:
    """Return the flags by which a compiler finds the headers; a folder keeps those fetched.

    The headers of numpy hold facts of the system that they were made on; they are the same on every
    Linux of 64 bits. Those of Python are the same everywhere.
    """
    numpy_headers = Path(np.get_include())
    if target.triple is not None and target.system != sys.platform and folder is not None:
        numpy_headers = _fetched(target, folder)
    flags = ["-I", "online_svm"]
    for path in (sysconfig.get_path("include"), str(numpy_headers)):
        flags += ["-isystem", path]
    return flags


def _fetched(target: Target, folder: Path) -> Path:
    """Return numpy's headers out of its wheel for a system, of the version that is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", f"--platform={_WHEELS[target.system, target.machine]}"]
    command += ["--python-version", python, "--dest", str(folder), f"numpy=={np.__version__}"]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("numpy-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if _INCLUDE in name])
    return folder / _INCLUDE
