"""Run tests with kernels that AddressSanitizer and UBSan watch.

`python -m scripts.building.sanitize PATH ...` runs the tests at some paths.

A copy of what is committed is built with the sanitizers, and pytest runs there.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from scripts.building.kernels import ROOT

COMPILER = ["gcc"]  # whose sanitizers are libraries that another program can load
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")
# The interpreter and its libraries keep memory on purpose; they ask for large blocks that may fail.
OPTIONS = "detect_leaks=0:allocator_may_return_null=1"

_BUILD = """
import sys
from pathlib import Path
from scripts.building.kernels import PACKAGE, build
build(PACKAGE / "compiled", command=["gcc"], flags=sys.argv[1:])
"""


def main(paths: list[str]) -> int:
    """Return what pytest returns for the tests at some paths."""
    with tempfile.TemporaryDirectory(prefix="sanitize-") as name:
        copy = Path(name)
        copy_of_head(copy)
        build = [sys.executable, "-P", "-c", _BUILD, *SANITIZERS]
        places = os.environ | {"PYTHONPATH": str(copy)}
        subprocess.run(build, cwd=copy, env=places, check=True)
        command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths]
        return subprocess.run(command, cwd=copy, env=_environment(copy), check=False).returncode


def copy_of_head(target: Path) -> None:
    """Write what is committed to a directory."""
    command = ["git", "-C", str(ROOT), "archive", "HEAD"]
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(target, filter="data")


def _environment(copy: Path) -> dict[str, str]:
    """Return variables by which the interpreter loads the sanitizers before all else."""
    libraries = [_library(name) for name in ("libasan.so", "libubsan.so")]
    return os.environ | {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": OPTIONS,
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": str(copy),
    }


def _library(name: str) -> str:
    command = [*COMPILER, f"-print-file-name={name}"]
    asked = subprocess.run(command, check=True, capture_output=True, text=True)
    return asked.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
